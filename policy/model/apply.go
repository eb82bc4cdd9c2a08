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
	// refused says why the language itself refuses it, whatever its events are.
	refused string
	// flow moves labels, and is committed before the effect.
	flow func()
	// effect is what happens to names, files and the process.
	effect func()
	// exec: it runs a program. fails: the kernel refuses it after it was decided, so
	// that "an exec that fails arms nothing and strips nothing".
	exec, fails bool
	// names are the two of a rename; exchange: both move.
	names    []string
	exchange bool
}

// perform is one operation in the order of section 4: labels that it would bring,
// decide before, a denied one leaves no trace, commit. again are the words of the
// step, for when it is held and goes on later.
func (s *Scope) perform(o *operation, again []string) Decision {
	if o.subject.setup && !o.exec {
		if o.effect != nil {
			o.effect()
		}
		return Decision{}
	}
	r, lifted := s.decide(o)
	switch {
	case r.Effect == ir.Kill:
		// A trace may go on with the name, for the same program started again by
		// who started it first: with its labels, and without what it waited for, whom
		// it traced, and who traced it.
		s.exit(o.subject, 0, false)
		o.subject.ended, o.subject.tracer = false, nil
		for _, q := range s.processes {
			if q.tracer == o.subject {
				q.tracer = nil
			}
		}
	case r.Effect == ir.Ask:
		s.ask(r.ask, o.subject, again)
	}
	if r.Denied() || o.fails {
		return r.Decision
	}
	s.take(o.subject, lifted)
	s.commit(o)
	return r.Decision
}

// commit is step 4: "labels gained are committed before the effect, and gates,
// lineage, endorse and declassify once the kernel has completed the operation".
func (s *Scope) commit(o *operation) {
	for _, e := range o.events {
		if e.file != nil && e.moved == "" && !e.unresolved && !e.mapped {
			// "Naming a file by a source's path, also in rename and link, stores the
			// label on the inode."
			s.label(e.file, s.pathSources(e.path))
		}
	}
	if o.flow != nil {
		o.flow()
	}
	if o.effect != nil {
		o.effect()
	}
	for _, e := range o.events {
		if e.mapped {
			continue
		}
		if e.op == ir.Exec {
			s.transform(o.subject, e)
		}
		s.reach(o.subject, e)
	}
	s.settle()
}
