// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/engine/stderr"
	"github.com/actplane/actplane/feedback"
)

// Bounds of the work for one scope: lines that wait to be written, and processes among
// which an ancestor is looked for.
const (
	maxNotes   = 32
	maxMembers = 4096
)

// noteQueue is what is to be written to the standard error of one scope's processes. Each
// has its own: a scope whose files make the kernel wait delays its own lines alone.
type noteQueue struct {
	lines feedback.Notes

	mu      sync.Mutex
	waiting []note // guarded by mu
	writing bool   // guarded by mu; a goroutine is at it
}

// note is a line with the process that it is for.
type note struct {
	process   kernel.ProcessID
	pid       int
	ancestors []kernel.ProcessID // nearest first
	file      stderr.File        // that was the process's standard error
	line      string
}

// note has a refusal written to the standard error of its process, if the policy wants
// that. It does not wait: a program that is refused something ends soon.
func (e *Engine) note(s *scope, rec kernel.Record, item feedback.Item) {
	if !s.rules().Feedback.Stderr || rec.Stderr == (kernel.FileID{}) || rec.Process.ID == 0 {
		return
	}
	line, ok := s.notes.lines.Line(item, e.config.now())
	if !ok {
		return
	}
	s.notes.mu.Lock()
	defer s.notes.mu.Unlock()
	if len(s.notes.waiting) == maxNotes {
		return
	}
	s.notes.waiting = append(s.notes.waiting, note{rec.Process.ID, rec.PID, rec.Process.Ancestors, fileOf(rec.Stderr), line})
	if !s.notes.writing {
		s.notes.writing = true
		go e.writeNotes(s)
	}
}

// fileOf is a file as stat(2) names it.
func fileOf(id kernel.FileID) stderr.File {
	return stderr.File{Device: unix.Mkdev(id.Device>>20, id.Device&(1<<20-1)), Inode: id.Inode}
}

// writeNotes writes what waits, until there is nothing more.
func (e *Engine) writeNotes(s *scope) {
	for {
		s.notes.mu.Lock()
		if len(s.notes.waiting) == 0 {
			s.notes.writing = false
			s.notes.mu.Unlock()
			return
		}
		next := s.notes.waiting[0]
		s.notes.waiting = s.notes.waiting[1:]
		s.notes.mu.Unlock()
		if err := e.writeNote(s, &next); err != nil {
			e.log.WithFields(s.fields()).WithError(err).Debug("a reason was not written to standard error")
		}
	}
}

// writeNote writes through the process itself, or where that has ended through the next
// ancestor that has the same file: a shell, or who reads what its command writes.
func (e *Engine) writeNote(s *scope, n *note) error {
	err := e.writeThrough(n.pid, n.process, n)
	if !errors.Is(err, stderr.ErrNotOpen) || len(n.ancestors) == 0 {
		return err
	}
	members := e.members(s)
	for _, ancestor := range n.ancestors {
		if pid, ok := members[ancestor]; ok {
			if err := e.writeThrough(pid, ancestor, n); !errors.Is(err, stderr.ErrNotOpen) {
				return err
			}
		}
	}
	return stderr.ErrNotOpen
}

// writeThrough writes to what a process has open, if the pid is still that of the process.
func (e *Engine) writeThrough(pid int, id kernel.ProcessID, n *note) error {
	p, err := stderr.Open(e.config.host.Proc(), pid)
	if err != nil {
		return err
	}
	defer p.Close()
	// Asked after it is held: if it is the one, what is held is as well.
	if process, found, err := e.config.Kernel.Process(pid); err != nil || !found || process.ID != id {
		return stderr.ErrNotOpen
	}
	return p.Write(n.file, []byte(n.line))
}

// members are the pids of a scope's processes.
func (e *Engine) members(s *scope) map[kernel.ProcessID]int {
	out := map[kernel.ProcessID]int{}
	pids, err := e.config.host.Processes(s.now().Cgroup)
	if err != nil || len(pids) > maxMembers {
		return nil
	}
	for _, pid := range pids {
		if process, found, err := e.config.Kernel.Process(pid); err == nil && found {
			out[process.ID] = pid
		}
	}
	return out
}
