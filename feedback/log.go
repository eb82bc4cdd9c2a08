// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"context"
	"sync"
)

// LogSize is how many items a Log of the usual size keeps.
const LogSize = 4096

// maxLogBytes bounds what a Log's items take in memory: a container chooses
// names and argv, and can have as many events as it likes.
const maxLogBytes = 4 << 20

// Log keeps the newest items of a scope: the part of Scope that is the same for
// every engine. Items that no longer fit are dropped, oldest first; readers
// that had not seen them learn how many they missed.
type Log struct {
	mu    sync.Mutex
	size  int
	last  uint64
	items []Item        // in order, the newest is numbered last
	bytes int           // of items
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
	l.items = append(l.items, item)
	l.bytes += item.bytes()
	for len(l.items) > l.size || l.bytes > maxLogBytes && len(l.items) > 1 {
		l.bytes -= l.items[0].bytes()
		l.items[0] = Item{} // the array lives on for a while, its texts need not
		l.items = l.items[1:]
	}
	close(l.more)
	l.more = make(chan struct{})
	return item
}

// bytes is about what an item takes in memory.
func (i Item) bytes() int {
	const item, text, number = 384, 32, 8
	size := item + len(i.Object) + len(i.Because) + len(i.Clause) + len(i.Reason) + number*len(i.Process.Ancestors)
	for _, arg := range i.Args {
		size += text + len(arg)
	}
	for _, list := range [][]string{i.Labels, i.Also, i.Warnings} {
		for _, name := range list {
			size += text + len(name)
		}
	}
	for _, origin := range i.Origins {
		size += text + len(origin.Label) + len(origin.Gate)
		for _, step := range origin.Steps {
			size += item/2 + len(step.Object) + len(step.Program)
		}
	}
	return size
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
	wanted := int(min(l.last-after, uint64(len(l.items))))
	return append([]Item(nil), l.items[len(l.items)-wanted:]...)
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
