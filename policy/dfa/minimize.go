// SPDX-License-Identifier: Apache-2.0

package dfa

// partition is a division of the states into blocks that can be refined.
type partition struct {
	elems      []int32 // states, block by block
	at         []int32 // where each state is in elems
	block      []int32 // the block of each state
	first, end []int32 // of each block, in elems
	marked     []int32 // how many of each block are marked: they come first
}

func newPartition(key []int32) *partition {
	p := &partition{elems: make([]int32, len(key)), at: make([]int32, len(key)), block: make([]int32, len(key))}
	number := map[int32]int32{}
	var sizes []int32
	for s, k := range key {
		b, ok := number[k]
		if !ok {
			b = int32(len(sizes))
			number[k] = b
			sizes = append(sizes, 0)
		}
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
	p.marked = make([]int32, len(sizes))
	return p
}

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

func (inv *inverse) list(class int, s int32) []int32 {
	i := class*inv.states + int(s)
	return inv.preds[inv.from[i]:inv.from[i+1]]
}

// minimize returns the block of each state and how many there are: states of
// one block have one row and lead to one block by every byte. It is Hopcroft's
// algorithm; a splitter is used with all classes at once.
func minimize(r *raw) (block []int32, count int) {
	p, inv := newPartition(r.row), invert(r)
	var work, touched, splitter []int32
	largest := p.largest()
	for b := range p.first { // what the largest would split, the others do
		if b != largest {
			work = append(work, int32(b))
		}
	}
	for len(work) > 0 {
		b := work[len(work)-1]
		work = work[:len(work)-1]
		splitter = append(splitter[:0], p.elems[p.first[b]:p.end[b]]...)
		for class := range r.bytes {
			touched = touched[:0]
			for _, s := range splitter {
				for _, from := range inv.list(class, s) {
					touched = p.moveToFront(from, touched)
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
	return p.block, len(p.first)
}
