// SPDX-License-Identifier: Apache-2.0

package model

import (
	"math/bits"
	"slices"

	"github.com/actplane/actplane/policy/ir"
)

// channel carries labels between processes.
type channel struct {
	labels uint64
	owner  *Process // who listens, if it is an endpoint
}

// mapping is memory that processes share: a live shared writable mapping with the
// path by which the file was opened, memory without a path, or a private mapping.
type mapping struct {
	file *file
	path string
	// unresolved: the path is not known, and may be any.
	unresolved bool
	// private: it shows what others write there, and nothing is written by it.
	private bool
	// stays: an exec does not end it, as with a tracer.
	stays bool
	// spoils are the gates, as bits, that writing to it makes stale.
	spoils uint64
}

// Bounds of the mappings of all processes together: those that there are at a time, which
// labels move between, and those that ever were, since a child gets all of its parent's.
const (
	maxMapped = 10_000
	maxMaps   = 1_000_000
)

// mappable says why a process cannot have more mappings, nil if it can.
func (s *Scope) mappable(more int) error {
	if s.mapped+more > maxMapped {
		return stepErrorf("there are more than %d shared mappings", maxMapped)
	}
	if s.maps+more > maxMaps {
		return stepErrorf("there were more than %d shared mappings, those that children have from their parents counted", maxMaps)
	}
	return nil
}

// attach gives a process a mapping, unless it has the same already.
func (s *Scope) attach(p *Process, m mapping) {
	if m.path != "" {
		e := event{op: ir.Write, path: m.path, file: m.file, unresolved: m.unresolved}
		for i := range s.program.Gates {
			if e.spoils(s.program.Gates[i]) {
				m.spoils |= 1 << i
			}
		}
	}
	if !slices.Contains(p.mapped, m) {
		p.mapped = append(p.mapped, m)
		s.count(p, m, 1)
		s.touch(p)
	}
}

// detach takes mappings from a process: all, or but those that stay.
func (s *Scope) detach(p *Process, all bool) {
	var kept []mapping
	for _, m := range p.mapped {
		if m.stays && !all {
			kept = append(kept, m)
		} else {
			s.count(p, m, -1)
		}
	}
	p.mapped = kept
}

// inherit gives a child the mappings of its parent.
func (s *Scope) inherit(p *Process) {
	p.mapped = slices.Clone(p.mapped)
	for _, m := range p.mapped {
		s.count(p, m, 1)
	}
	if p.queued { // as the parent is
		p.queued = false
		s.touch(p)
	}
}

// count keeps the numbers of mappings, of all, of the file and by the gate that they keep
// stale.
func (s *Scope) count(p *Process, m mapping, by int) {
	s.mapped, s.maps = s.mapped+by, s.maps+max(0, by)
	if m.file.shared == nil {
		m.file.shared = map[*Process]int{}
	}
	if m.file.shared[p] += by; m.file.shared[p] == 0 {
		delete(m.file.shared, p)
	}
	for set := m.spoils; set != 0; set &= set - 1 {
		gate := bits.TrailingZeros64(set)
		s.spoiling[gate] += by
		if by < 0 { // it may have been written to until now
			s.gates[gate].spoil()
		}
	}
}

// gain is what a flow brings. "No file, endpoint or channel carries" an integrity
// label, "and its holder loses it when it gains another label by a flow".
func (s *Scope) gain(p *Process, labels uint64) {
	if p.setup {
		return
	}
	labels &^= p.image.cleared | s.integrity | s.confines
	if labels&^p.Labels != 0 {
		p.Labels &^= s.integrity
	}
	if labels&^p.Labels != 0 {
		p.Labels |= labels
		s.touch(p)
	}
}

// label is what a flow brings to a file.
func (s *Scope) label(f *file, labels uint64) {
	if labels&^f.labels == 0 {
		return
	}
	f.labels |= labels
	for p := range f.shared {
		s.touch(p)
	}
}

// touch queues a process to be settled: what it carries has changed, or what it shares.
func (s *Scope) touch(p *Process) {
	if s.watch != nil {
		s.watch(p)
	}
	if !p.queued {
		p.queued = true
		s.queue = append(s.queue, p)
	}
}

// carried are the labels that a process gives to files and channels.
func (s *Scope) carried(p *Process) uint64 { return p.Labels &^ (s.integrity | s.confines) }

// settle lets labels move through shared memory until nothing changes: what one
// process of it gains, the memory and all others that share it gain.
func (s *Scope) settle() {
	for len(s.queue) > 0 {
		p := s.queue[0]
		s.queue = s.queue[1:]
		p.queued = false
		for _, m := range p.mapped {
			if !m.private {
				s.label(m.file, s.carried(p))
			}
			s.gain(p, m.file.labels)
		}
	}
}

// pipe moves labels through a pipe, which "is no object" and no event.
func (s *Scope) pipe(p *Process, op, name string) {
	c := s.pipes[name]
	if c == nil {
		c = &channel{}
		s.pipes[name] = c
	}
	switch op {
	case "pipewrite":
		c.labels |= s.carried(p)
	case "piperead":
		s.gain(p, c.labels)
	}
	s.settle()
}

// share is memory without a name: memfd, shm, SysV.
func (s *Scope) share(p *Process, name string) error {
	if err := s.mappable(1); err != nil {
		return err
	}
	if s.shared[name] == nil {
		s.shared[name] = &file{}
	}
	s.attach(p, mapping{file: s.shared[name]})
	s.settle()
	return nil
}

// debug is ptrace, process_vm_readv, process_vm_writev and /proc/PID/mem. "Nothing
// in the scope may trace" who is in setup "or open its memory". Who is traced or
// written to is not the program that ran any more.
func (s *Scope) debug(p *Process, op string, q *Process) *operation {
	o := &operation{subject: p}
	switch {
	case q.setup:
		o.refused = "nothing traces or opens the memory of " + q.Name + ", which is in setup"
	case p.Labels&s.confines&^q.Labels != 0: // it would act by the hands of the other
		o.refused = "rules that were added for " + p.Name + " do not hold for " + q.Name
	}
	o.flow = func() {
		switch op {
		case "memread":
			s.gain(p, s.carried(q))
		case "memwrite":
			s.tamper(q)
			s.gain(q, s.carried(p))
		case "ptrace":
			s.tamper(q)
			q.tracer = p
			both := mapping{file: &file{}, stays: true}
			s.attach(p, both)
			s.attach(q, both)
		}
	}
	return o
}
