// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"errors"
	"math"
	"slices"
	"sync"
	"time"
)

// maxConsumers bounds the consumers that MemoryCursors remembers.
const maxConsumers = 256

// MemoryCursors is Cursors in memory. It remembers a bounded number of
// consumers and forgets the one that was not used for longest: that one gets
// its items again, and nobody is refused.
type MemoryCursors struct {
	mu      sync.Mutex
	cursors map[string]uint64
	order   []string // least recently used first
}

// NewMemoryCursors returns an empty MemoryCursors.
func NewMemoryCursors() *MemoryCursors {
	return &MemoryCursors{cursors: map[string]uint64{}}
}

// Cursor implements Cursors.
func (m *MemoryCursors) Cursor(consumer string) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	cursor, known := m.cursors[consumer]
	if known {
		m.touch(consumer)
	}
	return cursor
}

// SetCursor implements Cursors.
func (m *MemoryCursors) SetCursor(consumer string, cursor uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.cursors[consumer]; !known && len(m.order) >= maxConsumers {
		delete(m.cursors, m.order[0])
		m.order = m.order[1:]
	}
	m.cursors[consumer] = cursor
	m.touch(consumer)
}

// touch makes a consumer the most recently used; mu is held.
func (m *MemoryCursors) touch(consumer string) {
	for i, name := range m.order {
		if name == consumer {
			m.order = append(m.order[:i], m.order[i+1:]...)
			break
		}
	}
	m.order = append(m.order, consumer)
}

// Bounds of the ledger.
const (
	// leaseTime is how long a page that was handed out waits for its
	// acknowledgement: longer than a hook may run.
	leaseTime = 3 * time.Second
	maxLeases = 16 // pages of one consumer that wait at once
)

// errBusy tells that too many pages wait for their acknowledgements.
var errBusy = errors.New("too many answers wait for an acknowledgement; they are delivered again after " + leaseTime.String())

// ledger hands each item to each consumer once. A page that was handed out is on
// lease until it is acknowledged; hooks of one agent run side by side, and the
// second must not get what the first is just printing. A lease that runs out is
// handed out again: a hook that was killed loses nothing.
type ledger struct {
	mu      sync.Mutex
	cursors Cursors
	now     func() time.Time
	// leases follow each other without gaps from the consumer's cursor on.
	leases map[string][]lease
}

// lease is the range of items above from, up to to.
type lease struct {
	from, to uint64
	until    time.Time
	done     bool
}

// take hands out a page of what the consumer has not had. It asks read for the
// items in a range; a page without items is not recorded.
func (l *ledger) take(consumer string, read func(after, upTo uint64) Page) (Page, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.settle(consumer)
	now := l.now()
	next := l.cursors.Cursor(consumer)
	leases := l.leases[consumer]
	for i := range leases {
		next = leases[i].to
		if leases[i].done || now.Before(leases[i].until) {
			continue
		}
		page := read(leases[i].from, leases[i].to)
		if len(page.Items) == 0 {
			leases[i].done = true
			continue
		}
		l.split(consumer, i, page.Cursor)
		l.leases[consumer][i].until = now.Add(leaseTime)
		return page, nil
	}
	if len(leases) >= maxLeases || leases == nil && len(l.leases) >= maxConsumers && !l.forget(now) {
		return Page{Items: []Entry{}, Cursor: next}, errBusy
	}
	page := read(next, math.MaxUint64)
	if len(page.Items) > 0 {
		l.leases[consumer] = append(leases, lease{from: next, to: page.Cursor, until: now.Add(leaseTime)})
	}
	return page, nil
}

// acknowledge ends the lease that the cursor lies in. What the lease holds above
// the cursor is handed out again at once. It returns false if there is no such
// lease and the cursor was not acknowledged before either.
func (l *ledger) acknowledge(consumer string, cursor uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.settle(consumer)
	for i, held := range l.leases[consumer] {
		if held.from < cursor && cursor <= held.to {
			if cursor < held.to && len(l.leases[consumer]) >= 4*maxLeases {
				return false // in splinters already: delivered again as a whole
			}
			l.split(consumer, i, cursor)
			l.leases[consumer][i].done = true
			return true
		}
	}
	return cursor <= l.cursors.Cursor(consumer)
}

// split ends the consumer's lease i at a cursor within it, and lets what is
// above have run out.
func (l *ledger) split(consumer string, i int, cursor uint64) {
	held := l.leases[consumer][i]
	if cursor >= held.to || held.done {
		return
	}
	rest := lease{from: cursor, to: held.to}
	l.leases[consumer][i].to = cursor
	l.leases[consumer] = slices.Insert(l.leases[consumer], i+1, rest)
}

// settle moves the consumer's cursor over what was acknowledged; mu is held.
func (l *ledger) settle(consumer string) {
	leases := l.leases[consumer]
	for len(leases) > 0 && leases[0].done {
		l.cursors.SetCursor(consumer, leases[0].to)
		leases = leases[1:]
	}
	if len(leases) == 0 {
		delete(l.leases, consumer)
		return
	}
	l.leases[consumer] = leases
}

// forget drops the consumers whose leases have all run out, and tells whether
// there were any; mu is held.
func (l *ledger) forget(now time.Time) bool {
	before := len(l.leases)
	for consumer, leases := range l.leases {
		if !slices.ContainsFunc(leases, func(held lease) bool { return now.Before(held.until) }) {
			delete(l.leases, consumer)
		}
	}
	return len(l.leases) < before
}
