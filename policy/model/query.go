// SPDX-License-Identifier: Apache-2.0

package model

import (
	"path"
	"slices"

	"github.com/actplane/actplane/policy/ir"
)

// Query is one event by itself, in a state that is supposed and did not come about:
// what a record or the comparison of two policies asks. Where a step consists of
// several events, each is a query of its own unless With names the others, but for an
// unlink: no name goes away without being written, so that both are asked at once.
type Query struct {
	Op ir.Op
	// With are the other events of the same operation, of what it does to the same file:
	// reading it by its path opens it as well. An exec has none.
	With   []ir.Op
	Object string // an absolute path, links resolved, or an endpoint as steps name it
	// Invoked is the base name by which a program is run, if that is another one.
	Invoked string
	Argv    []string // of exec
	// Mapped: the program's code is mapped, and not run.
	Mapped bool
	// Unresolved: the path cannot be known.
	Unresolved bool

	Labels   uint64 // of the process, as bits
	Cleared  uint64 // those that the program which it runs clears
	Lineage  uint64 // the lineages of the program that it has
	Gates    uint64 // the gates of the program that are fresh
	Modified bool   // the file's contents were written inside the scope
}

// Decide answers a query under a program, and tells how.
func (q *Query) Decide(p *ir.Program) (t Trace, err error) {
	s, o, err := q.operation(p)
	if err != nil {
		return t, err
	}
	s.consider(&t, o)
	r, _ := s.decide(o)
	t.settle(r.Decision)
	return t, nil
}

// Decision is that of Decide, without how it came about, which takes longer.
func (q *Query) Decision(p *ir.Program) (Decision, error) {
	s, o, err := q.operation(p)
	if err != nil {
		return Decision{}, err
	}
	r, _ := s.decide(o)
	return r.Decision, nil
}

// operation is what a query asks about, in a scope of the state that it supposes.
func (q *Query) operation(p *ir.Program) (*Scope, *operation, error) {
	s := New(p)
	for i := range s.gates {
		if q.Gates>>i&1 == 1 {
			s.gates[i].arm(s.gates[i].epoch)
		}
	}
	subject := s.Process(someone)
	subject.Labels, subject.Lineage, subject.image.cleared = q.Labels, q.Lineage, q.Cleared
	e, err := s.queried(q)
	if err != nil {
		return nil, nil, err
	}
	o := &operation{subject: subject, exec: q.Op == ir.Exec}
	for _, x := range append(s.company(q, e), e) {
		if !x.exempt() {
			o.events = append(o.events, x)
		}
	}
	return s, o, nil
}

// company makes the events that come with that of a query.
func (s *Scope) company(q *Query, e *event) (out []*event) {
	ops := q.With
	if q.Op == ir.Unlink && !slices.Contains(ops, ir.Write) {
		ops = append(slices.Clip(ops), ir.Write)
	}
	for _, op := range ops {
		x := *e
		x.op, x.text, x.in = op, "", 0
		out = append(out, &x)
	}
	if q.Op == ir.Read || slices.Contains(q.With, ir.Read) { // it is there for all of them
		for _, x := range append(out, e) {
			s.brought(x)
		}
	}
	return out
}

// queried makes the event of a query, with the labels that it would bring in.
func (s *Scope) queried(q *Query) (*event, error) {
	if q.Op >= ir.Connect {
		peer, err := parseEndpoint(q.Object)
		e := &event{op: q.Op, peer: &peer}
		if q.Op != ir.Bind {
			e.in = s.sources(e)
		}
		return e, err
	}
	if err := checkStep([]string{someone, q.Op.String(), q.Object}); err != nil && !q.Unresolved {
		return nil, err
	}
	e := &event{op: q.Op, path: path.Clean(q.Object), file: &file{modified: q.Modified}, unresolved: q.Unresolved, mapped: q.Mapped, argv: q.Argv}
	if q.Op == ir.Exec {
		e.invoked = q.Invoked
		if e.invoked == "" && !q.Unresolved {
			e.invoked = path.Base(e.path)
		}
	}
	if q.Op == ir.Exec && !q.Mapped {
		s.brought(e)
	}
	return e, nil
}

// brought gives an event the labels of its object's names.
func (s *Scope) brought(e *event) {
	if is, carries := device(e.path); e.op == ir.Exec || !is || carries {
		e.in = s.sources(e)
	}
}

// exempt tells whether an event is outside of the rules: using what is the engine's own
// and there for the agent.
func (e *event) exempt() bool {
	if e.peer != nil {
		return outside(e.peer.unix)
	}
	return (e.op == ir.Exec || e.op == ir.Open || e.op == ir.Read) && outside(e.path)
}
