// SPDX-License-Identifier: Apache-2.0

package dfa

import (
	"math"
	"slices"
)

// partition is a division of the states into blocks that can be refined.
type partition struct {
	elems      []int32 // states, block by block
	at         []int32 // where each state is in elems
	block      []int32 // the block of each state
	first, end []int32 // of each block, in elems
	marked     []int32 // how many of each block are marked: they come first
}

// fill puts states of equal keys, which are none below 0, in one block. What was
// there goes; its memory is used again.
func (p *partition) fill(key []int32) {
	n := len(key)
	p.elems, p.at, p.block = resize(p.elems, n), resize(p.at, n), resize(p.block, n)
	p.first, p.end = p.first[:0], p.end[:0]
	number := make([]int32, slices.Max(key)+1) // of the block, plus one
	var sizes []int32
	for s, k := range key {
		if number[k] == 0 {
			sizes = append(sizes, 0)
			number[k] = int32(len(sizes))
		}
		b := number[k] - 1
		p.block[s] = b
		sizes[b]++
	}
	var start int32
	for _, n := range sizes {
		p.first = append(p.first, start)
		p.end = append(p.end, start)
		start += n
	}
	for s, b := range p.block {
		p.elems[p.end[b]] = int32(s)
		p.at[s] = p.end[b]
		p.end[b]++
	}
	p.marked = resize(p.marked, len(sizes))
	clear(p.marked)
}

func resize(s []int32, n int) []int32 { return slices.Grow(s[:0], n)[:n] }

func (p *partition) largest() int {
	best := 0
	for b := range p.first {
		if p.end[b]-p.first[b] > p.end[best]-p.first[best] {
			best = b
		}
	}
	return best
}

// moveToFront marks a state of its block; touched gets blocks marked first now.
func (p *partition) moveToFront(s int32, touched []int32) []int32 {
	b := p.block[s]
	to := p.first[b] + p.marked[b]
	if p.at[s] < to {
		return touched // marked already
	}
	other := p.elems[to]
	p.elems[to], p.elems[p.at[s]] = s, other
	p.at[other], p.at[s] = p.at[s], to
	if p.marked[b]++; p.marked[b] == 1 {
		touched = append(touched, b)
	}
	return touched
}

// split makes the smaller part of a marked block a block of its own and
// returns it, or -1 when all or none were marked.
func (p *partition) split(b int32) int32 {
	n, size := p.marked[b], p.end[b]-p.first[b]
	p.marked[b] = 0
	if n == 0 || n == size {
		return -1
	}
	fresh := int32(len(p.first))
	from, to := p.first[b], p.first[b]+n
	if n > size-n {
		from, to = to, p.end[b]
		p.end[b] = from
	} else {
		p.first[b] = to
	}
	p.first, p.end, p.marked = append(p.first, from), append(p.end, to), append(p.marked, 0)
	for _, s := range p.elems[from:to] {
		p.block[s] = fresh
	}
	return fresh
}

// inverse lists the predecessors of each state, class by class.
type inverse struct {
	states int
	from   []int32 // by class and state, where its list begins in preds
	preds  []int32
}

// invert sorts all transitions by class and target, by counting.
func invert(r *raw) *inverse {
	n, k := len(r.row), len(r.bytes)
	inv := &inverse{states: n, from: make([]int32, n*k+1), preds: make([]int32, n*k)}
	for s := range n {
		for c, to := range r.next[s*k : (s+1)*k] {
			inv.from[c*n+int(to)]++
		}
	}
	end := int32(0)
	for i, count := range inv.from {
		end += count
		inv.from[i] = end // where the list ends, until it is filled from there
	}
	for s := n - 1; s >= 0; s-- {
		for c, to := range r.next[s*k : (s+1)*k] {
			i := c*n + int(to)
			inv.from[i]--
			inv.preds[inv.from[i]] = int32(s)
		}
	}
	return inv
}

func (inv *inverse) classes() int { return (len(inv.from) - 1) / inv.states }

func (inv *inverse) list(class int, s int32) []int32 {
	i := class*inv.states + int(s)
	return inv.preds[inv.from[i]:inv.from[i+1]]
}

// minimize returns the block of each state and how many there are: states of
// one block have one row and lead to one block by every byte.
func minimize(r *raw) (block []int32, count int) {
	var p partition
	p.fill(r.row)
	p.refine(invert(r), math.MaxInt)
	return p.block, len(p.first)
}

// refine splits blocks until the states of each lead to one block by every byte. It
// is Hopcroft's algorithm; a splitter is used with all classes at once. It gives up
// when it has followed more than BUDGET transitions, and returns how many it has
// followed.
func (p *partition) refine(inv *inverse, budget int) (steps int) {
	var work, touched, splitter []int32
	largest := p.largest()
	for b := range p.first { // what the largest would split, the others do
		if b != largest {
			work = append(work, int32(b))
		}
	}
	for len(work) > 0 && steps <= budget {
		b := work[len(work)-1]
		work = work[:len(work)-1]
		splitter = append(splitter[:0], p.elems[p.first[b]:p.end[b]]...)
		for class := range inv.classes() {
			touched = touched[:0]
			for _, s := range splitter {
				for _, from := range inv.list(class, s) {
					touched = p.moveToFront(from, touched)
					steps++
				}
			}
			for _, t := range touched {
				// The smaller part is new; the other keeps its number and, if
				// it has one, its place among the work.
				if fresh := p.split(t); fresh >= 0 {
					work = append(work, fresh)
				}
			}
		}
	}
	return steps
}
