// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/policy"
	"github.com/actplane/actplane/policy/ir"
)

// scope is one container's, from Prepare until its events are forgotten. What
// changes its state holds the lock of its id (Engine.ids).
type scope struct {
	id     string
	dir    string // scopes/ID in the run directory
	events *history
	// provenance is how its labels came about.
	provenance *provenance
	told       *cursors // what of events was delivered to whom
	requests   *requests
	notes      noteQueue
	// orphaned: the kernel may hold it in a slot of which there is no note. Set
	// before others know the scope.
	orphaned bool

	telling sync.Mutex // held while lost records are told of

	adding   turns // of those who add rules; before the lock of its id
	checking turns // of those who ask what would be allowed

	mu        sync.Mutex
	record    record             // guarded by mu
	program   *ir.Program        // guarded by mu; what is in force, never changed itself
	former    numbers            // guarded by mu; what was in force before rules were added last
	image     *image             // guarded by mu; nil in a scope taken over, until it is installed
	listener  *net.UnixListener  // guarded by mu
	unserve   context.CancelFunc // guarded by mu; ends the feedback server
	final     kernel.Stats       // guarded by mu; its own counters when it was closed
	ended     time.Time          // guarded by mu
	complaint string             // guarded by mu; the last failure to close, logged once
}

func (s *scope) guestDir() string   { return filepath.Join(s.dir, "guest") }
func (s *scope) socketPath() string { return filepath.Join(s.guestDir(), "feedback.sock") }

// exempt puts the socket and the guest binary outside of the scope's rules. On a
// host without the guest binary the socket stands for both.
func (e *Engine) exempt(s *scope, slot kernel.Slot, socket string) error {
	if s.now().NoFeedback {
		return nil // there is neither
	}
	guest := filepath.Join(s.guestDir(), "bin", guestName)
	if _, err := os.Lstat(guest); err != nil {
		guest = socket
	}
	if err := e.config.Kernel.SetExempt(slot, socket, guest); err != nil {
		return fmt.Errorf("exempt the feedback socket: %w", err)
	}
	return nil
}

// now copies the scope's record.
func (s *scope) now() record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.record
}

// change changes the record and saves it.
func (s *scope) change(edit func(*record)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	edit(&s.record)
	return s.record.save(s.dir)
}

// closeListener ends the feedback server and its socket; the path stays.
func (s *scope) closeListener() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unserve != nil {
		s.unserve()
		s.unserve = nil
	}
	if s.listener != nil {
		s.listener.Close()
		s.listener = nil
	}
}

// rules is the policy that is in force, or will be.
func (s *scope) rules() *ir.Program {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.program
}

// tables gives the scope's compiled program, compiling it if the scope was taken
// over from an earlier daemon.
func (e *Engine) tables(s *scope) (*image, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.image == nil {
		img, err := e.images.acquire(s.record.Program)
		if err != nil {
			return nil, err
		}
		s.image = img
	}
	return s.image, nil
}

// stats are the container's counters, of all its starts that are remembered.
func (e *Engine) stats(s *scope) kernel.Stats {
	total, before := e.slotStats(s), s.now().Before
	total.Denied += before.Denied
	total.Notified += before.Notified
	total.Lost += before.Lost
	total.Starved += before.Starved
	return total
}

// slotStats are the scope's own counters, also after it was closed.
func (e *Engine) slotStats(s *scope) kernel.Stats {
	r := s.now()
	if r.State == closed || r.Slot == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.final
	}
	stats, err := e.config.Kernel.Stats(*r.Slot)
	if err != nil {
		e.log.WithField("scope", s.id).WithError(err).Debug("read counters")
	}
	return stats
}

// writtenRules counts the rules that the documents wrote.
func writtenRules(program *ir.Program) uint32 {
	var n uint32
	for _, rule := range program.Rules {
		if rule.Pos != policy.BuiltIn {
			n++
		}
	}
	return n
}

// feedback says how what happens is told to the scope's own programs.
func (s *scope) feedback() string {
	switch {
	case s.now().NoFeedback:
		return "none"
	case s.rules().Feedback.Stderr:
		return "socket,stderr"
	}
	return "socket"
}

// describe is the scope as the API tells of it.
func (e *Engine) describe(s *scope, problems []string) *api.Scope {
	r := s.now()
	stats := e.stats(s)
	out := &api.Scope{
		Id: r.ID, Name: r.Name, Mode: r.Mode, State: string(r.State),
		Rules:  writtenRules(s.rules()),
		Denied: stats.Denied, Notified: stats.Notified, Lost: stats.Lost,
		Warnings: r.Warnings, Image: r.Image, Feedback: s.feedback(),
	}
	for _, layer := range r.Layers {
		name := layer.Name
		if layer.Added != nil {
			name += " (at run time, for the " + layer.Added.forWhom() + ")"
		}
		out.Layers = append(out.Layers, name)
	}
	switch {
	case r.State == attaching:
		out.State = string(staged)
	case r.State == enforcing && r.Slot == nil:
		out.State = "failed"
	}
	if r.Lock != nil && r.State != closed {
		out.Lock = apiLock(r.Lock, true)
		out.Lock.Refused = stats.Refused
		if out.State == string(enforcing) && stats.Locked {
			out.State = "locked"
		}
	}
	if !r.Attached.IsZero() {
		out.StartedUnixMs = r.Attached.UnixMilli()
	}
	if r.State == closed {
		return out
	}
	if r.Cgroup != "" {
		out.Cgroup = r.Cgroup
		if mount, err := e.config.host.Mount(); err == nil {
			if below, err := filepath.Rel(mount, r.Cgroup); err == nil {
				out.Cgroup = "/" + below
			}
		}
		if pids, err := e.config.host.Processes(r.Cgroup); err == nil {
			out.Processes = uint32(len(pids))
		}
	}
	out.Degraded = append(append(out.Degraded, r.troubles(stats)...), problems...)
	return out
}

// troubles are the sentences that tell what is wrong with a scope.
func (r *record) troubles(stats kernel.Stats) []string {
	troubles := append(r.lockTrouble(stats), r.Degraded...)
	if r.Lost != "" {
		troubles = append(troubles, lostSentence(r.ID, r.Lost))
	}
	if stats.Saturated {
		troubles = append(troubles, "it has more labelled files than the engine holds: files of which nothing is kept count as modified and as carrying every label")
	}
	if stats.Starved > 0 {
		troubles = append(troubles, fmt.Sprintf("%d operations were refused, without a record, because the kernel had no memory to decide on them", stats.Starved))
	}
	return troubles
}
