// SPDX-License-Identifier: Apache-2.0

package model

import (
	"iter"
	"strings"

	"github.com/actplane/actplane/policy/ir"
)

// Part is what a condition of a clause is about.
type Part uint8

// The parts of a clause, in the order in which they are looked at.
const (
	Operation Part = iota
	Object         // the pattern
	Arguments
	If
	Unless
)

// String names the part as the language does.
func (p Part) String() string {
	return [...]string{"operation", "pattern", "arguments", "if", "unless"}[p]
}

// Condition is one of those under which a clause matches: "its operation, pattern and
// argv tokens match, its if holds on L (missing: true), and none of its unless
// conditions hold".
type Condition struct {
	Part Part
	// Met: it does not keep the clause from matching. Of an Unless that is so when
	// its condition does not hold.
	Met bool
	// Text says what is so, for people.
	Text string
	// State: it is about the state (labels, lineage, gates, what was written), and not
	// about the event alone.
	State bool
}

// conditions returns those of a clause for an event, as far as there are any: what is
// not about the event's operation has no more than that.
func (s *Scope) conditions(c *ir.Clause, p *Process, e *event, labels uint64) iter.Seq[Condition] {
	return func(yield func(Condition) bool) {
		if !ir.Governs(c.Op, e.op) {
			yield(Condition{Part: Operation, Text: "it is about " + c.Op.String()})
			return
		}
		more := yield(Condition{Part: Operation, Met: true, Text: "it is about " + c.Op.String()}) &&
			yield(s.object(c, e))
		if more && len(c.Args) > 0 {
			more = yield(e.arguments(c))
		}
		if more && len(c.If) > 0 {
			more = yield(s.labels(c, p, labels))
		}
		if more {
			s.excuses(c, p, e, yield)
		}
	}
}

// mismatch is the first condition of a clause that is not met, nil when it matches.
func (s *Scope) mismatch(c *ir.Clause, p *Process, e *event, labels uint64) *Condition {
	for x := range s.conditions(c, p, e, labels) {
		if !x.Met {
			return &x
		}
	}
	return nil
}

// object is whether the pattern names the event's object.
func (s *Scope) object(c *ir.Clause, e *event) Condition {
	by := either
	if c.Effect == ir.Allow {
		by = resolved
	}
	out := Condition{Part: Object}
	switch named := e.moved == "" && e.named(c.Pattern, by); {
	case e.moved != "" && (c.Effect == ir.Allow || !e.movedApart(c)):
		out.Text = "it would match the same files below " + e.to + " as below " + e.moved
	case e.moved == "" && !named:
		out.Text = "its pattern does not match " + e.String()
	case e.mapped && (c.Effect < ir.Ask || c.Pattern.Any):
		out.Text = "a mapped program counts for clauses that name a program and deny"
	case e.unresolved && c.Effect < ir.Ask && !e.invokedAs(c.Pattern):
		out.Text = "a path that cannot be resolved counts for clauses that deny"
	case e.unresolved && c.Effect >= ir.Ask:
		out.Met, out.Text = true, "a path that cannot be resolved counts as matching every pattern of a clause that denies"
	case e.moved != "":
		out.Met, out.Text = true, "it would match other files below "+e.to+" than below "+e.moved
	default:
		out.Met, out.Text = true, "its pattern matches "+e.object()
		if named && !e.named(c.Pattern, resolved) {
			out.Text += ", by the name " + e.invoked
		}
	}
	return out
}

// arguments is whether the tokens are among the event's arguments.
func (e *event) arguments(c *ir.Clause) Condition {
	out := Condition{Part: Arguments, Met: true}
	switch {
	case e.mapped:
		out.Text = "a program that is mapped counts with whatever arguments"
	case e.argsMatch(c.Args):
		out.Text = "its tokens match the arguments"
	default:
		out.Met, out.Text = false, "its tokens do not match the arguments, in this order"
	}
	return out
}

// labels is whether the `if` holds on L.
func (s *Scope) labels(c *ir.Clause, p *Process, labels uint64) Condition {
	out := Condition{Part: If, Met: holds(c.If, labels), State: true}
	out.Text = "its `if` holds: "
	if !out.Met {
		out.Text = "its `if` does not hold: "
	}
	out.Text += p.Name + " holds " + s.LabelNames(labels)
	return out
}

// excuses are the `unless` conditions: each is met when it does not hold.
func (s *Scope) excuses(c *ir.Clause, p *Process, e *event, yield func(Condition) bool) {
	unless := func(state, excused bool, yes, no string) bool {
		out := Condition{Part: Unless, Met: !excused, Text: no, State: state}
		if excused {
			out.Text = "it is excused" + yes
		}
		return yield(out)
	}
	for _, t := range c.Unless.Targets {
		text := "`" + t.String() + "`"
		if !unless(false, e.moved == "" && e.target(t), " by "+text, "it is not excused by "+text) {
			return
		}
	}
	for _, l := range c.Unless.Lineages {
		text := s.program.Lineages[l].String()
		if !unless(true, p.Lineage>>l&1 == 1, ": the lineage includes "+text, "the lineage does not include "+text) {
			return
		}
	}
	for _, g := range c.Unless.Gates {
		yes, no := gateText(s.program.Gates[g].Text)
		if !unless(true, s.Fresh(g), ": "+yes, no) {
			return
		}
	}
	known := e.file != nil && !e.unresolved && e.moved == ""
	const yes, no = "the file was modified inside", "the file was not modified inside"
	not := no
	if known && e.file.unclear { // which opens nothing
		not = "whether the file was modified inside is not known"
	}
	if e.writable && (c.Unless.Modified || c.Unless.NotModified) { // opening it has modified it
		unless(false, true, ", as opening the file was", "")
		return
	}
	if c.Unless.Modified && !unless(true, known && e.file.modified && !e.file.unclear, ": "+yes, not) {
		return
	}
	if c.Unless.NotModified {
		unless(true, known && !e.file.modified, ": "+no, yes)
	}
}

// gateText says in words that what a gate waits for has happened and counts, and that
// it has not.
func gateText(text string) (yes, no string) {
	after, since := strings.TrimPrefix(text, "after "), ""
	quoted := false
	for i := 0; i < len(after); i++ {
		switch {
		case after[i] == '\\' && quoted:
			i++
		case after[i] == '"':
			quoted = !quoted
		case !quoted && strings.HasPrefix(after[i:], " since "):
			after, since = after[:i], after[i+len(" since "):]
		}
	}
	if since == "" {
		return "`" + after + "` has happened", "`" + after + "` has not happened"
	}
	return "`" + after + "` has happened, and no `" + since + "` since",
		"`" + after + "` has not happened, or not since the last `" + since + "`"
}
