// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
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

// fact is at which places a gate or a lineage comes about, and goes.
type fact struct {
	atom       int
	comes      map[string]bool
	goes       map[string]bool
	exit, kind int
}

// constrain finds which facts imply which others, and notes that the one does not hold
// without the other: as a predicate that never matches.
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
		for _, y := range facts {
			if !c.work.spend(4 + len(x.comes)) {
				return
			}
			if x.atom != y.atom && x.kind == y.kind && x.exit == y.exit && len(x.comes) > 0 && covered(x.comes, y.comes) && covered(y.goes, x.goes) {
				p := predicate{tokens: -1, literals: []literal{{x.atom, true}, {y.atom, false}}}
				slices.SortFunc(p.literals, compareLiterals)
				c.never = append(c.never, p)
			}
		}
	}
}

func covered(some, all map[string]bool) bool {
	for key := range some {
		if !all[key] {
			return false
		}
	}
	return true
}

// lineageFacts are the lineages of one policy: they never go.
func (c *comparison) lineageFacts(side int) (out []*fact) {
	for l, atom := range c.atoms.lineages[side] {
		f := &fact{atom: atom, comes: map[string]bool{}, kind: int(lineageAtom)}
		c.each(side, dfa.Path, func(at string, r *dfa.Row) {
			if r.Lineage>>l&1 == 1 {
				f.comes[at] = true
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
		f := &fact{atom: atom, comes: map[string]bool{}, kind: int(labelAtom)}
		for kind := range c.walks {
			c.each(side, dfa.Start(kind), func(at string, r *dfa.Row) {
				if r.Sources>>l&1 == 1 {
					f.comes["source "+at] = true
				}
				if r.ExecSources>>l&1 == 1 {
					f.comes["exec "+at] = true
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
		f := &fact{atom: atom, comes: map[string]bool{}, goes: map[string]bool{}, exit: gate.Exit, kind: int(gateAtom)}
		for _, kind := range []dfa.Start{dfa.Path, dfa.Name} {
			c.each(side, kind, func(at string, r *dfa.Row) {
				for op, refs := range r.Gates {
					for _, ref := range refs {
						switch key := fmt.Sprintf("%d %s", op, at); {
						case ref.Gate != g:
						case ref.Arm:
							f.comes[key+fmt.Sprintf(" %q", gate.After.Args)] = true
						default:
							f.goes[key+c.staleArgs(side, gate, ref)] = true
						}
					}
				}
			})
		}
		out = append(out, f)
	}
	return out
}

// staleArgs are the arguments with which a program makes a gate stale; where there are
// several possibilities they are like no others.
func (c *comparison) staleArgs(side int, g *ir.Gate, ref dfa.GateRef) string {
	var args [][]string
	for _, e := range g.Since {
		if len(e.Args) > 0 {
			args = append(args, e.Args)
		}
	}
	switch {
	case ref.Arg < 0:
		return " []"
	case len(args) == 1:
		return fmt.Sprintf(" %q", args[0])
	}
	return fmt.Sprintf(" %d:%d", side, ref.Arg)
}

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
		if atoms[p.literals[0].atom] && atoms[p.literals[1].atom] {
			out = append(out, p)
		}
	}
	return out
}
