// SPDX-License-Identifier: Apache-2.0

package model

import "hash/maphash"

// dict is a map that does not change: with makes another one, which shares with it what
// is the same. So a child has what its parent has without a copy of it.
type dict[V any] struct{ root *entry[V] }

// entry is a node of a treap: in the order of keys, and no rank above its parent's.
type entry[V any] struct {
	key         string
	rank        uint64
	value       V
	left, right *entry[V]
}

// rankSeed makes that nobody foresees ranks, on which only the time depends.
var rankSeed = maphash.MakeSeed()

func (d dict[V]) get(key string) (value V, ok bool) {
	for e := d.root; e != nil; {
		switch {
		case key == e.key:
			return e.value, true
		case key < e.key:
			e = e.left
		default:
			e = e.right
		}
	}
	return value, false
}

func (d dict[V]) with(key string, value V) dict[V] {
	return dict[V]{d.root.with(&entry[V]{key: key, rank: maphash.String(rankSeed, key), value: value})}
}

func (e *entry[V]) with(more *entry[V]) *entry[V] {
	if e == nil {
		return more
	}
	c := *e
	switch {
	case more.key == c.key:
		c.value = more.value
	case more.key < c.key:
		if c.left = e.left.with(more); c.left.rank > c.rank {
			up := c.left // a new one, as all on the way are
			c.left, up.right = up.right, &c
			return up
		}
	default:
		if c.right = e.right.with(more); c.right.rank > c.rank {
			up := c.right
			c.right, up.left = up.left, &c
			return up
		}
	}
	return &c
}
