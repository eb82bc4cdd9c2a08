// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/actplane/actplane/policy/dfa"
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/model"
	"github.com/actplane/actplane/policy/pattern"
)

// The processes of an example: the one that it is about, and one that does what must
// have happened before, with labels of its own.
const (
	subject = "agent"
	helper  = "helper"
	// visitor comes from outside, so that no rule is about what it opens.
	visitor = "visitor"
)

// shown gives a finding its example: a trace that comes to it from the beginning, or
// else the event with the state that it needs.
func (c *comparison) shown(f *finding) Difference {
	d := f.Difference
	if len(d.Trace) > 0 {
		return d
	}
	last := f.question.steps(f.answer.argv)
	if f.question.manner == unresolved {
		d.Note = "of a file whose path cannot be resolved, or is too long"
	} else {
		histories := c.histories(f)
		for _, end := range [][][]string{last, f.question.received()} {
			for _, steps := range histories {
				if decided, ok := c.leads(slices.Concat(steps, end), f); ok && end != nil {
					d.Old, d.New = decided[0], decided[1]
					d.Trace = written(slices.Concat(steps, end))
					return d
				}
			}
		}
		d.Note = "as an event by itself, and not with the others that the step consists of"
		if c.work.spent() {
			d.Note = "by which steps it comes about was not looked for"
		}
	}
	d.Trace = written(last)
	for side, decision := range []*model.Decision{&d.Old, &d.New} {
		if t, err := c.query(side, &f.question, f.answer).Decision(c.sides[side].Program); err == nil {
			*decision = t
		}
	}
	if d.Supposed = c.supposed(f); len(d.Supposed) > 0 {
		d.Note = ""
	}
	return d
}

func written(steps [][]string) (out []string) {
	for _, words := range steps {
		out = append(out, model.WriteStep(words))
	}
	return out
}

// steps are those of the event itself: a program is run by another name through a link.
func (q *question) steps(argv []string) [][]string {
	op, where := q.op.String(), q.object()
	if q.op != ir.Exec {
		return [][]string{{subject, op, where}}
	}
	var out [][]string
	if q.name != nil {
		link := "/usr/local/bin/" + string(q.name.key)
		out, where = append(out, []string{helper, "symlink", where, link}), link
	}
	if q.manner == mapped {
		return append(out, []string{subject, "mapexec", where})
	}
	return append(out, slices.Concat([]string{subject, op, where}, argv))
}

// received are steps in which the event happens alone, where opening the file by its
// path is an event that policies decide as well: through a descriptor that came from
// elsewhere. nil if it has none.
func (q *question) received() [][]string {
	mode, op := "", ""
	switch q.op {
	case ir.Read:
		mode, op = "r", "fdread"
	case ir.Write:
		mode, op = "w", "fdwrite"
	case ir.Append:
		mode, op = "a", "fdwrite"
	default:
		return nil
	}
	return [][]string{
		{visitor, "enter"}, {visitor, "fdopen", "file", mode, q.object()}, {visitor, "fdpass", "file", subject}, {subject, op, "file"},
	}
}

// leads tells whether steps make sense under both policies, are not refused before the
// last one, and end in the finding's decisions.
func (c *comparison) leads(steps [][]string, f *finding) ([2]model.Decision, bool) {
	decided, ok := c.act(steps)
	if f.Direction == Told { // by whichever clauses of the rules
		return decided, ok && direction(decided[0], decided[1]) == Told && saysOf(decided[0]) == saysOf(f.Old) && saysOf(decided[1]) == saysOf(f.New)
	}
	return decided, ok && decider(decided[0]) == decider(f.Old) && decider(decided[1]) == decider(f.New)
}

// act acts out steps under both policies, and returns the decisions on the last one.
func (c *comparison) act(steps [][]string) (decided [2]model.Decision, ok bool) {
	decided, _, ok = c.play(steps)
	return decided, ok
}

// play is act, and returns what has become of both scopes.
func (c *comparison) play(steps [][]string) (decided [2]model.Decision, scopes [2]*model.Scope, ok bool) {
	for side := range c.sides {
		s := model.New(c.sides[side].Program)
		scopes[side] = s
		for i, words := range steps {
			if !c.work.spend(4 * c.deciding(side)) { // of the events that a step consists of
				return decided, scopes, false
			}
			d, err := s.Do(words)
			if err != nil || i < len(steps)-1 && d.Denied() {
				return decided, scopes, false
			}
			decided[side] = d
		}
	}
	return decided, scopes, true
}

// spares tells whether steps are allowed by both policies and give the subject none of
// the labels that a state is without.
func (c *comparison) spares(steps [][]string, s state) bool {
	decided, scopes, ok := c.play(steps)
	if !ok || decided[0].Denied() || decided[1].Denied() {
		return false
	}
	for i, holds := range s {
		x := c.atoms.list[i]
		for side, bit := range x.at {
			if x.kind == labelAtom && !holds && bit >= 0 && scopes[side].Process(subject).Labels>>bit&1 == 1 {
				return false
			}
		}
	}
	return true
}

// histories proposes what can have happened before, so that the state of a finding is
// there: labels first and gates last, or the reverse.
func (c *comparison) histories(f *finding) [][][]string {
	q := &f.question
	var lineages, labels, gates, rest [][]string
	for _, i := range sortedAtoms(f.answer.state) {
		var steps [][]string
		switch c.atoms.list[i].kind {
		case labelAtom:
			steps = c.gives(i, f.answer.state)
			labels = append(labels, steps...)
		case lineageAtom:
			steps = c.hasRun(i, f.answer.state)
			lineages = append(lineages, steps...)
		case gateAtom:
			steps = c.arms(i)
			gates = append(gates, steps...)
		case modifiedAtom:
			steps = [][]string{{helper, "write", q.object()}}
			rest = append(rest, steps...)
		}
		if steps == nil {
			return nil
		}
	}
	if q.cleared != (clearing{}) {
		step := c.clears(q.cleared)
		if step == nil {
			return nil
		}
		rest = append(rest, step...)
	}
	gates = append(gates, c.spoils(f.answer.state)...)
	lineages, labels, gates = once(lineages), once(labels), once(gates)
	return [][][]string{
		slices.Concat(lineages, labels, gates, rest),
		slices.Concat(rest, gates, lineages, labels),
		slices.Concat(rest, gates, labels, lineages),
	}
}

// once leaves out steps that are there already: one can bring about several things.
func once(steps [][]string) (out [][]string) {
	for _, s := range steps {
		if !slices.ContainsFunc(out, func(x []string) bool { return slices.Equal(x, s) }) {
			out = append(out, s)
		}
	}
	return out
}

// sortedAtoms lists what holds of a state.
func sortedAtoms(s state) (out []int) {
	for i, holds := range s {
		if holds {
			out = append(out, i)
		}
	}
	slices.Sort(out)
	return out
}

// seek finds the first place of a kind that both policies, as far as they know the atom,
// have a property of, and returns the steps that are made of it; those that either
// policy refuses in the beginning, or that give labels which s is without, are passed
// over.
func (c *comparison) seek(s state, kind dfa.Start, at [2]int, has func(r *dfa.Row, bit int) bool, steps func(p *place) [][]string) [][]string {
	places := c.walks[kind].places
next:
	for i := range places {
		if !c.work.spend(8 * (1 + len(places[i].rows[0]) + len(places[i].rows[1]))) {
			return nil
		}
		if places[i].kind != model.Ordinary {
			continue
		}
		for side, bit := range at {
			rows := rowsOf(c.sides[side].Image, places[i].rows[side])
			if bit >= 0 && !slices.ContainsFunc(rows, func(r *dfa.Row) bool { return has(r, bit) }) {
				continue next
			}
		}
		if out := steps(&places[i]); out != nil && c.spares(out, s) {
			return out
		}
	}
	return nil
}

// gives returns a step that gives the subject a label, nil if none is known.
func (c *comparison) gives(label int, s state) [][]string {
	sources := func(r *dfa.Row, bit int) bool { return r.Sources>>bit&1 == 1 }
	for _, way := range []struct {
		op   ir.Op
		kind dfa.Start
		has  func(r *dfa.Row, bit int) bool
	}{
		{ir.Exec, dfa.Path, func(r *dfa.Row, bit int) bool { return (r.ExecSources|r.Endorse)>>bit&1 == 1 }},
		{ir.Read, dfa.Path, sources}, {ir.Recv, dfa.Address, sources}, {ir.Recv, dfa.Unix, sources}, {ir.Recv, dfa.Host, sources},
		{ir.Exec, dfa.Path, sources}, // where reading is refused
	} {
		if out := c.seek(s, way.kind, c.atoms.list[label].at, way.has, doing(way.op)); out != nil {
			return out
		}
	}
	return nil
}

// doing makes the step in which the subject does something at a place.
func doing(op ir.Op) func(p *place) [][]string {
	return func(p *place) [][]string { return [][]string{{subject, op.String(), p.object(op == ir.Exec)}} }
}

// hasRun returns a step after which the subject has a lineage.
func (c *comparison) hasRun(lineage int, s state) [][]string {
	has := func(r *dfa.Row, bit int) bool { return r.Lineage>>bit&1 == 1 }
	return c.seek(s, dfa.Path, c.atoms.list[lineage].at, has, doing(ir.Exec))
}

// arms returns steps that make a gate fresh.
func (c *comparison) arms(gate int) [][]string {
	at := c.atoms.list[gate].at
	side := 0
	if at[0] < 0 {
		side = 1
	}
	g := &c.sides[side].Program.Gates[at[side]]
	has := func(r *dfa.Row, bit int) bool {
		return slices.ContainsFunc(r.Gates[g.After.Op], func(x dfa.GateRef) bool { return x.Arm && x.Gate == bit })
	}
	return c.seek(nil, dfa.Path, at, has, func(p *place) [][]string {
		step := []string{helper, g.After.Op.String(), p.object(g.After.Op == ir.Exec)}
		for _, glob := range g.After.Args {
			step = append(step, c.tokens.example(glob))
		}
		if g.Exit < 0 {
			return [][]string{step}
		}
		step[0] = helper + strconv.Itoa(gate) // it ends, so that it is a process of its own
		return [][]string{step, {step[0], "exit", strconv.Itoa(g.Exit)}}
	})
}

// spoils returns steps that make those gates stale that a state wants so, and leaves
// those fresh that it wants fresh.
func (c *comparison) spoils(s state) (out [][]string) {
	if !slices.ContainsFunc(sortedAtoms(s), func(i int) bool { return c.atoms.list[i].kind == gateAtom }) {
		return nil // all are stale in the beginning
	}
	for i, holds := range s {
		if holds || c.atoms.list[i].kind != gateAtom {
			continue
		}
		for op := range ir.Connect {
			if p := c.spoiler(op, i, s); p != nil {
				out = append(out, []string{helper, op.String(), p.object(op == ir.Exec)})
				break
			}
		}
	}
	slices.SortFunc(out, slices.Compare)
	return out
}

// spoiler finds a place where an operation makes one gate stale, and none that a state
// wants fresh.
func (c *comparison) spoiler(op ir.Op, gate int, s state) *place {
	stale := func(p *place, atom int) bool {
		for side, bit := range c.atoms.list[atom].at {
			for _, r := range rowsOf(c.sides[side].Image, p.rows[side]) {
				if bit >= 0 && slices.ContainsFunc(r.Gates[op], func(x dfa.GateRef) bool { return !x.Arm && x.Gate == bit && x.Arg < 0 }) {
					return true
				}
			}
		}
		return false
	}
	for i := range c.walks[dfa.Path].places {
		p := &c.walks[dfa.Path].places[i]
		if !c.work.spend(16) {
			return nil
		}
		if p.kind != model.Ordinary || !stale(p, gate) {
			continue
		}
		spared := true
		for j, holds := range s {
			spared = spared && !(holds && c.atoms.list[j].kind == gateAtom && stale(p, j))
		}
		if spared {
			return p
		}
	}
	return nil
}

// example is an argument that a token glob matches, as good as can be.
func (s *sequences) example(glob string) string {
	plain := plainest(glob)
	if model.Match(glob, plain, pattern.Token) {
		return plain
	}
	for _, w := range s.words {
		if model.Match(glob, w.text, pattern.Token) {
			return w.text
		}
	}
	return plain
}

// plainest is what a glob says without its wildcards.
func plainest(glob string) string {
	return strings.NewReplacer("*", "", "?", "x", `\`, "").Replace(glob)
}

// given tells whether a policy says who has a label.
func given(p *ir.Program, label int) bool {
	return slices.ContainsFunc(p.Sources, func(s ir.Source) bool { return s.Label == label }) ||
		slices.ContainsFunc(p.Transforms, func(t ir.Transform) bool { return t.Endorse && t.Label == label })
}

// supposed puts the state that a finding needs into words.
func (c *comparison) supposed(f *finding) (out []string) {
	var labels []string
	for _, i := range sortedAtoms(f.answer.state) {
		x := c.atoms.list[i]
		side := 0
		if x.at[0] < 0 {
			side = 1
		}
		p := c.sides[side].Program
		switch x.kind {
		case labelAtom:
			name := p.Labels[x.at[side]].Name
			if !given(p, x.at[side]) {
				name += " (which nothing here gives)"
			}
			labels = append(labels, name)
		case lineageAtom:
			out = append(out, "it or an ancestor has run "+p.Lineages[x.at[side]].String())
		case gateAtom:
			out = append(out, "`"+p.Gates[x.at[side]].Text+"` holds")
		case modifiedAtom:
			out = append(out, path.Base(f.question.object())+" was written inside the container")
		}
	}
	if len(labels) > 0 {
		out = slices.Insert(out, 0, "the process carries "+strings.Join(labels, ", "))
	}
	if f.question.cleared != (clearing{}) {
		out = append(out, "it runs a program that declassifies")
	}
	return out
}
