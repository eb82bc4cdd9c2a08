// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/actplane/actplane/internal/atomicfile"
)

// maxConsumers bounds what the inside of a container can make us remember.
const maxConsumers = 256

const cursorsName = "cursors.json"

// cursors remembers what was delivered to whom across restarts of the daemon,
// so that an agent is not told twice. It is feedback.Cursors.
type cursors struct {
	path string

	mu    sync.Mutex
	known []cursor // guarded by mu; the least recently used first
}

type cursor struct {
	Consumer string
	Sequence uint64
}

// loadCursors reads what an earlier daemon, or an earlier start of the container,
// remembered; without it, all is new. No cursor is ahead of the newest event: where
// events were lost with a daemon, others get their numbers.
func loadCursors(dir string, newest uint64) *cursors {
	c := &cursors{path: filepath.Join(dir, cursorsName)}
	if text, err := os.ReadFile(c.path); err == nil {
		if json.Unmarshal(text, &c.known) != nil {
			c.known = nil
		}
	}
	for i := range c.known {
		c.known[i].Sequence = min(c.known[i].Sequence, newest)
	}
	return c
}

// copyTo writes the cursors down for another start of the container, whose events go on
// with the same numbers.
func (c *cursors) copyTo(dir string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	(&cursors{path: filepath.Join(dir, cursorsName), known: c.known}).save()
}

// Cursor implements feedback.Cursors.
func (c *cursors) Cursor(consumer string) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.take(consumer).Sequence
}

// SetCursor implements feedback.Cursors. What cannot be written holds until the
// daemon restarts.
func (c *cursors) SetCursor(consumer string, sequence uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.take(consumer).Consumer == "" {
		c.known = append(c.known[max(0, len(c.known)-maxConsumers+1):], cursor{Consumer: consumer})
	}
	c.known[len(c.known)-1].Sequence = sequence
	c.save()
}

// save writes the cursors, which then outlive the daemon; mu is held.
func (c *cursors) save() {
	if text, err := json.Marshal(c.known); err == nil {
		_ = atomicfile.Write(c.path, text, atomicfile.Options{Mode: 0o600})
	}
}

// take finds a consumer and moves it to the end; mu is held.
func (c *cursors) take(consumer string) cursor {
	i := slices.IndexFunc(c.known, func(k cursor) bool { return k.Consumer == consumer })
	if i < 0 {
		return cursor{}
	}
	found := c.known[i]
	c.known = append(slices.Delete(c.known, i, i+1), found)
	return found
}
