// SPDX-License-Identifier: Apache-2.0

package model

import (
	"github.com/actplane/actplane/policy/ir"
)

// operation is what a subject does, as the events that it consists of; they are
// decided together, before any of them happens.
type operation struct {
	subject *Process
	events  []*event
	// flow moves labels, and is committed before the effect.
	flow func()
	// effect is what happens to names and files.
	effect func()
	// fails: the kernel refuses it after it was decided, so that "an exec that fails
	// arms nothing and strips nothing".
	fails bool
}

// perform is one operation in the order of section 4: labels that it would bring,
// decide before, a denied one leaves no trace, commit.
func (s *Scope) perform(o *operation) Decision {
	r, lifted := s.decide(o)
	switch {
	case r.Effect == ir.Kill:
		// A trace may go on with the name, for the same program started again by
		// who started it first: with its labels, and without what it waited for.
		s.exit(o.subject, 0, false)
		o.subject.ended = false
	case r.Effect == ir.Ask:
		s.open(r.ask, o)
	}
	if r.Denied() || o.fails {
		return r.Decision
	}
	for _, a := range lifted {
		a.count = max(0, a.count-1)
	}
	s.commit(o)
	return r.Decision
}

// commit is step 4: "labels gained are committed before the effect, and gates,
// lineage, endorse and declassify once the kernel has completed the operation".
func (s *Scope) commit(o *operation) {
	for _, e := range o.events {
		if e.file != nil && e.moved == "" && !e.unresolved {
			// "Naming a file by a source's path, also in rename and link, stores the
			// label on the inode."
			e.file.labels |= s.pathSources(e.path)
		}
	}
	if o.flow != nil {
		o.flow()
	}
	if o.effect != nil {
		o.effect()
	}
	for _, e := range o.events {
		if e.op == ir.Exec {
			s.transform(o.subject, e)
		}
		s.reach(o.subject, e)
	}
	s.settle()
}

// transform is what an exec does once the new image runs. Invariant 5: what was
// "modified inside the scope" counts for none of it.
func (s *Scope) transform(p *Process, e *event) {
	p.cleared, p.pending = 0, nil
	s.gain(p, e.in)
	if e.file.modified || e.unresolved {
		return
	}
	for i, l := range s.program.Lineages {
		if e.named(l, resolved) {
			p.Lineage |= 1 << i
		}
	}
	var endorsed uint64
	for _, t := range s.program.Transforms {
		switch {
		case !e.named(t.Pattern, resolved):
		case t.Endorse:
			endorsed |= 1 << t.Label
		default:
			p.cleared |= 1 << t.Label
		}
	}
	p.Labels = p.Labels&^p.cleared | endorsed
}

// reach brings an event to the gates, first to what it makes stale: an event that
// is both `after` and `since` counts as `after`.
func (s *Scope) reach(p *Process, e *event) {
	for i, g := range s.program.Gates {
		for _, since := range g.Since {
			// A file that was appended to has changed.
			changed := since.Op == ir.Write && e.op == ir.Append
			if (since.Op == e.op || changed) && e.named(since.Pattern, either) && (e.unresolved || e.argsMatch(since.Args)) {
				s.gates[i].epoch++
				break
			}
		}
	}
	for i, g := range s.program.Gates {
		if !e.is(g.After, resolved) || e.op == ir.Exec && e.file.modified {
			continue
		}
		if g.Exit >= 0 {
			p.pending = append(p.pending, pending{i, g.Exit, s.gates[i].epoch})
		} else {
			s.gates[i].armed = s.gates[i].epoch
		}
	}
}
