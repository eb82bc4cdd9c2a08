// SPDX-License-Identifier: Apache-2.0

package dfa

import (
	"encoding/binary"
	"slices"

	"github.com/actplane/actplane/policy/ir"
)

// maxRowEntries bounds the candidate lists of all rows together.
const maxRowEntries = 1 << 20

// maxRowSteps bounds the targets that are looked at for all rows together, which takes
// some tenths of a second.
const maxRowSteps = 1 << 26

// builder makes the rows of an image.
type builder struct {
	p         *ir.Program
	img       *Image
	args      *args
	patterns  []ir.Pattern
	ids       map[homed]int32
	uses      []*use
	tokens    []string // token globs
	at        [][]int  // their positions
	first     []int    // the first image clause of each program clause, and the end
	targetsOf []targetSet
	targets   []targetSet // those with a bit
	live      []bool      // the program clauses that some key can match
	split     bool        // see Compile
	homes     []Start     // of each pattern: see homed
	rows      map[string]int32
	entries   int
	marks     []int // of each pattern, the row that it was last in
	marked    int   // the number of the row that is made
	steps     int
}

func newBuilder(p *ir.Program, split bool) (*builder, error) {
	args, err := assignArgs(p)
	if err != nil {
		return nil, err
	}
	b := &builder{p: p, split: split, img: &Image{}, args: args, ids: map[homed]int32{}, rows: map[string]int32{}, live: make([]bool, len(p.Clauses))}
	b.tokens, b.at = b.args.byToken()
	b.img.ArgWords, b.img.ArgStart = b.args.words(), b.args.starts()
	b.sources()
	b.transforms()
	b.gates()
	b.defaults()
	if err := b.protects(); err != nil {
		return nil, err
	}
	if err := b.clauses(); err != nil {
		return nil, err
	}
	b.rows[encodeRow(&Row{})] = NoRow
	b.img.Rows = []Row{{}, b.unknownRow()}
	return b, nil
}

// row implements rowFunc.
func (b *builder) row(in input, set []int32) (int32, error) {
	var r Row
	if in.kind == Token {
		r = b.tokenRow(set)
	} else {
		r = b.objectRow(in, set)
	}
	most := maxRowSteps
	if !b.split { // a second attempt may follow
		most /= 4
	}
	if b.steps > most {
		return 0, &LimitError{What: "targets to look at for its automaton", Figure: most, Limit: maxRowSteps, More: true, automaton: true}
	}
	key := encodeRow(&r)
	if i, ok := b.rows[key]; ok {
		return i, nil
	}
	for op := range r.Clauses {
		b.entries += len(r.Clauses[op]) + len(r.Allows[op])
	}
	if b.entries += len(r.Protects); b.entries > maxRowEntries {
		return 0, &LimitError{What: "candidates in all rows", Figure: maxRowEntries, Limit: maxRowEntries, More: true, automaton: true}
	}
	i := int32(len(b.img.Rows))
	if i > 0xFFFF {
		return 0, &LimitError{What: "rows", Figure: int(i), Limit: 0xFFFF, automaton: true}
	}
	b.rows[key] = i
	b.img.Rows = append(b.img.Rows, r)
	return i, nil
}

func (b *builder) tokenRow(set []int32) Row {
	r := Row{Tokens: make([]uint64, b.img.ArgWords)}
	for _, id := range set {
		for _, at := range b.at[id] {
			r.Tokens[at/64] |= 1 << (at % 64)
		}
	}
	return r
}

func (b *builder) objectRow(in input, set []int32) Row {
	var r Row
	kind := in.kind
	b.mark(set)
	for _, id := range set {
		if kind.ofPath() && kind != b.homes[id] {
			continue // any, which is there for the targets alone
		}
		u := b.uses[id]
		if b.patterns[id].Kind == ir.ExecProgram {
			r.ExecSources |= u.labels
		} else {
			r.Sources |= u.labels
		}
		if kind.ofPath() {
			r.Lineage |= u.lineages
			r.Declassify |= u.declassify
			r.Endorse |= u.endorse
		}
		for _, g := range u.gates {
			if kind.ofPath() || kind == Device || !g.ref.Arm {
				r.Gates[g.op] = append(r.Gates[g.op], g.ref)
			}
		}
		for _, c := range u.clauses {
			b.candidate(&r, in, c)
		}
		for _, e := range u.protects {
			r.Protects = append(r.Protects, uint16(e))
		}
	}
	if kind != Name {
		for bit, targets := range b.targets {
			if b.excused(targets, in) {
				r.Targets |= 1 << bit
			}
		}
	}
	b.sort(&r)
	return r
}

// mark notes the set of patterns whose row is made.
func (b *builder) mark(set []int32) {
	if b.marks == nil {
		b.marks = make([]int, len(b.patterns))
	}
	b.marked++
	for _, id := range set {
		b.marks[id] = b.marked
	}
}

// candidate adds a clause to the row of the patterns that are marked, and decides its
// targets where that can be done for this key alone.
func (b *builder) candidate(r *Row, in input, clause int) {
	c := &b.p.Clauses[clause]
	if in.kind == Name && c.Effect == ir.Allow {
		return // a name opens nothing
	}
	excused := in.kind != Name && b.excused(b.targetsOf[clause], in)
	b.live[clause] = b.live[clause] || !excused
	if excused && !b.atRunTime(c) {
		return
	}
	b.list(r, clause)
}

func (b *builder) list(r *Row, clause int) {
	op, lists := b.p.Clauses[clause].Op, &r.Clauses
	if b.p.Clauses[clause].Effect == ir.Allow {
		lists = &r.Allows
	}
	for i := b.first[clause]; i < b.first[clause+1]; i++ {
		lists[op] = append(lists[op], uint16(i))
		if op == ir.Connect { // a connect clause covers what is sent later
			lists[ir.Send] = append(lists[ir.Send], uint16(i))
		}
	}
}

// excused tells whether one of the targets holds for a key. Of what is no name
// nothing is known about names, and the reverse.
func (b *builder) excused(targets targetSet, in input) bool {
	b.steps += len(targets) + 1
	endpoint := in.kind == Address || in.kind == Unix || in.kind == Host
	for _, t := range targets {
		if endpoint != (b.patterns[t.id].Kind == ir.Endpoint) || t.not && endpoint && (in.kind == Host) != t.host {
			continue
		}
		if in.kind.ofPath() && in.kind != b.homes[t.id] {
			continue // it is decided where the target's pattern is
		}
		if holds := b.marks[t.id] == b.marked; holds != t.not {
			return true
		}
	}
	return false
}

// sort puts candidates in the order of decision; what a gate loses comes before what it
// gains. What stands behind a clause that always matches is kept, since an event names all
// that match.
func (b *builder) sort(r *Row) {
	for op, list := range r.Clauses {
		slices.SortFunc(list, func(x, y uint16) int {
			if c := int(b.img.Clauses[y].Effect) - int(b.img.Clauses[x].Effect); c != 0 {
				return c
			}
			return int(x) - int(y)
		})
		r.Clauses[op] = slices.Compact(list)
	}
	for op, list := range r.Allows {
		slices.Sort(list)
		r.Allows[op] = slices.Compact(list)
	}
	slices.Sort(r.Protects)
	r.Protects = slices.Compact(r.Protects)
	for op, list := range r.Gates {
		slices.SortFunc(list, compareGates)
		r.Gates[op] = slices.Compact(list)
	}
}

func compareGates(x, y GateRef) int {
	if x.Arm != y.Arm {
		if y.Arm {
			return -1
		}
		return 1
	}
	if c := x.Gate - y.Gate; c != 0 {
		return c
	}
	return x.Arg - y.Arg
}

// unknownRow is the row of a key that cannot be read. Its labels are those of files and
// programs: an endpoint without a name has no source's.
func (b *builder) unknownRow() Row {
	r := Row{Tokens: make([]uint64, b.img.ArgWords)}
	for i := range b.args.count {
		r.Tokens[i/64] |= 1 << (i % 64)
	}
	for id, u := range b.uses {
		switch b.patterns[id].Kind {
		case ir.ExecProgram:
			r.ExecSources |= u.labels
		case ir.File:
			r.Sources |= u.labels
		}
		for _, g := range u.gates {
			if !g.ref.Arm {
				r.Gates[g.op] = append(r.Gates[g.op], g.ref)
			}
		}
		for _, e := range u.protects {
			r.Protects = append(r.Protects, uint16(e))
		}
	}
	for i, c := range b.p.Clauses {
		if c.Effect >= ir.Ask {
			b.list(&r, i)
		}
	}
	b.sort(&r)
	return r
}

// idle lists the program's clauses that no key can match: their targets excuse
// all that their patterns match.
func (b *builder) idle() []int {
	var out []int
	for i, live := range b.live {
		if !live {
			out = append(out, i)
		}
	}
	return out
}

// encodeRow returns a string that is equal for equal rows only.
func encodeRow(r *Row) string {
	var k []byte
	put := func(v uint64) { k = binary.AppendUvarint(k, v) }
	list := func(l []uint16) {
		put(uint64(len(l)))
		for _, c := range l {
			put(uint64(c))
		}
	}
	for _, v := range []uint64{r.Sources, r.ExecSources, r.Lineage, r.Targets, r.Declassify, r.Endorse} {
		put(v)
	}
	list(r.Protects)
	for op := range r.Clauses {
		list(r.Clauses[op])
		list(r.Allows[op])
		put(uint64(len(r.Gates[op])))
		for _, g := range r.Gates[op] {
			arm := uint64(0)
			if g.Arm {
				arm = 1
			}
			put(uint64(g.Gate)<<1 | arm)
			put(uint64(g.Exit + 1))
			put(uint64(g.Arg + 1))
		}
	}
	for _, t := range r.Tokens {
		put(t)
	}
	return string(k)
}
