// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"

	"github.com/actplane/actplane/policy/ir"
)

// Trace tells how the decision on one step came about.
type Trace struct {
	Step *Step // nil for a Query
	// Decided: a policy decides it. The others happen, as does all but running a program
	// that a process in setup does.
	Decided bool
	Decision
	Subject string
	// Holds are the labels of the subject before, and Brings those that the step would
	// give it besides.
	Holds, Brings uint64
	// Clauses has all clauses of the program, in its order.
	Clauses  []ClauseTrace
	Defaults []DefaultTrace // those that are about the operation
	// Refused says which rules of the language itself refuse the step.
	Refused []string
	// Notes say by which steps the labels and gates came about that the clauses name.
	Notes []string
}

// ClauseTrace is how one clause was decided on.
type ClauseTrace struct {
	Clause *ir.Clause
	// Event is what it was held against: of the events that a step consists of the one
	// that it comes closest to matching.
	Event      string
	Op         ir.Op  // of that event
	Object     string // its path, links resolved, or its endpoint
	Unresolved bool   // the path cannot be known
	Labels     uint64 // that the subject has or the event would bring
	Matches    bool
	Decides    bool
	Conditions []Condition // all of them; the operation alone, where it is another
}

// DefaultTrace is how a default was decided on.
type DefaultTrace struct {
	Default *ir.Default
	Event   string
	Lifted  *ir.Clause // the allow clause that does, nil where the default holds
}

// Explain acts out steps, and tells of each how it was decided. Processes that
// nothing forked have labels (bits) from their beginning; relative paths are below the
// program's workspace. An error is a step that makes
// no sense where it stands, the last of the traces' number.
func Explain(p *ir.Program, steps []Step, labels uint64) ([]Trace, error) {
	s := New(p)
	steps = (&Case{Steps: steps}).under(p.Workspace).Steps
	h := newHistory(s, steps)
	var out []Trace
	for i := range steps {
		words := steps[i].Words
		if hasSubject(words) && s.processes[words[0]] == nil {
			h.labels[words[0]] = labels
			s.Process(words[0]).Labels = labels
		}
		t, o := s.trace(words)
		t.Step = &steps[i]
		if o != nil {
			for _, c := range t.Clauses {
				if c.near() {
					t.Notes = append(t.Notes, h.led(c.Clause, o)...)
				}
			}
			if text := s.doubt(words); text != "" {
				t.Notes = append(t.Notes, text)
			}
			t.Notes = unique(t.Notes)
		}
		unknown := ""
		if o != nil {
			unknown = s.movedUnknown(o)
		}
		d, err := s.Do(words)
		if err != nil {
			return out, err
		}
		if t.settle(d); unknown != "" {
			t.Notes = append(t.Notes, unknown)
		}
		if o != nil && o.exec && t.Decided && d.Effect <= ir.Notify {
			if note := shellNote(words); note != "" {
				t.Notes = append(t.Notes, note)
			}
		}
		h.note(i)
		out = append(out, t)
	}
	return out, nil
}

// near tells whether a clause matches, or would but for the state.
func (c *ClauseTrace) near() bool {
	return !slices.ContainsFunc(c.Conditions, func(x Condition) bool { return !x.Met && x.Part < If })
}

// trace says how a step would be decided, as far as it makes sense.
func (s *Scope) trace(words []string) (t Trace, o *operation) {
	if !needsVerdict(words) {
		return t, nil
	}
	o, err := s.operation(s.Process(words[0]), words[1], words[2:])
	if err != nil {
		return t, nil
	}
	s.consider(&t, o)
	return t, o
}

// consider holds an operation against all that the policy and the language say.
func (s *Scope) consider(t *Trace, o *operation) {
	p := o.subject
	t.Subject, t.Holds = p.Name, p.Labels
	if t.Decided = !p.setup || o.exec; !t.Decided {
		return
	}
	if o.refused != "" {
		t.Refused = append(t.Refused, o.refused)
	}
	for _, e := range o.events {
		labels := s.wouldHold(p, e)
		t.Brings |= labels &^ p.Labels
		s.structure(e, labels, func(r *ruling) { t.Refused = append(t.Refused, r.text) })
		for i := range s.program.Defaults {
			if d := &s.program.Defaults[i]; s.governs(*d, e) && d.Effect != ir.Allow {
				t.Defaults = append(t.Defaults, DefaultTrace{Default: d, Event: e.String(), Lifted: s.lifted(*d, p, e, labels)})
			}
		}
	}
	for i := range s.program.Clauses {
		c := ClauseTrace{Clause: &s.program.Clauses[i]}
		e, miss := s.nearest(c.Clause, o)
		if e == nil {
			continue // of what is outside of the rules
		}
		c.Event, c.Op, c.Object, c.Matches = e.String(), e.op, e.object(), miss == nil
		c.Unresolved, c.Labels = e.unresolved, s.wouldHold(p, e)
		c.Conditions = slices.Collect(s.conditions(c.Clause, p, e, c.Labels))
		t.Clauses = append(t.Clauses, c)
	}
}

// settle notes what was decided.
func (t *Trace) settle(d Decision) {
	t.Decision = d
	for i := range t.Clauses {
		t.Clauses[i].Decides = d.Clause != nil && t.Clauses[i].Clause == d.Clause
	}
}
