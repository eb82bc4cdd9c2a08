// SPDX-License-Identifier: Apache-2.0

package dfa

import (
	"fmt"
	"slices"
	"strings"

	"github.com/actplane/actplane/policy/ir"
)

// use is everything that a pattern takes part in.
type use struct {
	clauses  []int // indexes in Program.Clauses
	protects []int // indexes in Image.Protects
	labels   uint64
	lineages uint64
	// Of transforms.
	declassify, endorse uint64
	gates               []gateUse
	target              bool
	opens               bool // one of clauses is an allow
	denies              bool // one of clauses is none
}

type gateUse struct {
	op  ir.Op
	ref GateRef
}

// named tells whether a base-name pattern is live for the name invoked: what
// only opens (gates, lineage, targets, transforms, allow) is not, for anyone can
// make a symlink.
func (u *use) named() bool {
	if u.denies || u.labels != 0 {
		return true
	}
	return slices.ContainsFunc(u.gates, func(g gateUse) bool { return !g.ref.Arm })
}

// targetSet is `target A or target not B or …`, its patterns by number.
type targetSet []targetID

type targetID struct {
	id  int32
	not bool
	// host: of `not`, names are compared, which an address says nothing about.
	host bool
}

func (b *builder) use(p ir.Pattern) *use { return b.uses[b.id(p, b.home(p))] }

// id returns the number of a pattern that is matched at an entry. One can be at both.
func (b *builder) id(p ir.Pattern, home Start) int32 {
	key := homed{p, home}
	id, ok := b.ids[key]
	if !ok {
		id = int32(len(b.patterns))
		b.ids[key] = id
		b.patterns = append(b.patterns, p)
		b.homes = append(b.homes, home)
		b.img.FileNames = b.img.FileNames || home == Base && p.Kind == ir.File
		b.uses = append(b.uses, &use{})
	}
	return id
}

// needs notes the operations that something decides.
func (b *builder) needs(ops ...ir.Op) {
	for _, op := range ops {
		b.img.Ops |= 1 << op
	}
}

// sources notes the patterns of sources. A label that a program or an endpoint
// gives travels in files too, so that any source needs reads and writes.
func (b *builder) sources() {
	for _, s := range b.p.Sources {
		b.use(s.Pattern).labels |= 1 << s.Label
		b.needs(ir.Read, ir.Write, ir.Append)
		switch s.Pattern.Kind {
		case ir.ExecProgram:
			b.needs(ir.Exec)
		case ir.Endpoint:
			b.needs(ir.Connect, ir.Send, ir.Recv)
		}
	}
}

func (b *builder) transforms() {
	for i, l := range b.p.Labels {
		if l.Integrity {
			b.img.Integrity |= 1 << i
		}
		if l.Confines {
			b.img.Confines |= 1 << i
		}
	}
	for _, t := range b.p.Transforms {
		u := b.use(t.Pattern)
		if t.Endorse {
			u.endorse |= 1 << t.Label
		} else {
			u.declassify |= 1 << t.Label
		}
		b.needs(ir.Exec)
	}
}

func (b *builder) gates() {
	for i, g := range b.p.Gates {
		for _, e := range g.Since {
			b.gate(e, GateRef{Gate: i, Exit: -1, Arg: b.args.position(e.Args)})
		}
		b.gate(g.After, GateRef{Gate: i, Arm: true, Exit: g.Exit, Arg: b.args.position(g.After.Args)})
	}
	for i, l := range b.p.Lineages {
		b.use(l).lineages |= 1 << i
		b.needs(ir.Exec)
	}
}

func (b *builder) gate(e ir.Event, ref GateRef) {
	u := b.use(e.Pattern)
	u.gates = append(u.gates, gateUse{e.Op, ref})
	b.needs(e.Op)
	if e.Op == ir.Write { // a file that was appended to has changed
		u.gates = append(u.gates, gateUse{ir.Append, ref})
		b.needs(ir.Append)
	}
}

// defaults makes the image's defaults, the strictest first.
func (b *builder) defaults() {
	for i, d := range b.p.Defaults {
		b.img.Defaults = append(b.img.Defaults, Default{Default: i, Effect: d.Effect, Hold: d.Hold, Op: d.Op, Layer: d.Layer})
		b.needs(d.Op)
		if d.Op == ir.Connect {
			b.needs(ir.Send)
		}
	}
	slices.SortStableFunc(b.img.Defaults, func(x, y Default) int { return int(y.Effect) - int(x.Effect) })
}

// added tells whether a layer was added to a policy in force.
func (b *builder) added(layer int) bool {
	return layer >= 0 && layer < len(b.p.Layers) && b.p.Layers[layer].Added
}

// protects makes the image's protected patterns, one per term.
func (b *builder) protects() error {
	for i, e := range b.p.Protects {
		u := b.use(e.Pattern)
		b.needs(ir.Write, ir.Append, ir.Unlink)
		for _, t := range terms(e.If) {
			u.protects = append(u.protects, len(b.img.Protects))
			b.img.Protects = append(b.img.Protects, Protect{Protect: i, All: t.All, None: t.None, Added: b.added(e.Layer)})
			b.img.Labels |= (t.All | t.None) &^ b.img.Confines
		}
	}
	if n := len(b.img.Protects); n > ir.MaxClauses {
		return &LimitError{What: "protected patterns, each alternative of their conditions counted", Figure: n, Limit: ir.MaxClauses}
	}
	return nil
}

func terms(list []ir.Term) []ir.Term {
	if len(list) == 0 {
		return []ir.Term{{}}
	}
	return list
}

// clauses makes the image's clauses, one per term.
func (b *builder) clauses() error {
	bits := map[string]int{}
	for i := range b.p.Clauses {
		c := &b.p.Clauses[i]
		home := b.homeOf(c)
		u := b.uses[b.id(c.Pattern, home)]
		u.clauses = append(u.clauses, i)
		u.opens = u.opens || c.Effect == ir.Allow
		u.denies = u.denies || c.Effect != ir.Allow
		b.needs(c.Op)
		if c.Op == ir.Connect {
			b.needs(ir.Send)
		}
		b.targetsOf = append(b.targetsOf, b.targetSet(c, home))
		b.first = append(b.first, len(b.img.Clauses))
		clause := b.clause(i, c, bits)
		for _, t := range terms(c.If) {
			clause.All, clause.None = t.All, t.None
			b.img.Labels |= (t.All | t.None) &^ b.img.Confines
			b.img.Clauses = append(b.img.Clauses, clause)
		}
	}
	b.first = append(b.first, len(b.img.Clauses))
	if n := len(b.img.Clauses); n > ir.MaxClauses {
		return &LimitError{What: "clauses, each alternative of their conditions counted", Figure: n, Limit: ir.MaxClauses}
	}
	if n := len(b.targets); n > ir.MaxExecTargets {
		return &LimitError{What: "different target conditions on exec clauses and with host names", Figure: n, Limit: ir.MaxExecTargets}
	}
	return nil
}

func (b *builder) clause(i int, c *ir.Clause, bits map[string]int) Clause {
	out := Clause{
		Clause: i, Rule: c.Rule, Op: c.Op, Effect: c.Effect, Hold: c.Hold, Any: c.Pattern.Any, Arg: b.args.position(c.Args),
		UnlessGates: c.Unless.Gates, UnlessModified: c.Unless.Modified, UnlessUnmodified: c.Unless.NotModified, Target: -1,
		Added: b.added(b.p.LayerOf(i)),
	}
	for _, l := range c.Unless.Lineages {
		out.UnlessLineage |= 1 << l
	}
	if b.atRunTime(c) {
		out.Target = b.target(bits, i, c.Unless.Targets)
	}
	if c.Effect == ir.Allow {
		for bit, d := range b.img.Defaults {
			if ir.Lifts(b.p.LayerOf(i), d.Layer) && (ir.Governs(d.Op, c.Op) || ir.Governs(c.Op, d.Op)) {
				out.Lifts |= 1 << bit
			}
		}
	}
	return out
}

// atRunTime tells whether the targets of a clause can only be decided for an
// event: an exec has several keys, an endpoint can have an address and names.
func (b *builder) atRunTime(c *ir.Clause) bool {
	if c.Op == ir.Exec {
		return len(c.Unless.Targets) > 0
	}
	return slices.ContainsFunc(c.Unless.Targets, func(t ir.Target) bool {
		return t.Pattern.Host || c.Pattern.Host
	})
}

func (b *builder) targetSet(c *ir.Clause, home Start) targetSet {
	var out targetSet
	for _, t := range c.Unless.Targets {
		if c.Op == ir.Exec {
			home = b.home(t.Pattern)
		}
		id := b.id(t.Pattern, home)
		b.uses[id].target = true
		out = append(out, targetID{id, t.Not, t.Pattern.Host})
	}
	return out
}

// target returns the bit of a clause's set of targets.
func (b *builder) target(bits map[string]int, clause int, set []ir.Target) int {
	var names []string
	for _, t := range set {
		names = append(names, fmt.Sprintf("%t %d %t %s", t.Not, t.Pattern.Kind, t.Pattern.Any, t.Pattern.Text))
		if t.Not { // holds for keys that match nothing, which so become a set of their own
			b.use(ir.Pattern{Kind: t.Pattern.Kind, Any: true}).target = true
		}
	}
	slices.Sort(names)
	key := strings.Join(slices.Compact(names), "\x00")
	bit, ok := bits[key]
	if !ok {
		bit = len(b.targets)
		bits[key] = bit
		b.targets = append(b.targets, b.targetsOf[clause])
	}
	return bit
}
