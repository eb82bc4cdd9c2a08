// SPDX-License-Identifier: Apache-2.0

package model

// channel carries labels between processes.
type channel struct {
	labels uint64
	owner  *Process // who listens, if it is an endpoint
}

// mapping is memory that processes share: a live shared writable mapping with the
// path by which the file was opened, or memory without a path.
type mapping struct {
	file *file
	path string
	// unresolved: the path is not known, and may be any.
	unresolved bool
	// stays: an exec does not end it, as with a tracer.
	stays bool
}

// gain is what a flow brings. "No file, endpoint or channel carries" an integrity
// label, "and its holder loses it when it gains another label by a flow".
func (s *Scope) gain(p *Process, labels uint64) {
	if p.setup {
		return
	}
	labels &^= p.image.cleared | s.integrity
	if labels&^p.Labels != 0 {
		p.Labels &^= s.integrity
	}
	p.Labels |= labels
}

// carried are the labels that a process gives to files and channels.
func (s *Scope) carried(p *Process) uint64 { return p.Labels &^ s.integrity }

// settle lets labels move through shared memory until nothing changes: what one
// process of it gains, the memory and all others that share it gain.
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
func (s *Scope) share(p *Process, name string) {
	if s.shared[name] == nil {
		s.shared[name] = &file{}
	}
	p.mapped = append(p.mapped, mapping{file: s.shared[name]})
	s.settle()
}

// debug is ptrace, process_vm_readv, process_vm_writev and /proc/PID/mem. "Nothing
// in the scope may trace" who is in setup "or open its memory". Who is traced or
// written to is not the program that ran any more.
func (s *Scope) debug(p *Process, op string, q *Process) *operation {
	o := &operation{subject: p}
	if q.setup {
		o.refused = "nothing traces or opens the memory of " + q.Name + ", which is in setup"
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
			p.mapped, q.mapped = append(p.mapped, both), append(q.mapped, both)
		}
	}
	return o
}
