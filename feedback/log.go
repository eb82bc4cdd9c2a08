// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"context"
	"sync"
)

// LogSize is how many items a Log of the usual size keeps.
const LogSize = 4096

// Log keeps the newest items of a scope: the part of Scope that is the same for
// every engine. Items that no longer fit are dropped, oldest first; readers
// that had not seen them learn how many they missed.
type Log struct {
	mu    sync.Mutex
	size  int
	last  uint64
	items []Item        // in order, the newest is numbered last
	more  chan struct{} // closed by the next Append
}

// NewLog returns a log that keeps size items and numbers the next one last+1.
func NewLog(size int, last uint64) *Log {
	return &Log{size: max(size, 1), last: last, more: make(chan struct{})}
}

// Append numbers an item, keeps it, and returns it.
func (l *Log) Append(item Item) Item {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	item.Sequence = l.last
	// Trim in bulk: a copy per item would cost the size of the log.
	if len(l.items) >= 2*l.size {
		l.items = append(make([]Item, 0, 2*l.size), l.items[len(l.items)-l.size+1:]...)
	}
	l.items = append(l.items, item)
	close(l.more)
	l.more = make(chan struct{})
	return item
}

// Last is the number of the newest item, 0 if there was none.
func (l *Log) Last() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// Items implements Scope.
func (l *Log) Items(after uint64) []Item {
	l.mu.Lock()
	defer l.mu.Unlock()
	if after >= l.last {
		return nil
	}
	kept := l.items[max(0, len(l.items)-l.size):]
	wanted := int(min(l.last-after, uint64(len(kept))))
	return append([]Item(nil), kept[len(kept)-wanted:]...)
}

// Wait implements Scope.
func (l *Log) Wait(ctx context.Context, after uint64) error {
	for {
		l.mu.Lock()
		last, more := l.last, l.more
		l.mu.Unlock()
		if last > after {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-more:
		}
	}
}
