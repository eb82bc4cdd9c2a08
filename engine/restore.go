// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/internal/atomicfile"
)

// restore takes over what an earlier daemon left: scopes that it knew, and
// slots of the kernel's that it had no time to write down.
func (e *Engine) restore() error {
	slots, err := e.config.Kernel.Slots()
	if err != nil {
		return fmt.Errorf("list installed scopes: %w", err)
	}
	held := map[kernel.Slot]bool{}
	for _, slot := range slots {
		held[slot] = true
	}
	entries, err := os.ReadDir(filepath.Join(e.dir, "scopes"))
	if err != nil {
		return fmt.Errorf("list scopes: %w", err)
	}
	for _, entry := range entries {
		e.restoreScope(filepath.Join(e.dir, "scopes", entry.Name()), held)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for slot := range held {
		if e.slots[slot] == nil {
			e.orphans = append(e.orphans, slot)
		}
	}
	if len(e.orphans) > 0 {
		e.log.WithField("slots", e.orphans).Warn("the kernel enforces scopes of which no record is left; they stay enforced while their cgroups are there")
	}
	return nil
}

// restoreScope takes one scope over, or removes its directory.
func (e *Engine) restoreScope(dir string, held map[kernel.Slot]bool) {
	log := e.log.WithField("scope", filepath.Base(dir))
	s, err := loadScope(dir)
	if errors.Is(err, fs.ErrNotExist) {
		// The daemon was killed while it made or removed the directory.
		if err := os.RemoveAll(dir); err != nil {
			log.WithError(err).Warn("remove scope directory")
		}
		return
	}
	if err != nil {
		// Not a problem of the engine's: other containers are not told of it.
		log.WithError(err).Warn("scope is not taken over")
		e.mu.Lock()
		e.unread = append(e.unread, &api.Scope{Id: filepath.Base(dir), State: "unknown",
			Degraded: []string{"it is not taken over: " + err.Error()}})
		if !errors.Is(err, errOtherVersion) {
			e.spoilt = append(e.spoilt, dir)
		}
		e.mu.Unlock()
		return
	}
	e.consultAnew(s)
	r := s.now()
	if r.State == attaching && r.Slot == nil {
		s.orphaned = true
		e.unnoted++
	}
	if r.Slot != nil && !held[*r.Slot] {
		r.Slot = nil
		err = s.change(func(r *record) { r.Slot = nil })
	}
	e.mu.Lock()
	e.scopes[s.id] = s
	if r.Slot != nil {
		e.slots[*r.Slot] = s
	}
	e.mu.Unlock()
	if r.State != staged && !e.alive(r) {
		if err := e.finish(s, "its container went while the daemon was away"); err != nil {
			log.WithError(err).Error("close scope") // the sweep tries again
		}
		return
	}
	// The note of a lock is made first.
	if lock := e.states.LoadLock(s.id); lock != nil && r.Lock == nil {
		err = errors.Join(err, s.change(func(r *record) { r.Lock = lock }))
	}
	if err := errors.Join(err, s.events.fault, e.enforceLock(s), e.finishSwap(s), e.resume(s)); err != nil {
		log.WithError(err).Error("scope taken over with faults")
		s.degrade(strings.ReplaceAll(err.Error(), "\n", "; "))
		return
	}
	e.log.WithFields(s.fields()).Info("scope taken over")
}

func loadScope(dir string) (*scope, error) {
	if err := checkID(filepath.Base(dir)); err != nil {
		return nil, err
	}
	r, err := loadRecord(dir)
	if err != nil {
		return nil, err
	}
	program, err := decodeProgram(r.Program)
	if err != nil {
		return nil, err
	}
	if err := atomicfile.RemoveLeftovers(dir); err != nil {
		return nil, fmt.Errorf("clean scope directory: %w", err)
	}
	s := &scope{id: r.ID, dir: dir, program: program, record: *r}
	if s.events, err = loadHistory(dir, r.Base.Sequence); err != nil {
		return nil, err
	}
	if s.provenance, err = loadProvenance(dir); err != nil {
		return nil, err
	}
	s.told = loadCursors(dir, s.events.Last())
	if s.requests, err = loadRequests(dir); err != nil {
		return nil, err
	}
	return s, nil
}

// degrade adds a sentence to those that tell what is wrong with a scope.
func (s *scope) degrade(sentence string) {
	_ = s.change(func(r *record) {
		if !slices.Contains(r.Degraded, sentence) {
			r.Degraded = append(slices.Clip(r.Degraded), sentence)
		}
	})
}

// listenAgain makes the socket of a scope that has one. It is put outside of the rules
// before it takes the old one's place.
func (e *Engine) listenAgain(s *scope, r record) error {
	if r.NoFeedback {
		return nil
	}
	listener, err := listenUnixWith(s.socketPath(), 0o666, func(path string) error {
		if r.Slot == nil {
			return nil
		}
		return e.exempt(s, *r.Slot, path)
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listener = listener
	return nil
}

// resume gives a scope its socket again.
func (e *Engine) resume(s *scope) error {
	r := s.now()
	if err := e.listenAgain(s, r); err != nil {
		return fmt.Errorf("feedback socket: %w", err)
	}
	if r.State == staged || r.State == attaching && r.Slot == nil {
		return nil
	}
	if r.State == attaching {
		// Nobody got an answer, so that the container's creation fails; until
		// its processes are gone, they stay under the policy.
		s.degrade("the daemon restarted while the container was being created")
		if err := s.change(func(r *record) { r.State, r.Attached = enforcing, e.config.now() }); err != nil {
			return err
		}
	}
	return e.serveFeedback(s)
}

// reinstall puts a policy into force again whose pins are gone, under a container
// that runs. What its processes have read and run until now is not known.
func (e *Engine) reinstall(ctx context.Context, s *scope) error {
	cgroup := s.now().Cgroup
	img, err := e.tables(s)
	if err != nil {
		return err
	}
	kept, _ := kernel.Keeps(img.tables)
	// Nothing is known of what was done until now.
	unknown := kernel.State{AssumedLabels: kept, AssumedFlags: kernel.FileUnknown}
	slot, err := e.occupy(s, cgroup, s.now().HostRoot, unknown)
	if err == nil {
		err = e.exempt(s, slot, s.socketPath())
	}
	if err == nil {
		err = e.selfTest(ctx, slot, cgroup)
	}
	if err == nil {
		err = e.enforceLock(s)
	}
	if err != nil {
		s.degrade("the policy is NOT in force: " + err.Error())
		return fmt.Errorf("install lost policy again: %w", err)
	}
	e.log.WithFields(s.fields()).Error("the kernel had lost the scope's policy; it is installed again")
	stats, err := e.config.Kernel.Stats(slot)
	if err != nil {
		return fmt.Errorf("read counters: %w", err)
	}
	return s.change(func(r *record) {
		r.Base = base{Records: records(stats), Sequence: s.events.Last()}
		r.Lost = "the policy was out of force while it ran"
		r.Degraded = []string{"the policy was out of force until " + e.config.now().UTC().Format(time.RFC3339) + ""}
	})
}

// sweepOrphans removes slots of which no record was found, once their cgroup is
// gone. A slot may also belong to a scope that was being attached when the daemon
// was killed, in the moment between the kernel's work and the note of it: it can
// go when these scopes have. If there are more of them, some are of containers
// whose records were deleted; these may run, and stay enforced.
func (e *Engine) sweepOrphans() {
	e.mu.Lock()
	orphans := e.orphans
	explained := len(orphans) > 0 && len(orphans) <= e.unnoted
	for _, s := range e.scopes {
		if s.orphaned {
			explained = false // still there
		}
	}
	e.mu.Unlock()
	var left []kernel.Slot
	for _, slot := range orphans {
		if !explained && !e.abandoned(slot) {
			left = append(left, slot)
			continue
		}
		if err := e.config.Kernel.Remove(slot); err != nil {
			e.log.WithField("slot", slot).WithError(err).Warn("remove a slot without a record")
			left = append(left, slot)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.orphans = left
	if explained {
		e.unnoted = len(left)
	}
	if len(left) > 0 {
		return
	}
	// Nothing is enforced of which there is no record.
	e.unread = nil
	for _, dir := range e.spoilt {
		if e.scopes[filepath.Base(dir)] == nil {
			os.RemoveAll(dir)
		}
	}
	e.spoilt = nil
}

// abandoned tells whether a slot's cgroup is gone. When in doubt it is not.
func (e *Engine) abandoned(slot kernel.Slot) bool {
	id, err := e.config.Kernel.Cgroup(slot)
	if err != nil || id == 0 {
		return err == nil
	}
	there, err := e.config.host.HasCgroup(id)
	return err == nil && !there
}
