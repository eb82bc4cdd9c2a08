// SPDX-License-Identifier: Apache-2.0

package dfa

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/actplane/actplane/policy/ir"
)

// maxRowEntries bounds the candidate lists of all rows together.
const maxRowEntries = 1 << 20

// use is everything that a pattern takes part in.
type use struct {
	clauses  []int // indexes in Program.Clauses
	labels   uint64
	lineages uint64
	gates    []gateUse
	target   bool
}

type gateUse struct {
	op  ir.Op
	ref GateRef
}

// named tells whether a base-name pattern is live for the name invoked: what
// only opens (gates, lineage, targets) is not, for anyone can make a symlink.
func (u *use) named() bool {
	if len(u.clauses) > 0 || u.labels != 0 {
		return true
	}
	return slices.ContainsFunc(u.gates, func(g gateUse) bool { return !g.ref.Arm })
}

// builder makes the rows of an image.
type builder struct {
	p        *ir.Program
	img      *Image
	args     *args
	patterns []ir.Pattern
	ids      map[ir.Pattern]int32
	uses     []*use
	tokens   []string // token globs
	at       [][]int  // their positions
	first    []int    // the first image clause of each program clause, and the end
	targets  [][]ir.Target
	rows     map[string]int32
	entries  int
}

func newBuilder(p *ir.Program) (*builder, error) {
	args, err := assignArgs(p)
	if err != nil {
		return nil, err
	}
	b := &builder{p: p, img: &Image{}, args: args, ids: map[ir.Pattern]int32{}, rows: map[string]int32{}}
	b.tokens, b.at = b.args.byToken()
	b.img.ArgWords, b.img.ArgStart = b.args.words(), b.args.starts()
	b.sources()
	b.gates()
	for i, l := range p.Lineages {
		b.use(l).lineages |= 1 << i
		b.img.Ops |= 1 << ir.Exec
	}
	if err := b.clauses(); err != nil {
		return nil, err
	}
	b.rows[encodeRow(&Row{})] = NoRow
	b.img.Rows = []Row{{}, b.unknownRow()}
	return b, nil
}

func (b *builder) use(p ir.Pattern) *use {
	id, ok := b.ids[p]
	if !ok {
		id = int32(len(b.patterns))
		b.ids[p] = id
		b.patterns = append(b.patterns, p)
		b.uses = append(b.uses, &use{})
	}
	return b.uses[id]
}

// sources notes the patterns of sources. A label that a program or an endpoint
// gives travels in files too, so that any source needs reads and writes.
func (b *builder) sources() {
	for _, s := range b.p.Sources {
		b.use(s.Pattern).labels |= 1 << s.Label
		b.img.Ops |= 1<<ir.Read | 1<<ir.Write | 1<<ir.Append
		switch s.Pattern.Kind {
		case ir.ExecProgram:
			b.img.Ops |= 1 << ir.Exec
		case ir.Endpoint:
			b.img.Ops |= 1<<ir.Connect | 1<<ir.Send | 1<<ir.Recv
		}
	}
}

func (b *builder) gates() {
	for i, g := range b.p.Gates {
		for _, e := range g.Since {
			b.gate(e, GateRef{Gate: i, Exit: -1, Arg: b.args.position(e.Args)})
		}
		b.gate(g.After, GateRef{Gate: i, Arm: true, Exit: g.Exit, Arg: b.args.position(g.After.Args)})
	}
}

func (b *builder) gate(e ir.Event, ref GateRef) {
	u := b.use(e.Pattern)
	u.gates = append(u.gates, gateUse{e.Op, ref})
	b.img.Ops |= 1 << e.Op
}

// clauses makes the image's clauses, one per term.
func (b *builder) clauses() error {
	bits := map[string]int{}
	for i, c := range b.p.Clauses {
		u := b.use(c.Pattern)
		u.clauses = append(u.clauses, i)
		b.img.Ops |= 1 << c.Op
		if c.Op == ir.Connect {
			b.img.Ops |= 1 << ir.Send
		}
		for _, t := range c.Unless.Targets {
			b.use(t.Pattern).target = true
		}
		b.first = append(b.first, len(b.img.Clauses))
		clause := Clause{Clause: i, Rule: c.Rule, Effect: c.Effect, Any: c.Pattern.Any, Arg: b.args.position(c.Args), UnlessGates: c.Unless.Gates, Target: -1}
		for _, l := range c.Unless.Lineages {
			clause.UnlessLineage |= 1 << l
		}
		if c.Op == ir.Exec && len(c.Unless.Targets) > 0 {
			clause.Target = b.target(bits, c.Unless.Targets)
		}
		terms := c.If
		if len(terms) == 0 {
			terms = []ir.Term{{}}
		}
		for _, t := range terms {
			clause.All, clause.None = t.All, t.None
			b.img.Labels |= t.All | t.None
			b.img.Clauses = append(b.img.Clauses, clause)
		}
	}
	b.first = append(b.first, len(b.img.Clauses))
	if n := len(b.img.Clauses); n > ir.MaxClauses {
		return &LimitError{What: "clauses, each alternative of their conditions counted", Figure: n, Limit: ir.MaxClauses}
	}
	if n := len(b.targets); n > ir.MaxExecTargets {
		return &LimitError{What: "different target conditions on exec clauses", Figure: n, Limit: ir.MaxExecTargets}
	}
	return nil
}

// target returns the bit of an exec clause's set of targets.
func (b *builder) target(bits map[string]int, set []ir.Target) int {
	var names []string
	for _, t := range set {
		names = append(names, fmt.Sprintf("%t %t %s", t.Not, t.Pattern.Any, t.Pattern.Text))
		if t.Not { // holds for paths that match nothing, which so become a set of their own
			b.use(ir.Pattern{Kind: ir.ExecProgram, Any: true}).target = true
		}
	}
	slices.Sort(names)
	key := strings.Join(slices.Compact(names), "\x00")
	bit, ok := bits[key]
	if !ok {
		bit = len(b.targets)
		bits[key] = bit
		b.targets = append(b.targets, set)
	}
	return bit
}

// row implements rowFunc.
func (b *builder) row(kind Start, set []int32) (int32, error) {
	var r Row
	if kind == Token {
		r = b.tokenRow(set)
	} else {
		r = b.objectRow(kind, set)
	}
	key := encodeRow(&r)
	if i, ok := b.rows[key]; ok {
		return i, nil
	}
	for _, list := range r.Clauses {
		b.entries += len(list)
	}
	if b.entries > maxRowEntries {
		return 0, &LimitError{What: "candidates in all rows", Figure: maxRowEntries, Limit: maxRowEntries, More: true}
	}
	i := int32(len(b.img.Rows))
	if i > 0xFFFF {
		return 0, &LimitError{What: "rows", Figure: int(i), Limit: 0xFFFF}
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

func (b *builder) objectRow(kind Start, set []int32) Row {
	var r Row
	for _, id := range set {
		u := b.uses[id]
		if b.patterns[id].Kind == ir.ExecProgram {
			r.ExecSources |= u.labels
		} else {
			r.Sources |= u.labels
		}
		if kind == Path {
			r.Lineage |= u.lineages
		}
		for _, g := range u.gates {
			if kind == Path || !g.ref.Arm {
				r.Gates[g.op] = append(r.Gates[g.op], g.ref)
			}
		}
		for _, c := range u.clauses {
			b.candidate(&r, c, set)
		}
	}
	if kind == Path {
		for bit, targets := range b.targets {
			if b.excused(targets, set) {
				r.Targets |= 1 << bit
			}
		}
	}
	b.sort(&r)
	return r
}

// candidate adds a clause to the row of a set of patterns. Targets of all but
// exec clauses are decided here.
func (b *builder) candidate(r *Row, clause int, set []int32) {
	c := &b.p.Clauses[clause]
	if c.Op != ir.Exec && b.excused(c.Unless.Targets, set) {
		return
	}
	b.list(r, clause)
}

func (b *builder) list(r *Row, clause int) {
	op := b.p.Clauses[clause].Op
	for i := b.first[clause]; i < b.first[clause+1]; i++ {
		r.Clauses[op] = append(r.Clauses[op], uint16(i))
		if op == ir.Connect { // a connect clause covers what is sent later
			r.Clauses[ir.Send] = append(r.Clauses[ir.Send], uint16(i))
		}
	}
}

func (b *builder) excused(targets []ir.Target, set []int32) bool {
	return slices.ContainsFunc(targets, func(t ir.Target) bool {
		_, holds := slices.BinarySearch(set, b.ids[t.Pattern])
		return holds != t.Not
	})
}

// sort puts candidates in the order of decision and drops what stands behind a
// clause that always matches; what a gate loses comes before what it gains.
func (b *builder) sort(r *Row) {
	for op, list := range r.Clauses {
		slices.SortFunc(list, func(x, y uint16) int {
			if c := int(b.img.Clauses[y].Effect) - int(b.img.Clauses[x].Effect); c != 0 {
				return c
			}
			return int(x) - int(y)
		})
		list = slices.Compact(list)
		// A program that is mapped and not run is no business of the word any.
		ends := func(i uint16) bool {
			return b.img.Clauses[i].always() && !(ir.Op(op) == ir.Exec && b.img.Clauses[i].Any)
		}
		if i := slices.IndexFunc(list, ends); i >= 0 {
			list = list[:i+1]
		}
		r.Clauses[op] = list
	}
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

// always tells whether the clause matches whenever its pattern does.
func (c *Clause) always() bool {
	return c.All == 0 && c.None == 0 && c.Arg < 0 && c.UnlessLineage == 0 && len(c.UnlessGates) == 0 && c.Target < 0
}

// unknownRow is the row of a key that cannot be read.
func (b *builder) unknownRow() Row {
	r := Row{Tokens: make([]uint64, b.img.ArgWords)}
	for i := range b.args.count {
		r.Tokens[i/64] |= 1 << (i % 64)
	}
	for id, u := range b.uses {
		if b.patterns[id].Kind == ir.ExecProgram {
			r.ExecSources |= u.labels
		} else {
			r.Sources |= u.labels
		}
		for _, g := range u.gates {
			if !g.ref.Arm {
				r.Gates[g.op] = append(r.Gates[g.op], g.ref)
			}
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

// encodeRow returns a string that is equal for equal rows only.
func encodeRow(r *Row) string {
	var k []byte
	put := func(v uint64) { k = binary.AppendUvarint(k, v) }
	for _, v := range []uint64{r.Sources, r.ExecSources, r.Lineage, r.Targets} {
		put(v)
	}
	for op := range r.Clauses {
		put(uint64(len(r.Clauses[op])))
		for _, c := range r.Clauses[op] {
			put(uint64(c))
		}
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
