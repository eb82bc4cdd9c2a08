// SPDX-License-Identifier: Apache-2.0

// Package model is the reference evaluator: section by section what a
// policy means, as Go that can be read. The kernel engine is tested against it.
//
// It evaluates the program itself, with a matcher of its own; it uses neither the
// automaton nor the image, so that it is a second opinion on both. A Scope is the
// state of section 3, Do decides and applies one operation in the order of
// section 4, and Run acts out a case file. It is no place for speed, and it knows
// nothing of kernels: what an operation consists of is the caller's word.
package model

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/actplane/actplane/policy/ir"
)

// Scope is one container: "Scopes share nothing".
type Scope struct {
	program   *ir.Program
	integrity uint64 // labels that some endorse sets
	processes map[string]*Process
	files     *tree
	endpoints map[string]*channel // those with both peers in the scope, by key
	pipes     map[string]*channel
	gates     []gate
	requests  []*request
	answers   map[string]*answer
}

// Process is a thread group.
type Process struct {
	Name    string
	Labels  uint64
	Lineage uint64 // which exec patterns it and its ancestors have run
	// cleared are the labels that its program clears: "While a declassifier's image
	// runs, it does not regain the label". A fork runs the same image.
	cleared uint64
	pending []pending
	mapped  []mapping
	ended   bool
}

// pending is a gate that waits for its program to end with a status, with the
// epoch of the exec.
type pending struct{ gate, exit, epoch int }

// mapping is a live shared writable mapping, and the path by which it was opened.
type mapping struct {
	file *file
	path string
}

// gate is fresh when it was armed in the present epoch.
type gate struct{ epoch, armed int }

// channel carries labels between processes.
type channel struct {
	labels uint64
	owner  *Process // who listens, if it is an endpoint
}

// New returns the state of a scope in which nothing has happened.
func New(p *ir.Program) *Scope {
	s := &Scope{
		program: p, processes: map[string]*Process{}, files: newTree(), endpoints: map[string]*channel{},
		pipes: map[string]*channel{}, gates: make([]gate, len(p.Gates)), answers: map[string]*answer{},
	}
	for i, l := range p.Labels {
		if l.Integrity {
			s.integrity |= 1 << i
		}
	}
	for i := range s.gates {
		s.gates[i].armed = -1
	}
	return s
}

// Process returns the process of a name. One that nothing forked is a child of
// the container's init and carries no labels.
func (s *Scope) Process(name string) *Process {
	if s.processes[name] == nil {
		s.processes[name] = &Process{Name: name}
	}
	return s.processes[name]
}

// FileLabels returns the labels that the file at a path carries.
func (s *Scope) FileLabels(path string) uint64 {
	return s.files.at(path).labels | s.pathSources(path)
}

// fork is: "σ(c) = σ(p), lineage copied". The child runs the parent's image, with
// its mappings; it is not the process whose end a gate waits for.
func (s *Scope) fork(p *Process, name string) error {
	if s.processes[name] != nil {
		return stepErrorf("there is a process %q already", name)
	}
	s.processes[name] = &Process{Name: name, Labels: p.Labels, Lineage: p.Lineage, cleared: p.cleared, mapped: append([]mapping(nil), p.mapped...)}
	return nil
}

// exit stamps what "ends normally with status N while it still runs the program
// that matched, with the epoch of that exec"; "a death by signal never counts".
func (s *Scope) exit(p *Process, status int, normal bool) {
	for _, g := range p.pending {
		if normal && g.exit == status {
			s.gates[g.gate].armed = g.epoch
		}
	}
	p.pending, p.mapped, p.ended = nil, nil, true
}

// fresh tells whether an `after` condition holds. "A live shared writable mapping
// of a file keeps gates that it invalidates stale."
func (s *Scope) fresh(i int) bool {
	if s.gates[i].armed != s.gates[i].epoch {
		return false
	}
	for _, p := range s.processes {
		for _, m := range p.mapped {
			e := event{op: ir.Write, path: m.path, file: m.file}
			for _, since := range s.program.Gates[i].Since {
				if since.Op == ir.Write && e.named(since.Pattern, either) {
					return false
				}
			}
		}
	}
	return true
}

// gain is what a flow brings. "No file, endpoint or channel carries" an integrity
// label, "and its holder loses it when it gains another label by a flow".
func (s *Scope) gain(p *Process, labels uint64) {
	labels &^= p.cleared | s.integrity
	if labels&^p.Labels != 0 {
		p.Labels &^= s.integrity
	}
	p.Labels |= labels
}

// carried are the labels that a process gives to files and channels.
func (s *Scope) carried(p *Process) uint64 { return p.Labels &^ s.integrity }

// settle lets labels move through shared mappings until nothing changes: what one
// process of them gains, the file and all others that map it gain.
func (s *Scope) settle() {
	for changed := true; changed; {
		changed = false
		for _, p := range s.processes {
			for _, m := range p.mapped {
				file, process := m.file.labels, p.Labels
				m.file.labels |= s.carried(p)
				s.gain(p, m.file.labels)
				changed = changed || m.file.labels != file || p.Labels != process
			}
		}
	}
}

// LabelNames spells a set of labels.
func (s *Scope) LabelNames(set uint64) string {
	var names []string
	for ; set != 0; set &= set - 1 {
		if i := bits.TrailingZeros64(set); i < len(s.program.Labels) {
			names = append(names, s.program.Labels[i].Name)
		}
	}
	return "{" + strings.Join(names, ", ") + "}"
}

// stepError is a step that makes no sense, rather than one that is denied.
type stepError struct{ text string }

func (e *stepError) Error() string { return e.text }

func stepErrorf(format string, args ...any) error {
	return &stepError{fmt.Sprintf(format, args...)}
}
