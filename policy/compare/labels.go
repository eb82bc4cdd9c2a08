// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"reflect"
	"slices"

	"github.com/actplane/actplane/policy/dfa"
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/model"
)

// flow is a statement that gives or takes a label.
type flow struct {
	label   int
	pattern ir.Pattern
	verb    string
	has     func(r *dfa.Row, bit int) bool
	op      ir.Op
	kinds   []dfa.Start
}

func flows(p *ir.Program) (out []flow) {
	for _, s := range p.Sources {
		f := flow{label: s.Label, pattern: s.Pattern, verb: "gives", op: ir.Read, kinds: []dfa.Start{dfa.Path}}
		f.has = func(r *dfa.Row, bit int) bool { return r.Sources>>bit&1 == 1 }
		switch s.Pattern.Kind {
		case ir.ExecProgram:
			f.op = ir.Exec
			f.has = func(r *dfa.Row, bit int) bool { return r.ExecSources>>bit&1 == 1 }
		case ir.Endpoint:
			f.op, f.kinds = ir.Recv, []dfa.Start{dfa.Address, dfa.Unix, dfa.Host}
		}
		out = append(out, f)
	}
	for _, t := range p.Transforms {
		f := flow{label: t.Label, pattern: t.Pattern, verb: "takes", op: ir.Exec, kinds: []dfa.Start{dfa.Path}}
		f.has = func(r *dfa.Row, bit int) bool { return r.Declassify>>bit&1 == 1 }
		if t.Endorse {
			f.verb = "endorses"
			f.has = func(r *dfa.Row, bit int) bool { return r.Endorse>>bit&1 == 1 }
		}
		out = append(out, f)
	}
	return out
}

// labels finds what gives or takes a label under one policy only, where that matters,
// and what is decided otherwise for it.
func (c *comparison) labels() (out []LabelChange) {
	for side := range c.sides {
		for _, f := range flows(c.sides[side].Program) {
			atom := c.atoms.labels[side][f.label]
			if !c.matters(c.atoms.list[atom].at) {
				continue
			}
			steps := c.onlyHere(side, &f, atom)
			if steps == nil {
				continue
			}
			change := LabelChange{Label: c.sides[side].Program.Labels[f.label].Name, Verb: f.verb, Trace: written(steps), New: side == 1}
			if slices.ContainsFunc(out, func(x LabelChange) bool { return reflect.DeepEqual(x, change) }) {
				continue
			}
			out = append(out, change)
			c.follow(side, &f, atom, steps)
		}
	}
	return out
}

// matters tells whether it makes a difference who has a label: a clause of either policy
// asks for it, and both know it, for what is new is seen in the clauses; or one asks for
// a label that is lost with any other which is gained.
func (c *comparison) matters(at [2]int) bool {
	tested := false
	for side, bit := range at {
		img := c.sides[side].Image
		if img.Labels&img.Integrity != 0 {
			return true
		}
		tested = tested || bit >= 0 && img.Labels>>bit&1 == 1
	}
	return tested && at[0] >= 0 && at[1] >= 0
}

// onlyHere returns steps by which this statement gives or takes the label, and the other
// policy does not.
func (c *comparison) onlyHere(side int, f *flow, atom int) [][]string {
	at := c.atoms.list[atom].at
	here := func(p *place, s int) bool {
		return at[s] >= 0 && slices.ContainsFunc(rowsOf(c.sides[s].Image, p.rows[s]), func(r *dfa.Row) bool { return f.has(r, at[s]) })
	}
	kinds := f.kinds
	if f.op == ir.Exec {
		kinds = append(slices.Clip(kinds), dfa.Name)
	}
	for _, kind := range kinds {
		for i := range c.walks[kind].places {
			p := &c.walks[kind].places[i]
			if !c.work.spend(8 * (1 + len(p.rows[0]) + len(p.rows[1]))) {
				return nil
			}
			if p.kind != model.Ordinary || !here(p, side) || here(p, 1-side) {
				continue
			}
			q := &question{op: f.op, place: *p}
			if kind == dfa.Name { // the name of a program that does not have the label by its own
				neither := func(p place) bool { return p.kind == model.Ordinary && !here(&p, 0) && !here(&p, 1) }
				j := slices.IndexFunc(c.walks[dfa.Path].places, neither)
				if j < 0 {
					continue
				}
				q.place, q.name = c.walks[dfa.Path].places[j], p
			}
			if named(f, q) {
				return q.steps(nil)
			}
		}
	}
	return nil
}

// named asks the model whether the statement's pattern names an object.
func named(f *flow, q *question) bool {
	p := &ir.Program{Rules: []ir.Rule{{}}, Clauses: []ir.Clause{{Effect: ir.Block, Op: f.op, Pattern: f.pattern}}}
	x := &model.Query{Op: f.op, Object: q.object()}
	if q.name != nil {
		x.Invoked = string(q.name.key)
	}
	d, err := x.Decision(p)
	return err == nil && d.Denied()
}

// follow looks for decisions that differ since the process has the label under one
// policy, and under the other one has not.
func (c *comparison) follow(side int, f *flow, atom int, before [][]string) {
	holds := [2]bool{}
	holds[side] = f.verb != "takes"
	holds[1-side] = !holds[side]
	if f.verb == "takes" {
		gives := c.gives(atom, nil)
		if gives == nil {
			return
		}
		before = slices.Concat(gives, before)
	}
	for op := range ir.NumOps {
		seen := map[string]bool{}
		for q := range c.questions(op) {
			x := c.problem(q).given(atom, holds)
			if key := x.key(); !x.same() && !seen[key] {
				seen[key] = true
				for _, a := range c.differ(x, false) {
					c.consequence(q, a, before)
				}
			}
		}
	}
}

// manners lists how an event can happen to an object of a kind; none where policies
// have no say.
func manners(op ir.Op, kind model.SpecialKind) []manner {
	switch {
	case kind == model.Exempt, kind == model.Kept && (op >= ir.Connect || changes(op)):
		return nil
	case op == ir.Exec:
		return []manner{plainly, mapped}
	case kind == model.Device || kind == model.Sink:
		return []manner{asDevice}
	}
	return []manner{plainly}
}

func kindsOf(op ir.Op) []dfa.Start {
	if op < ir.Connect {
		return []dfa.Start{dfa.Path}
	}
	return []dfa.Start{dfa.Address, dfa.Unix, dfa.Host}
}

// given is a problem in which an atom is known for each policy.
func (p *problem) given(atom int, holds [2]bool) *problem {
	out := &problem{}
	for side, v := range p {
		known := func(x predicate) (predicate, bool) {
			rest := x
			rest.literals = nil
			for _, l := range x.literals {
				if l.atom == atom && l.want != holds[side] {
					return x, false
				} else if l.atom != atom {
					rest.literals = append(rest.literals, l)
				}
			}
			return rest, true
		}
		for _, x := range v.clauses {
			if y, ok := known(x); ok {
				out[side].clauses = append(out[side].clauses, y)
			}
		}
		for _, d := range v.defaults {
			lifters := d.lifters
			d.lifters = nil
			never := false
			for _, x := range lifters {
				if y, ok := known(x); ok {
					d.lifters = append(d.lifters, y)
					never = never || len(y.literals) == 0 && y.tokens < 0
				}
			}
			if !never {
				out[side].defaults = append(out[side].defaults, d)
			}
		}
	}
	return out
}

// consequence notes a difference that follows from a label, if a trace shows it and
// nothing else has shown it.
func (c *comparison) consequence(q *question, a answer, before [][]string) {
	f := &finding{question: *q, answer: a}
	for _, steps := range c.histories(f) {
		trace := slices.Concat(steps, before, q.steps(a.argv))
		decided, ok := c.act(trace)
		if !ok || decided[0].Effect == decided[1].Effect && holdOf(decided[0]) == holdOf(decided[1]) {
			continue
		}
		key := decider(decided[0]) + "\n" + decider(decided[1])
		if known := c.byDecider[key]; known != nil {
			if !slices.Contains(known.Ops, q.op) && len(known.Trace) > 0 {
				known.Ops = append(known.Ops, q.op)
			}
			return
		}
		f.Old, f.New, f.Direction = decided[0], decided[1], direction(decided[0], decided[1])
		f.Ops, f.Trace = []ir.Op{q.op}, written(trace)
		c.byDecider[key] = f
		c.findings = append(c.findings, f)
		return
	}
}
