// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"math/bits"
	"math/rand/v2"
	"slices"
)

// tuples is a set of lists of one width, in the order in which they came: there can be a
// million of them, so that they lie in one piece.
type tuples struct {
	width int
	count int
	all   []uint16
	table []int32 // by hash: 1 + the number of a tuple, 0 for none
	seed  uint64
}

func (t *tuples) at(i int) []uint16 { return t.all[i*t.width : (i+1)*t.width] }

// add tells whether a tuple is new.
func (t *tuples) add(tuple []uint16) bool {
	if 2*t.count >= len(t.table) {
		t.grow()
	}
	slot := t.find(tuple)
	if t.table[slot] != 0 {
		return false
	}
	t.all = append(t.all, tuple...)
	t.count++
	t.table[slot] = int32(t.count)
	return true
}

// find returns the slot of a tuple, or the free one where it belongs.
func (t *tuples) find(tuple []uint16) int {
	slot := int(t.hash(tuple) & uint64(len(t.table)-1))
	for t.table[slot] != 0 && !slices.Equal(t.at(int(t.table[slot]-1)), tuple) {
		slot = (slot + 1) & (len(t.table) - 1)
	}
	return slot
}

// hash is not foreseen by who writes a policy.
func (t *tuples) hash(tuple []uint16) uint64 {
	h := t.seed
	for _, v := range tuple {
		high, low := bits.Mul64(h^uint64(v), 0x9E3779B97F4A7C15)
		h = high ^ low
	}
	return h
}

func (t *tuples) grow() {
	if t.table == nil {
		t.seed = rand.Uint64()
	}
	t.table = make([]int32, max(1024, 2*len(t.table)))
	for i := range t.count {
		t.table[t.find(t.at(i))] = int32(i + 1)
	}
}
