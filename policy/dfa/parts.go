// SPDX-License-Identifier: Apache-2.0

package dfa

// part is what of an image's automaton is reached from one entry.
type part struct {
	bytes  []byte
	states []uint16
	at     []int32            // by state of the image, its place in states, or -1
	next   []int32            // places, by place and class of bytes
	inv    *inverse           // see inverse
	byRow  map[uint16][]int32 // places
	key    []int32            // see mark
}

func newPart(img *Image, start Start, bytes []byte) part {
	p := part{bytes: bytes, at: make([]int32, len(img.RowOf)), byRow: map[uint16][]int32{}}
	for i := range p.at {
		p.at[i] = -1
	}
	visit := func(s uint16) int32 {
		if p.at[s] < 0 {
			p.at[s] = int32(len(p.states))
			p.states = append(p.states, s)
		}
		return p.at[s]
	}
	visit(img.Start[start])
	for i := 0; i < len(p.states); i++ {
		s := p.states[i]
		for _, c := range bytes {
			p.next = append(p.next, visit(img.Next[int(s)*256+int(c)]))
		}
		p.byRow[img.RowOf[s]] = append(p.byRow[img.RowOf[s]], int32(i))
	}
	p.key = make([]int32, len(p.states))
	return p
}

func (p *part) inverse() *inverse {
	if p.inv == nil {
		p.inv = invert(&raw{bytes: p.bytes, row: p.key, next: p.next})
	}
	return p.inv
}

// has tells whether a state of the part has one of the rows.
func (p *part) has(rows []int32) bool {
	for _, r := range rows {
		if len(p.byRow[uint16(r)]) > 0 {
			return true
		}
	}
	return false
}

// mark returns a key for partitions: 1 for the places that have one of the rows.
func (p *part) mark(rows []int32) []int32 {
	clear(p.key)
	for _, r := range rows {
		for _, at := range p.byRow[uint16(r)] {
			p.key[at] = 1
		}
	}
	return p.key
}

// classesOfBoth is classes for what patterns of both entries say, as the sources of one
// label do: what a name says by itself makes no difference between directories, and can
// make what their paths say no difference either. So the two automata are walked
// together, that of names reduced to these rows first.
func (m *mover) classesOfBoth(rows []int32) []int {
	if !m.refine(m.base.inverse(), m.base.mark(rows)) {
		return nil
	}
	p := newProduct(&m.path, &m.base, m.partition.block)
	m.path.mark(rows)
	dirs := []int32{0}
	for _, d := range m.dirs[1:] {
		dirs = append(dirs, p.visit(d, 0))
	}
	for i := 0; i < len(p.pairs); i++ {
		if m.budget -= len(p.bytes); m.budget < 0 {
			return nil
		}
		p.leave(p.pairs[i])
	}
	p.row = p.key
	if !m.refine(invert(&p.raw), p.key) {
		return nil
	}
	return m.classesOf(dirs)
}

// product is the automaton of paths and that of names, walked together.
type product struct {
	raw
	path, base *part
	same       []int32 // by place in base, the one that stands for all that lead to the same
	number     map[[2]int32]int32
	pairs      [][2]int32
	key        []int32 // whether either says what is looked for
}

func newProduct(path, base *part, block []int32) *product {
	p := &product{raw: raw{bytes: base.bytes}, path: path, base: base, number: map[[2]int32]int32{}}
	first := map[int32]int32{}
	for at, b := range block {
		if _, ok := first[b]; !ok {
			first[b] = int32(at)
		}
		p.same = append(p.same, first[b])
	}
	return p
}

// visit returns the number of a pair, which is new if need be.
func (p *product) visit(path, name int32) int32 {
	pair := [2]int32{path, p.same[name]}
	n, ok := p.number[pair]
	if !ok {
		n = int32(len(p.pairs))
		p.number[pair] = n
		p.pairs = append(p.pairs, pair)
		p.key = append(p.key, p.path.key[path]|p.base.key[pair[1]])
	}
	return n
}

func (p *product) leave(pair [2]int32) {
	for c := range p.bytes {
		k := int32(len(p.bytes))
		p.next = append(p.next, p.visit(p.path.next[pair[0]*k+int32(c)], p.base.next[pair[1]*k+int32(c)]))
	}
}
