// SPDX-License-Identifier: Apache-2.0

package model

import (
	"github.com/actplane/actplane/policy/ir"
)

// image is what the exec of the program that a process runs has done for it.
type image struct {
	// cleared are the labels that the program clears: "While a declassifier's image
	// runs, it does not regain the label". A fork runs the same image.
	cleared  uint64
	stripped uint64 // those of them that the process had
	endorsed uint64
	lineage  uint64
	armed    []arming
}

// trusted is invariant 5: a gate "counts only when the program that ran was not
// modified inside the scope, … was not started with LD_* or an interpreter's
// start-up variables, and is not traced from inside". Nor when it got its name
// inside: a link or a move makes a pytest of any program, as a copy does. What runs a
// script has to be as trusted, and the way to it.
func (e *event) trusted(p *Process) bool {
	if e.interpreter != nil && !e.interpreter.trusted(p) {
		return false
	}
	return !e.file.modified && !e.file.named && !e.byLink && !e.unresolved && !p.traced() && !p.loads()
}

func (p *Process) traced() bool { return p.tracer != nil && !p.tracer.ended }

// loads tells whether a variable of the environment makes a program or an
// interpreter run other code than its own.
func (p *Process) loads() bool { return p.env.loads > 0 }

// transform is what an exec does once the new image runs.
func (s *Scope) transform(p *Process, e *event) {
	if !e.trusted(p) {
		return
	}
	for i, l := range s.program.Lineages {
		if e.named(l, resolved) {
			p.image.lineage |= 1 << i &^ p.Lineage
			p.Lineage |= 1 << i
		}
	}
	var cleared, endorsed uint64
	for _, t := range s.program.Transforms {
		switch {
		case !e.named(t.Pattern, resolved):
		case t.Endorse:
			endorsed |= 1 << t.Label
		default:
			cleared |= 1 << t.Label
		}
	}
	p.image.cleared |= cleared
	p.image.stripped |= p.Labels & cleared
	p.Labels &^= cleared
	p.image.endorsed |= endorsed &^ p.Labels
	p.Labels |= endorsed
	s.touch(p)
}

// tamper takes back what the exec of a process's program has opened, since it is
// not that program any more: another one writes to it or traces it, or it runs
// code that was modified inside.
func (s *Scope) tamper(p *Process) {
	p.Lineage &^= p.image.lineage
	p.Labels = p.Labels&^p.image.endorsed | p.image.stripped
	for _, a := range p.image.armed {
		a.takeBack()
	}
	p.image, p.pending = image{}, nil
	s.touch(p)
}

// reach brings an event to the gates, first to what it makes stale: an event that
// is both `after` and `since` counts as `after`.
func (s *Scope) reach(p *Process, e *event) {
	for i, g := range s.program.Gates {
		if e.spoils(g) {
			s.gates[i].spoil()
		}
	}
	for i, g := range s.program.Gates {
		if !e.arms(g) || e.op == ir.Exec && !e.trusted(p) {
			continue
		}
		now := &s.gates[i]
		if g.Exit >= 0 {
			p.pending = append(p.pending, pending{i, g.Exit, now.epoch})
			continue
		}
		if a := now.arm(now.epoch); e.op == ir.Exec {
			p.image.armed = append(p.image.armed, a)
		}
	}
}
