// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"

	"github.com/actplane/actplane/policy/ir"
)

// Decision is what a policy says of one operation.
type Decision struct {
	Effect ir.Effect // Allow is `ok`
	// Rule is the rule whose clause decided, "" for a default, a protected file and
	// what the language itself refuses.
	Rule    string
	Because string
	Clause  *ir.Clause // that decided, nil without a Rule
	Why     string     // for people: which clause decided, and on what
	Matched []string   // all the rules whose clauses matched
}

// String is the verdict as case files write it.
func (d Decision) String() string {
	switch {
	case d.Effect == ir.Allow:
		return "ok"
	case d.Rule == "":
		return d.Effect.String()
	}
	return d.Effect.String() + " " + d.Rule
}

// Denied tells whether the operation fails.
func (d Decision) Denied() bool { return d.Effect >= ir.Ask }

// ruling is what one clause, default or protected pattern says of one event.
type ruling struct {
	Decision
	order  int // in the file; what is no clause comes last
	ask    *request
	answer *answer // that lifted an ask
}

// decide finds the strictest of all rulings on all events of an operation: "kill >
// block > ask > notify … Ties go to the first in file order". lifted are the
// answers that an operation which proceeds uses up.
func (s *Scope) decide(o *operation) (best ruling, lifted []*answer) {
	best.order = len(s.program.Clauses) + 1
	if o.refused != "" {
		best.Effect, best.Why = ir.Block, o.refused
	}
	for _, e := range o.events {
		labels := s.wouldHold(o.subject, e)
		for _, r := range slices.Concat(s.clauses(o.subject, e, labels), s.defaults(o.subject, e, labels), s.structure(e, labels)) {
			if r.answer != nil && !slices.Contains(lifted, r.answer) {
				lifted = append(lifted, r.answer)
			}
			matched := best.Matched
			if r.Rule != "" && !slices.Contains(matched, r.Rule) {
				matched = append(matched, r.Rule)
			}
			if r.Effect > best.Effect || r.Effect == best.Effect && r.Effect > ir.Allow && r.order < best.order {
				best = r
			}
			best.Matched = matched
		}
	}
	return best, lifted
}

// wouldHold is step 1 of the order: "L = σ(subject) ∪ the labels that this event
// would bring in".
func (s *Scope) wouldHold(p *Process, e *event) uint64 {
	in := e.in &^ s.integrity
	if e.op != ir.Exec { // an exec ends the image that would not regain them
		in &^= p.image.cleared
	}
	return p.Labels | in
}

// clauses returns what the clauses that match say.
func (s *Scope) clauses(p *Process, e *event, labels uint64) (out []ruling) {
	for i := range s.program.Clauses {
		c := &s.program.Clauses[i]
		if c.Effect == ir.Allow || s.mismatch(c, p, e, labels) != "" {
			continue
		}
		rule := s.program.Rules[c.Rule]
		r := ruling{order: i, Decision: Decision{
			Effect: c.Effect, Rule: rule.Name, Because: rule.Because, Clause: c,
			Why: fmt.Sprintf("%s: `%s` matches %s", c.Pos, c.Text, e),
		}}
		if len(c.If) > 0 {
			r.Why += fmt.Sprintf("; %s holds %s", p.Name, s.LabelNames(labels))
		}
		if c.Effect == ir.Ask {
			s.asked(&r, p, e, c.Hold)
		}
		out = append(out, r)
	}
	return out
}

// otherOperation is how mismatch begins where a clause is about another one.
const otherOperation = "it is about "

// mismatch says why a clause does not match: "its operation, pattern and argv
// tokens match, its if holds on L, and none of its unless conditions hold". It is
// empty when the clause matches.
func (s *Scope) mismatch(c *ir.Clause, p *Process, e *event, labels uint64) string {
	by := either
	if c.Effect == ir.Allow {
		by = resolved
	}
	switch {
	case !ir.Governs(c.Op, e.op):
		return otherOperation + c.Op.String()
	case e.moved != "" && e.named(c.Pattern, by) == slices.ContainsFunc(c.Unless.Targets, e.excusedApart),
		e.moved == "" && !e.named(c.Pattern, by):
		return "its pattern does not match " + e.String()
	case e.mapped && (c.Effect < ir.Ask || c.Pattern.Any):
		return "a mapped program counts for clauses that name a program and deny"
	case !e.argsMatch(c.Args) && !e.unresolved && !e.mapped:
		return "its tokens do not match the arguments, in this order"
	case !holds(c.If, labels):
		return "its `if` does not hold: " + p.Name + " holds " + s.LabelNames(labels)
	}
	return s.excuse(c, p, e)
}

// excusedApart tells whether a target excuses all that is below a directory that
// is renamed, before and after.
func (e *event) excusedApart(t ir.Target) bool {
	return !t.Not && covers(t.Pattern, e.moved) && covers(t.Pattern, e.to)
}

// holds evaluates an `if`: "missing: true".
func holds(terms []ir.Term, labels uint64) bool {
	return len(terms) == 0 || slices.ContainsFunc(terms, func(t ir.Term) bool {
		return labels&t.All == t.All && labels&t.None == 0
	})
}

// excuse says which `unless` condition of a clause holds.
func (s *Scope) excuse(c *ir.Clause, p *Process, e *event) string {
	for _, t := range c.Unless.Targets {
		if e.target(t) {
			return "it is excused by its `target`: " + t.Pattern.Text
		}
	}
	for _, l := range c.Unless.Lineages {
		if p.Lineage>>l&1 == 1 {
			return "it is excused: the lineage includes " + s.program.Lineages[l].Text
		}
	}
	for _, g := range c.Unless.Gates {
		if s.fresh(g) {
			return "it is excused: `" + s.program.Gates[g].Text + "` is fresh"
		}
	}
	switch {
	case e.file == nil || e.unresolved || e.moved != "":
	case c.Unless.Modified && e.file.modified:
		return "it is excused: the file was modified inside"
	case c.Unless.NotModified && !e.file.modified:
		return "it is excused: the file was not modified inside"
	}
	return ""
}

// target tells whether a `target` condition holds. On an exec it is about the
// resolved program.
func (e *event) target(t ir.Target) bool {
	switch {
	case e.unresolved || e.moved != "":
		return false
	case e.peer != nil && t.Not && (e.peer.host != "") != t.Pattern.Host:
		return false // nothing is known of the other's names or addresses
	}
	return e.named(t.Pattern, resolved) != t.Not
}

// defaults returns the defaults that no allow clause lifts: "allow only lifts a
// default". They don't concern "what is no object of file rules".
func (s *Scope) defaults(p *Process, e *event, labels uint64) (out []ruling) {
	if is, _ := device(e.path); is && e.op != ir.Exec || e.moved != "" || e.mapped {
		return nil
	}
	for _, d := range s.program.Defaults {
		if !ir.Governs(d.Op, e.op) || d.Effect == ir.Allow || s.lifted(d, p, e, labels) {
			continue
		}
		r := ruling{order: len(s.program.Clauses), Decision: Decision{
			Effect: d.Effect, Why: fmt.Sprintf("%s: `%s`, and no allow clause matches %s", d.Pos, d.Text, e),
		}}
		if d.Effect == ir.Ask {
			s.asked(&r, p, e, d.Hold)
		}
		out = append(out, r)
	}
	return out
}

// lifted tells whether an allow clause lifts a default: "a lower layer never lifts
// what a higher one set".
func (s *Scope) lifted(d ir.Default, p *Process, e *event, labels uint64) bool {
	for i := range s.program.Clauses {
		c := &s.program.Clauses[i]
		if c.Effect == ir.Allow && ir.Lifts(s.program.LayerOf(i), d.Layer) && s.mismatch(c, p, e, labels) == "" {
			return true
		}
	}
	return false
}

// structure returns what no policy is needed for: "the engine's own files … can't be
// changed or, but for the feedback socket, reached from inside" (invariant 1), "no
// write to cgroupfs" (3), what `protect` keeps (4: "read, never changed, by any
// path, link or descriptor"), and of a directory that is renamed: "where a file
// source or protect is concerned it is refused".
func (s *Scope) structure(e *event, labels uint64) (out []ruling) {
	refuse := func(why string) {
		out = append(out, ruling{order: len(s.program.Clauses) + 1, Decision: Decision{Effect: ir.Block, Why: why}})
	}
	if e.peer != nil && below(e.peer.unix, engineFolder) {
		refuse(e.String() + ": it is the engine's own")
	}
	if e.op == ir.Write || e.op == ir.Append || e.op == ir.Unlink {
		for _, kept := range []string{engineFolder, cgroupFolder} {
			if below(e.path, kept) || e.moved != "" && below(kept, e.moved) {
				refuse(e.String() + ": " + kept + " is never changed from inside")
			}
		}
		for _, x := range s.program.Protects {
			if holds(x.If, labels) && e.named(x.Pattern, either) {
				refuse(fmt.Sprintf("%s: `protect: %s` keeps what %s would change", x.Pos, x.Text, e))
			}
		}
	}
	if e.moved != "" {
		for _, src := range s.program.Sources {
			if src.Pattern.Kind == ir.File && e.named(src.Pattern, either) {
				refuse(fmt.Sprintf("%s: `%s` would not name the same files: a directory that a file source names stays", src.Pos, src.Text))
			}
		}
	}
	return out
}
