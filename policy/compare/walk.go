// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"encoding/binary"
	"slices"

	"github.com/actplane/actplane/policy/dfa"
	"github.com/actplane/actplane/policy/model"
)

// place is what a key comes to in the automata of both policies: the rows that are not
// empty, and the kind of path that it is. All that the policies tell apart by the key
// alone is in it.
type place struct {
	rows    [2][]uint16
	kind    model.SpecialKind
	key     []byte // the example
	program []byte // one that is a program's path
}

// object is the example, as steps name it.
func (p *place) object(program bool, kind dfa.Start) string {
	if program {
		return string(p.program)
	}
	return object(kind, p.key)
}

// walker walks the product of all automata for one kind of key and its grammar.
type walker struct {
	images  [2]*dfa.Image
	kind    dfa.Start
	grammar grammar
	bytes   []byte // one of each class, in no order; nil where the grammar's order counts

	tuples  [][]uint16 // the states: the grammar's, then those of the automata
	from    []step
	number  map[string]int32
	split   int // how many automata are the old policy's
	visited map[string]bool
	places  []place
}

// step is how the search came to a state.
type step struct {
	parent int32
	over   byte
}

// walk finds the places of all keys of a kind, each with a short example. It is
// complete unless more than limit states of the product are needed.
func walk(images [2]*dfa.Image, kind dfa.Start, g grammar, limit int) (w *walker, complete bool) {
	w = &walker{images: images, kind: kind, grammar: g, number: map[string]int32{}, visited: map[string]bool{}}
	first := []uint16{g.start()}
	for side, img := range images {
		first = append(first, entries(img, kind)...)
		if side == 0 {
			w.split = len(first)
		}
	}
	if kind != dfa.Address {
		w.bytes = w.classes()
	}
	w.visit(first, step{parent: -1})
	for at := 0; at < len(w.tuples); at++ {
		if at >= limit {
			return w, false
		}
		w.leave(int32(at))
	}
	return w, true
}

// entries are the states in which an image's automata begin with a kind of key.
func entries(img *dfa.Image, kind dfa.Start) []uint16 {
	switch kind {
	case dfa.Host:
		return []uint16{img.Host}
	case dfa.Path:
		return append([]uint16{img.Start[kind]}, img.More...)
	}
	return []uint16{img.Start[kind]}
}

// leave follows each class of bytes from a state.
func (w *walker) leave(at int32) {
	tuple := w.tuples[at]
	next := make([]uint16, len(tuple))
	order := w.bytes
	if order == nil {
		order = w.grammar.order(tuple[0])
	}
	for _, b := range order {
		var ok bool
		if next[0], ok = w.grammar.step(tuple[0], b); !ok {
			continue
		}
		for i, s := range tuple[1:] {
			next[i+1] = w.images[w.side(i+1)].Next[int(s)*256+int(b)]
		}
		w.visit(next, step{at, b})
	}
}

func (w *walker) side(i int) int {
	if i < w.split {
		return 0
	}
	return 1
}

func (w *walker) visit(tuple []uint16, from step) {
	key := packed(tuple)
	if _, ok := w.number[key]; ok {
		return
	}
	w.number[key] = int32(len(w.tuples))
	w.tuples, w.from = append(w.tuples, slices.Clone(tuple)), append(w.from, from)
	kind, ok := w.grammar.end(tuple[0])
	if !ok {
		return
	}
	p := place{kind: kind}
	for i, s := range tuple[1:] {
		side := w.side(i + 1)
		if r := w.images[side].RowOf[s]; r != dfa.NoRow {
			p.rows[side] = append(p.rows[side], r)
		}
	}
	if id := p.id(); !w.visited[id] {
		w.visited[id] = true
		p.key = w.spell(int32(len(w.tuples) - 1))
		w.places = append(w.places, p)
	}
}

// id is equal for places that are the same.
func (p *place) id() string {
	return packed(append([]uint16{uint16(p.kind), uint16(len(p.rows[0]))}, slices.Concat(p.rows[0], p.rows[1])...))
}

func packed(list []uint16) string {
	out := make([]byte, 0, 2*len(list))
	for _, v := range list {
		out = binary.LittleEndian.AppendUint16(out, v)
	}
	return string(out)
}

// spell is the key that led to a state.
func (w *walker) spell(at int32) []byte {
	key := []byte{} // the empty one is a key as well
	for ; w.from[at].parent >= 0; at = w.from[at].parent {
		key = append(key, w.from[at].over)
	}
	slices.Reverse(key)
	return key
}

// classes returns one byte of each set that all automata and the grammar treat alike,
// in the grammar's order.
func (w *walker) classes() (out []byte) {
	columns := grammarColumns(w.grammar)
	seen := map[string]bool{}
	for _, b := range w.grammar.order(w.grammar.start()) {
		column := columns[b]
		for _, img := range w.images {
			for s := range img.RowOf {
				column = binary.LittleEndian.AppendUint16(column, img.Next[s*256+int(b)])
			}
		}
		if !seen[string(column)] {
			seen[string(column)] = true
			out = append(out, b)
		}
	}
	return out
}

// grammarColumns tells for each byte where it leads from all states of a grammar.
func grammarColumns(g grammar) (columns [256][]byte) {
	states, known := []uint16{g.start()}, map[uint16]bool{g.start(): true}
	for i := 0; i < len(states); i++ {
		for b := range columns {
			to, ok := g.step(states[i], byte(b))
			columns[b] = binary.LittleEndian.AppendUint16(columns[b], to)
			if columns[b] = append(columns[b], 0); ok {
				columns[b][len(columns[b])-1] = 1
				if !known[to] {
					known[to] = true
					states = append(states, to)
				}
			}
		}
	}
	return columns
}

// at returns the place of a key; ok is false for what is no key.
func (w *walker) at(key []byte) (p place, ok bool) {
	state := w.grammar.start()
	for _, b := range key {
		if state, ok = w.grammar.step(state, b); !ok {
			return p, false
		}
	}
	if p.kind, ok = w.grammar.end(state); !ok {
		return p, false
	}
	for side, img := range w.images {
		for _, s := range entries(img, w.kind) {
			for _, b := range key {
				s = img.Next[int(s)*256+int(b)]
			}
			if r := img.RowOf[s]; r != dfa.NoRow {
				p.rows[side] = append(p.rows[side], r)
			}
		}
	}
	p.key = key
	return p, true
}

// improve replaces the examples by nicer ones of the same places.
func (w *walker) improve(workspace string) {
	better := func(p *place, candidates [][]byte) []byte {
		for _, key := range candidates {
			if other, ok := w.at(key); ok && other.id() == p.id() {
				return key
			}
		}
		return p.key
	}
	for i := range w.places {
		p := &w.places[i]
		p.program = better(p, programs(string(p.key)))
		switch w.kind {
		case dfa.Path:
			p.key = better(p, files(string(p.key), workspace))
		case dfa.Address:
			p.key = better(p, knownAddresses())
		case dfa.Host:
			p.key = better(p, knownHosts(string(p.key)))
		}
	}
}
