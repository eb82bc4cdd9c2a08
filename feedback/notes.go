// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"fmt"
	"sync"
	"time"
)

// Bounds of what is written to the standard error of a scope's processes: lines in a
// second, lines at once, and bytes of a line with its end.
const (
	noteRate  = 2
	noteBurst = 20
	maxNote   = 2000
)

// Notes makes the lines that are written to the standard error of a scope's processes: of
// what was refused, as long as it is not too much. It may be used concurrently.
type Notes struct {
	pace bucket

	mu   sync.Mutex
	left uint64 // guarded by mu; lines that were left out since the last one
}

// Line is the line about an item, with its end; false if there is none to write.
func (n *Notes) Line(item Item, now time.Time) (string, bool) {
	if item.Effect == Notify || item.Outcome == Used {
		return "", false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.pace.take(now, noteRate, noteBurst) {
		n.left++
		return "", false
	}
	more := "\n"
	if n.left > 0 {
		more = fmt.Sprintf(" (%d lines like this one were left out.)\n", n.left)
		n.left = 0
	}
	return cut(item.Message(), maxNote-len(more)) + more, true
}
