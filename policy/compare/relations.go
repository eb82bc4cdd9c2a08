// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"maps"
	"slices"

	"github.com/actplane/actplane/policy/dfa"
	"github.com/actplane/actplane/policy/ir"
)

// What is known of the facts beside their names: a label that was renamed is the same
// fact, and a gate that more makes stale is fresh only when one that less makes stale is.
// Both are read off the places, so that patterns count by what they match.

// rename makes labels of one policy the same as labels of the other under another name,
// if the same gives and takes them.
func (c *comparison) rename() {
	a := c.atoms
	before, after := c.labelSigns(0), c.labelSigns(1)
	for i, sign := range before {
		if sign == "" || a.list[a.labels[0][i]].at[1] >= 0 {
			continue
		}
		for j, other := range after {
			if atom := a.labels[1][j]; sign == other && a.list[atom].at[0] < 0 {
				a.list[a.labels[0][i]].at[1] = j
				a.labels[1][j] = a.labels[0][i]
				a.list[atom].at[1] = -1
				break
			}
		}
	}
}

// labelSigns tells for each label where and how it is given and taken; "" for one that
// nothing gives.
func (c *comparison) labelSigns(side int) []string {
	out := make([]string, len(c.sides[side].Program.Labels))
	given := make([]bool, len(out))
	for kind, w := range c.walks {
		if w == nil { // of tokens
			continue
		}
		for i := range w.places {
			if !c.work.spend(8 * len(out)) {
				return make([]string, len(out))
			}
			var sources, execs, clears, sets uint64
			for _, r := range rowsOf(c.sides[side].Image, w.places[i].rows[side]) {
				sources, execs, clears, sets = sources|r.Sources, execs|r.ExecSources, clears|r.Declassify, sets|r.Endorse
			}
			for l := range out {
				for verb, set := range [...]uint64{clears, sources, execs, sets} {
					if set>>l&1 == 1 {
						out[l] += fmt.Sprintf("%d:%d:%d ", kind, i, verb)
						given[l] = given[l] || verb > 0
					}
				}
			}
		}
	}
	for l := range out {
		if !given[l] {
			out[l] = ""
		}
	}
	return out
}

// fact is by which events a gate, a lineage or a label comes about, and goes.
type fact struct {
	atom  int
	kind  atomKind
	exit  int // of a gate: the status that its program must end with, -1 for none
	comes occasions
	goes  occasions
}

// occasions are events by where they happen: the tokens that their programs must have, at
// each a list for each event.
type occasions map[string][][]string

func (o occasions) add(at string, args []string) { o[at] = append(o[at], args) }

// constrain finds which facts imply which others, or one of several, and notes that the
// one does not hold without these: as a predicate that never matches.
func (c *comparison) constrain() {
	if !c.complete {
		return
	}
	var facts []*fact
	for side := range c.sides {
		facts = append(facts, c.lineageFacts(side)...)
		facts = append(facts, c.gateFacts(side)...)
		facts = append(facts, c.labelFacts(side)...)
	}
	for _, x := range facts {
		var parts []*fact
		whole := false
		for _, y := range facts {
			if !c.work.spend(4 + len(x.comes)) {
				return
			}
			if x.atom == y.atom || !c.outlasts(y, x) {
				continue
			}
			if parts = append(parts, y); c.covered(x.comes, y.comes) {
				c.exclude(x, y)
				whole = true
			}
		}
		if some := c.cover(x, parts); !whole && some != nil {
			c.exclude(x, some...)
		}
	}
}

// exclude notes that a fact does not hold without one of some others.
func (c *comparison) exclude(x *fact, others ...*fact) {
	p := predicate{tokens: -1, literals: []literal{{x.atom, true}}}
	for _, y := range others {
		p.literals = append(p.literals, literal{y.atom, false})
	}
	slices.SortFunc(p.literals, compareLiterals)
	c.never = append(c.never, p)
}

// outlasts tells whether one fact, brought about by an event that brings another one about
// as well, holds for at least as long as that. Programs that are tampered with after they
// have opened a gate are left out.
func (c *comparison) outlasts(y, x *fact) bool {
	if x.kind != y.kind && (x.kind != lineageAtom || y.kind != gateAtom) { // what ran in the lineage has run
		return false
	}
	return (y.exit < 0 || x.exit == y.exit) && len(x.comes) > 0 && c.covered(y.goes, x.goes)
}

// cover picks some of several facts, so that each event which brings x about brings about
// one of them; nil if there is none for one of the events.
func (c *comparison) cover(x *fact, parts []*fact) (some []*fact) {
	open := maps.Clone(x.comes)
	for _, y := range parts {
		before := len(open)
		maps.DeleteFunc(open, func(at string, list [][]string) bool { return c.covered(occasions{at: list}, y.comes) })
		if len(open) < before {
			some = append(some, y)
		}
		if !c.work.spend(4 + before) {
			return nil
		}
	}
	if len(open) > 0 {
		return nil
	}
	return some
}

// covered tells whether each of some events is one of the others as well.
func (c *comparison) covered(some, all occasions) bool {
	for at, list := range some {
		for _, args := range list {
			if !slices.ContainsFunc(all[at], func(less []string) bool { return c.tokens.implies(args, less) }) {
				return false
			}
		}
	}
	return true
}

// lineageFacts are the lineages of one policy: they never go.
func (c *comparison) lineageFacts(side int) (out []*fact) {
	for l, atom := range c.atoms.lineages[side] {
		f := &fact{atom: atom, comes: occasions{}, kind: lineageAtom, exit: -1}
		c.each(side, dfa.Path, func(at string, r *dfa.Row) {
			if r.Lineage>>l&1 == 1 {
				f.comes.add(happens(ir.Exec, at), nil)
			}
		})
		out = append(out, f)
	}
	return out
}

// labelFacts are the labels of one policy that nothing takes and that flow like all.
func (c *comparison) labelFacts(side int) (out []*fact) {
	p := c.sides[side].Program
	for l, atom := range c.atoms.labels[side] {
		if p.Labels[l].Integrity || slices.ContainsFunc(p.Transforms, func(t ir.Transform) bool { return t.Label == l }) || c.atoms.list[atom].at[1-side] >= 0 {
			continue
		}
		f := &fact{atom: atom, comes: occasions{}, kind: labelAtom, exit: -1}
		for kind := range c.walks {
			c.each(side, dfa.Start(kind), func(at string, r *dfa.Row) {
				if r.Sources>>l&1 == 1 {
					f.comes.add("source "+at, nil)
				}
				if r.ExecSources>>l&1 == 1 {
					f.comes.add("exec "+at, nil)
				}
			})
		}
		out = append(out, f)
	}
	return out
}

// gateFacts are the gates of one policy.
func (c *comparison) gateFacts(side int) (out []*fact) {
	for g, atom := range c.atoms.gates[side] {
		gate := &c.sides[side].Program.Gates[g]
		f := &fact{atom: atom, comes: occasions{}, goes: occasions{}, exit: gate.Exit, kind: gateAtom}
		for _, kind := range []dfa.Start{dfa.Path, dfa.Name} {
			c.each(side, kind, func(at string, r *dfa.Row) {
				for op, refs := range r.Gates {
					for _, ref := range refs {
						if ref.Gate == g {
							f.reached(gate, ir.Op(op), at, ref.Arm, c.tokens.last[side][ref.Arg])
						}
					}
				}
			})
		}
		out = append(out, f)
	}
	return out
}

// reached notes an event of a gate.
func (f *fact) reached(g *ir.Gate, op ir.Op, at string, arms bool, args []string) {
	if arms {
		f.comes.add(happens(op, at), args)
		return
	}
	f.goes.add(happens(op, at), args)
	// No name goes away without being written. If removing a file armed the gate, then
	// by the write, and so before the name goes.
	if op == ir.Write && g.After.Op == ir.Exec {
		f.goes.add(happens(ir.Unlink, at), nil)
	}
}

func happens(op ir.Op, at string) string { return fmt.Sprintf("%d %s", op, at) }

// each calls f for the rows of all places of a kind.
func (c *comparison) each(side int, kind dfa.Start, f func(at string, r *dfa.Row)) {
	if c.walks[kind] == nil { // of tokens
		return
	}
	for i := range c.walks[kind].places {
		if !c.work.spend(32) {
			return
		}
		for _, r := range rowsOf(c.sides[side].Image, c.walks[kind].places[i].rows[side]) {
			f(fmt.Sprintf("%d:%d", kind, i), r)
		}
	}
}

// about lists the constraints on facts that some predicates are about.
func (c *comparison) about(lists ...[]predicate) (out []predicate) {
	atoms := map[int]bool{}
	for _, list := range lists {
		for _, p := range list {
			for _, l := range p.literals {
				atoms[l.atom] = true
			}
		}
	}
	for _, p := range c.never {
		if !slices.ContainsFunc(p.literals, func(l literal) bool { return !atoms[l.atom] }) {
			out = append(out, p)
		}
	}
	return out
}
