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
	Clause  *ir.Clause  // that decided, nil without a Rule
	Default *ir.Default // that decided, nil if none did
	Protect *ir.Protect // that refused it, nil if none did
	Why     string      // for people: which clause decided, and on what
	Matched []string    // all the rules whose clauses matched
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
	event  *event
	labels uint64
	text   string // of what is neither a clause nor a default, why
	denied bool   // a person did
	ask    *request
	grant  *grant // that lifted an ask
}

// why says in words what decided, and on what.
func (r *ruling) why(s *Scope, p *Process) string {
	out := r.text
	switch {
	case r.Clause != nil:
		out = fmt.Sprintf("%s: `%s` matches %s", r.Clause.Pos, r.Clause.Text, r.event)
		if len(r.Clause.If) > 0 {
			out += fmt.Sprintf("; %s holds %s", p.Name, s.LabelNames(r.labels))
		}
	case r.Default != nil:
		out = fmt.Sprintf("%s: `%s`, and no allow clause matches %s", r.Default.Pos, r.Default.Text, r.event)
	}
	if r.denied {
		out += "; a person denied this"
	}
	return out
}

// op is the operation as the policy writes it.
func (r *ruling) op() ir.Op {
	if r.Default != nil {
		return r.Default.Op
	}
	return r.Clause.Op
}

// decide finds the strictest of all rulings on all events of an operation: "kill >
// block > ask > notify … Ties go to the first in file order". A script
// is decided on before its interpreter is. lifted are the
// grants that an operation which proceeds uses up.
func (s *Scope) decide(o *operation) (best ruling, lifted []*grant) {
	best.order = len(s.program.Clauses) + 1
	if o.refused != "" {
		best.Effect, best.text = ir.Block, o.refused
	}
	var matched []string
	seen := map[string]bool{}
	for _, e := range o.events {
		labels := s.wouldHold(o.subject, e)
		weigh := func(r *ruling) {
			if r.grant != nil {
				lifted = append(lifted, r.grant)
			}
			if r.Rule != "" && !seen[r.Rule] {
				seen[r.Rule] = true
				matched = append(matched, r.Rule)
			}
			if r.Effect > best.Effect || r.Effect == best.Effect && r.Effect > ir.Allow && r.order < best.order {
				best = *r
			}
		}
		s.clauses(o.subject, e, labels, weigh)
		s.defaults(o.subject, e, labels, weigh)
		s.structure(e, labels, weigh)
		if o.exec && best.Denied() {
			break // a script that is refused never gets to its interpreter
		}
	}
	best.Matched, best.Why = matched, best.why(s, o.subject)
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

// clauses tells what the clauses that match say.
func (s *Scope) clauses(p *Process, e *event, labels uint64, weigh func(*ruling)) {
	for i := range s.program.Clauses {
		c := &s.program.Clauses[i]
		if c.Effect == ir.Allow || !e.concerns(c) || s.mismatch(c, p, e, labels) != nil {
			continue
		}
		rule := &s.program.Rules[c.Rule]
		r := ruling{order: i, event: e, labels: labels, Decision: Decision{Effect: c.Effect, Rule: rule.Name, Because: rule.Because, Clause: c}}
		if c.Effect == ir.Ask {
			s.asked(&r, p, e, c.Hold)
		}
		weigh(&r)
	}
}

// concerns tells whether a clause can be about an event: most are not, and that is found
// out without words.
func (e *event) concerns(c *ir.Clause) bool {
	return ir.Governs(c.Op, e.op) && (e.moved != "" || e.unresolved || e.named(c.Pattern, either))
}

// movedApart: "renaming a directory D to E counts as write and unlink under every
// clause for which the automaton's states after D/ and E/ differ", and these know
// of targets.
func (e *event) movedApart(c *ir.Clause) bool {
	return language{[]ir.Pattern{c.Pattern}, c.Unless.Targets}.movedApart(e.moved, e.to)
}

// holds evaluates an `if`: "missing: true".
func holds(terms []ir.Term, labels uint64) bool {
	return len(terms) == 0 || slices.ContainsFunc(terms, func(t ir.Term) bool {
		return labels&t.All == t.All && labels&t.None == 0
	})
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

// governs tells whether a default is about an event. Defaults don't concern "what is
// no object of file rules". A directory that is renamed counts where a clause that
// lifts the default would do so for other files than before.
func (s *Scope) governs(d ir.Default, e *event) bool {
	is, _ := device(e.path)
	if !ir.Governs(d.Op, e.op) || is && e.op != ir.Exec || e.mapped {
		return false
	}
	if e.moved == "" {
		return true
	}
	for i := range s.program.Clauses {
		c := &s.program.Clauses[i]
		if s.lifts(i, d) && ir.Governs(c.Op, e.op) && e.movedApart(c) {
			return true
		}
	}
	return false
}

// lifts tells whether a clause can lift a default: "a lower layer never lifts what a
// higher one set".
func (s *Scope) lifts(clause int, d ir.Default) bool {
	return s.program.Clauses[clause].Effect == ir.Allow && ir.Lifts(s.program.LayerOf(clause), d.Layer)
}

// defaults tells of the defaults that no allow clause lifts: "allow only lifts a
// default".
func (s *Scope) defaults(p *Process, e *event, labels uint64, weigh func(*ruling)) {
	for i := range s.program.Defaults {
		d := &s.program.Defaults[i]
		if !s.governs(*d, e) || d.Effect == ir.Allow || s.lifted(*d, p, e, labels) != nil {
			continue
		}
		r := ruling{order: len(s.program.Clauses), event: e, labels: labels, Decision: Decision{Effect: d.Effect, Default: d}}
		if d.Effect == ir.Ask {
			s.asked(&r, p, e, d.Hold)
		}
		weigh(&r)
	}
}

// lifted returns the allow clause that lifts a default, nil if none does.
func (s *Scope) lifted(d ir.Default, p *Process, e *event, labels uint64) *ir.Clause {
	for i := range s.program.Clauses {
		c := &s.program.Clauses[i]
		if s.lifts(i, d) && e.concerns(c) && s.mismatch(c, p, e, labels) == nil {
			return c
		}
	}
	return nil
}

// structure tells what no policy is needed for: "the engine's own files … can't be
// changed or, but for the feedback socket, reached from inside" (invariant 1), "no
// write to cgroupfs" (3), what `protect` keeps (4: "read, never changed, by any
// path, link or descriptor"), and of a directory that is renamed: "where a file
// source or protect is concerned it is refused".
func (s *Scope) structure(e *event, labels uint64, weigh func(*ruling)) {
	refuse := func(why string, by *ir.Protect) {
		weigh(&ruling{order: len(s.program.Clauses) + 1, text: why, Decision: Decision{Effect: ir.Block, Protect: by}})
	}
	if e.peer != nil && below(e.peer.unix, engineFolder) {
		refuse(e.String()+": it is the engine's own", nil)
	}
	if e.op == ir.Write || e.op == ir.Append || e.op == ir.Unlink {
		for _, kept := range []string{engineFolder, cgroupFolder} {
			if below(e.path, kept) || e.moved != "" && below(kept, e.moved) {
				refuse(e.String()+": "+kept+" is never changed from inside", nil)
			}
		}
		for i := range s.program.Protects {
			x := &s.program.Protects[i]
			if !holds(x.If, labels) {
				continue
			}
			if e.named(x.Pattern, either) {
				refuse(fmt.Sprintf("%s: `protect: %s` keeps what %s would change", x.Pos, x.Text, e), x)
			} else if other := e.alias(x.Pattern); other != "" {
				refuse(fmt.Sprintf("%s: `protect: %s` keeps what %s would change: it is %s, too", x.Pos, x.Text, e, other), x)
			}
		}
	}
	if src := s.sourceOf(e); src != nil {
		refuse(fmt.Sprintf("%s: `%s` would not name the same files: a directory that a file source names stays", src.Pos, src.Text), nil)
	}
}

// ProtectedBy returns the protected patterns that name a path, for whatever process, by
// their index in the program.
func (s *Scope) ProtectedBy(path string) (protects []int) {
	e := event{op: ir.Write, path: path}
	for i, p := range s.program.Protects {
		if e.named(p.Pattern, either) {
			protects = append(protects, i)
		}
	}
	return protects
}

// sourceOf returns a source of a label that not the same files below a directory
// have after it was renamed; nil if there is none.
func (s *Scope) sourceOf(e *event) *ir.Source {
	if e.moved == "" {
		return nil
	}
	for label := range s.program.Labels {
		var l language
		var first *ir.Source
		for i, src := range s.program.Sources {
			if src.Label != label || src.Pattern.Kind != ir.File {
				continue
			}
			l.patterns = append(l.patterns, src.Pattern)
			if e.named(src.Pattern, either) && first == nil {
				first = &s.program.Sources[i]
			}
		}
		if first != nil && l.movedApart(e.moved, e.to) {
			return first
		}
	}
	return nil
}
