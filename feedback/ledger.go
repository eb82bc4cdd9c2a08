// SPDX-License-Identifier: Apache-2.0

package feedback

import "sync"

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
