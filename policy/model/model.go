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
	"time"

	"github.com/actplane/actplane/policy/ir"
)

// Scope is one container: "Scopes share nothing".
type Scope struct {
	program   *ir.Program
	integrity uint64        // labels that some endorse sets
	confines  uint64        // labels that the engine gives
	now       time.Duration // since the scope began
	processes map[string]*Process
	files     *tree
	endpoints map[string]*channel // those with both peers in the scope, by key
	pipes     map[string]*channel
	shared    map[string]*file // memory that processes share, without a name
	gates     []gate
	spoiling  []int          // by gate: how many mappings keep it stale
	mapped    int            // mappings of all processes
	maps      int            // those that there ever were
	queue     []*Process     // those that are queued
	watch     func(*Process) // is told whose labels may have changed, if somebody wants to know
	requests  requests
	answers   map[string]*answer
}

// Process is a thread group.
type Process struct {
	Name    string
	Labels  uint64
	Lineage uint64 // which exec patterns it and its ancestors have run
	image   image
	pending []pending
	mapped  []mapping
	open    dict[descriptor]
	tracer  *Process
	// What a grant binds, and the variables that let a program run others' code.
	dir, user string
	env       environment
	// setup: it came from outside, and "rules and invariants 2 and 3 don't apply to
	// it" before it has run a program of the container.
	setup bool
	held  *request // that it waits for, stopped
	// granted is what grants have opened for it, with the key of the answer.
	granted map[string]string
	ended   bool
	// queued: what it carries is to be looked at where it shares memory.
	queued bool
}

// pending is a gate that waits for its program to end with a status, with the
// epoch of the exec.
type pending struct{ gate, exit, epoch int }

// gate is fresh when it was armed in the present epoch, and that was not taken back.
type gate struct {
	epoch int
	armed int // how often
	fresh int // the number of the last time in the present epoch, 0 for none
	back  int // that of the last time which was taken back
}

// arming is one time that a gate was armed, by its number.
type arming struct {
	gate   *gate
	number int
}

// arm notes that the gate is armed in an epoch, which may be over.
func (g *gate) arm(epoch int) arming {
	if g.armed++; epoch == g.epoch {
		g.fresh = g.armed
	}
	return arming{g, g.armed}
}

// spoil begins another epoch.
func (g *gate) spoil() { g.epoch, g.fresh = g.epoch+1, 0 }

// takeBack closes the gate, unless it was armed again since.
func (a arming) takeBack() { a.gate.back = max(a.gate.back, a.number) }

func (g *gate) isFresh() bool { return g.fresh > g.back }

// New returns the state of a scope in which nothing has happened.
func New(p *ir.Program) *Scope {
	s := &Scope{
		program: p, processes: map[string]*Process{}, files: newTree(), endpoints: map[string]*channel{},
		pipes: map[string]*channel{}, shared: map[string]*file{}, gates: make([]gate, len(p.Gates)),
		spoiling: make([]int, len(p.Gates)), answers: map[string]*answer{},
	}
	for i, l := range p.Labels {
		if l.Integrity {
			s.integrity |= 1 << i
		}
		if l.Confines {
			s.confines |= 1 << i
		}
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

// FileLabels returns the labels that the file at a path carries, which no symbolic
// link is part of.
func (s *Scope) FileLabels(path string) uint64 {
	return s.files.find(path).labels | s.pathSources(path)
}

// Resolve returns a path without its symbolic links; follow tells whether to follow one
// in the last component. false: there are too many.
func (s *Scope) Resolve(path string, follow bool) (string, bool) {
	return s.files.resolve(path, follow)
}

// CanBeDirectory tells whether a path, which no symbolic link is part of, may be that of a
// directory, for all that happened: what moves is decided by that.
func (s *Scope) CanBeDirectory(path string) bool { return s.files.isDirectory(path) }

// fork is: "σ(c) = σ(p), lineage copied". The child runs the parent's image, with
// its mappings and descriptors; it is not the process whose end a gate waits for.
// "Its forks inherit setup", and who is traced has its children traced.
func (s *Scope) fork(p *Process, name string) error {
	if s.processes[name] != nil {
		return stepErrorf("there is a process %q already", name)
	}
	if err := s.mappable(len(p.mapped)); err != nil {
		return err
	}
	c := *p
	c.Name, c.pending, c.image.armed = name, nil, nil
	s.inherit(&c)
	s.processes[name] = &c
	return nil
}

// enter is a task that comes "from outside every scope (runc's init, runc exec)".
func (s *Scope) enter(name string) error {
	if s.processes[name] != nil {
		return stepErrorf("there is a process %q already", name)
	}
	s.Process(name).setup = true
	return nil
}

// exit stamps what "ends normally with status N while it still runs the program
// that matched, with the epoch of that exec"; "a death by signal never counts".
func (s *Scope) exit(p *Process, status int, normal bool) {
	for _, g := range p.pending {
		if normal && g.exit == status {
			s.gates[g.gate].arm(g.epoch)
		}
	}
	if p.held != nil {
		s.close(p.held)
	}
	s.detach(p, true)
	p.pending, p.open, p.granted, p.ended = nil, dict[descriptor]{}, nil, true
}

// Restart is the end of all processes, with what only they had; "file labels,
// modified marks, gates, denials and budgets belong to the container id, not to
// one start of it", and so do grants. A request goes with who asked.
func (s *Scope) Restart() {
	for _, p := range s.processes {
		s.exit(p, 0, false)
	}
	clear(s.processes)
	clear(s.endpoints)
	clear(s.pipes)
	clear(s.shared)
	s.requests = requests{}
}

// Lose is a restart for which nothing was saved: "gates start stale, files on
// persistent mounts count as modified and saturated". For the model all mounts
// persist.
func (s *Scope) Lose() {
	s.Restart()
	for i := range s.gates {
		s.gates[i].spoil()
	}
	clear(s.answers)
	s.files.saturate(s.ordinary())
}

// ordinary are all labels but those of integrity: "approximation and saturation
// add all ordinary labels and remove integrity labels".
func (s *Scope) ordinary() uint64 {
	return (1<<len(s.program.Labels) - 1) &^ (s.integrity | s.confines)
}

// Fresh tells whether an `after` condition holds, by its index in the program. "A live
// shared writable mapping of a file keeps gates that it invalidates stale."
func (s *Scope) Fresh(i int) bool { return s.gates[i].isFresh() && s.spoiling[i] == 0 }

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
