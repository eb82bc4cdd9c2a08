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
	rows [2][]uint16
	kind model.SpecialKind
	key  []byte // a short example
	of   *walker
}

// object is the example, as steps name it.
func (p *place) object(program bool) string { return object(p.of.kind, p.of.example(p, program)) }

// walker walks the product of all automata for one kind of key and its grammar.
type walker struct {
	images  [2]*dfa.Image
	kind    dfa.Start
	grammar grammar
	bytes   []byte // one of each class; nil where the grammar's order is another at each byte

	workspace string // where examples are, if they can be

	work   *budget
	tuples tuples // the states: the grammar's, then those of the automata
	from   []step
	split  int             // how many automata are the old policy's
	found  map[string]bool // the places, by what they are
	what   []byte          // of the present one
	places []place
}

// step is how the search came to a state.
type step struct {
	parent int32
	over   byte
}

// walk finds the places of all keys of a kind, each with a short example. It is
// complete unless more than limit states of the product are needed, or more work than
// there may be.
func walk(images [2]*dfa.Image, kind dfa.Start, g grammar, workspace string, limit int, work *budget) (w *walker, complete bool) {
	w = &walker{images: images, kind: kind, grammar: g, workspace: workspace, found: map[string]bool{}, work: work}
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
	w.tuples.width = len(first)
	w.visit(first, step{parent: -1})
	at := 0
	for ; at < w.tuples.count && at < limit && !work.spent(); at++ {
		w.leave(int32(at))
	}
	complete = at == w.tuples.count
	w.tuples, w.from = tuples{}, nil // which take much memory
	return w, complete
}

// entries are the states in which an image's automata begin with a kind of key.
func entries(img *dfa.Image, kind dfa.Start) []uint16 {
	switch kind {
	case dfa.Host:
		return []uint16{img.Host}
	case dfa.Path:
		if base := img.Start[dfa.Base]; base != dfa.Dead {
			return []uint16{img.Start[kind], base}
		}
	}
	return []uint16{img.Start[kind]}
}

// leave follows each class of bytes from a state.
func (w *walker) leave(at int32) {
	tuple := slices.Clone(w.tuples.at(int(at)))
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
		w.work.spend(64 + 4*len(tuple)) // that is seldom in a cache
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
	if !w.tuples.add(tuple) {
		return
	}
	w.from = append(w.from, from)
	kind, ok := w.grammar.end(tuple[0])
	if !ok {
		return
	}
	if w.describe(kind, tuple[1:]); !w.found[string(w.what)] {
		w.found[string(w.what)] = true
		w.places = append(w.places, w.place(kind, tuple[1:], w.spell(int32(w.tuples.count-1))))
	}
}

// describe notes what the states of all automata, at the end of a key, tell apart.
func (w *walker) describe(kind model.SpecialKind, states []uint16) {
	w.what = append(w.what[:0], byte(kind))
	for i, s := range states {
		w.what = binary.LittleEndian.AppendUint16(w.what, w.images[w.side(i+1)].RowOf[s])
	}
}

func (w *walker) place(kind model.SpecialKind, states []uint16, key []byte) place {
	p := place{kind: kind, key: key, of: w}
	for i, s := range states {
		side := w.side(i + 1)
		if r := w.images[side].RowOf[s]; r != dfa.NoRow {
			p.rows[side] = append(p.rows[side], r)
		}
	}
	return p
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

// same tells whether a key comes to the same place as another.
func (w *walker) same(key, other []byte) bool {
	if !w.describeKey(key) {
		return false
	}
	what := string(w.what)
	return w.describeKey(other) && string(w.what) == what
}

// describeKey is describe for the end of a key; it returns false for what is none.
func (w *walker) describeKey(key []byte) bool {
	state, ok := w.grammar.start(), true
	for _, b := range key {
		if state, ok = w.grammar.step(state, b); !ok {
			return false
		}
	}
	kind, ok := w.grammar.end(state)
	if !ok {
		return false
	}
	var states []uint16
	for _, img := range w.images {
		for _, s := range entries(img, w.kind) {
			for _, b := range key {
				s = img.Next[int(s)*256+int(b)]
			}
			states = append(states, s)
		}
	}
	w.describe(kind, states)
	return true
}

// example is a nicer key of the same place, if one is known: of a program, and else of
// a file or an endpoint.
func (w *walker) example(p *place, program bool) []byte {
	var candidates [][]byte
	switch {
	case w.kind == dfa.Path && program:
		candidates = programs(string(p.key), w.workspace)
	case w.kind == dfa.Path:
		candidates = files(string(p.key), w.workspace)
	case w.kind == dfa.Address:
		candidates = knownAddresses()
	case w.kind == dfa.Host:
		candidates = knownHosts(string(p.key))
	}
	for _, key := range candidates {
		if !w.work.spend(4 * (len(key) + len(p.key)) * (1 + len(p.rows[0]) + len(p.rows[1]))) {
			break
		}
		if w.same(key, p.key) {
			return key
		}
	}
	return p.key
}
