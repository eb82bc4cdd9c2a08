// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/actplane/actplane/engine/api"
)

// fields are what a log line says of a scope.
func (s *scope) fields() logrus.Fields {
	r := s.now()
	fields := logrus.Fields{"scope": s.id}
	if r.Name != "" {
		fields["name"] = r.Name
	}
	return fields
}

// alive tells whether a scope that was attached still has something to govern.
// When in doubt it has.
func (e *Engine) alive(r record) bool {
	id, err := e.config.host.CgroupID(r.Cgroup)
	if errors.Is(err, fs.ErrNotExist) || err == nil && id != r.CgroupID {
		return false
	}
	populated, err := e.config.host.Populated(r.Cgroup)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err != nil || populated {
		return true
	}
	// Empty: but the first process may have been moved elsewhere, and is bound
	// by the policy there too.
	start, err := e.config.host.StartTime(r.PID)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	return err != nil || start == r.PIDStart
}

// closeScope answers Close: it ends the scope if its container is gone, and is
// content if there is none.
func (e *Engine) closeScope(req *api.CloseRequest) error {
	defer e.ids.lock(req.Id)()
	s := e.scope(req.Id)
	if s == nil {
		return nil
	}
	if r := s.now(); r.State != staged && e.alive(r) {
		return nil
	}
	return e.finish(s, "its container is gone")
}

// finish ends a scope: out of the kernel first, so that a crash in between
// leaves a record by which the next daemon finds the rest. The id is locked.
func (e *Engine) finish(s *scope, why string) error {
	r := s.now()
	if r.State == staged {
		e.log.WithFields(s.fields()).WithField("why", why).Debug("staged scope dropped")
		e.discard(s)
		return nil
	}
	e.tellLost(s)
	final, total := e.slotStats(s), e.stats(s)
	if err := e.saveState(s, total); err != nil {
		e.log.WithFields(s.fields()).WithError(err).Error("the container's state is not saved, and counts as lost at its next start")
	}
	if r.Slot != nil {
		if err := e.config.Kernel.Remove(*r.Slot); err != nil {
			return fmt.Errorf("remove scope from the kernel: %w", err)
		}
	}
	if r.Lock != nil && r.Run == "" { // it is not started again
		if err := e.states.RemoveLock(s.id); err != nil {
			e.log.WithFields(s.fields()).WithError(err).Warn("forget a lock")
		}
	}
	e.discard(s)
	s.mu.Lock()
	s.record.State = closed
	s.final, s.ended = final, e.config.now()
	s.mu.Unlock()
	e.keepClosed(s)
	e.log.WithFields(s.fields()).WithFields(logrus.Fields{
		"why": why, "denied": total.Denied, "notified": total.Notified, "lost": total.Lost,
	}).Info("scope closed")
	return nil
}

// keepClosed keeps the events of a closed scope for those who ask later. What
// is left of it in the ring buffer still comes to it.
func (e *Engine) keepClosed(s *scope) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = append(e.closed, s)
	e.dropClosed()
}

// dropClosed forgets closed scopes that are old, too many, or succeeded by a
// later start of the same container. mu is held.
func (e *Engine) dropClosed() {
	kept := e.closed[:0]
	latest := map[string]*scope{}
	for _, s := range e.closed {
		latest[s.id] = s
	}
	for i, s := range e.closed {
		s.mu.Lock()
		old := e.config.now().Sub(s.ended) > closedLifetime
		slot := s.record.Slot
		s.mu.Unlock()
		if !old && len(e.closed)-i <= maxClosed && latest[s.id] == s {
			kept = append(kept, s)
		} else if slot != nil && e.slots[*slot] == s {
			delete(e.slots, *slot)
		}
	}
	clear(e.closed[len(kept):])
	e.closed = kept
}

// sweepLoop closes what nobody closes.
func (e *Engine) sweepLoop(ctx context.Context) error {
	ticker := time.NewTicker(e.config.interval)
	defer ticker.Stop()
	for {
		e.sweep(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// sweep ends the scopes whose container is gone, and those that were prepared
// for a container that never came.
func (e *Engine) sweep(ctx context.Context) {
	for _, s := range e.live() {
		e.sweepScope(ctx, s)
	}
	e.sweepOrphans()
	e.sweepStates()
	e.logProblems()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.dropClosed()
}

// logProblems logs what is new in what the kernel side finds wrong.
func (e *Engine) logProblems() {
	problems := e.config.Kernel.Problems()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, sentence := range problems {
		if !slices.Contains(e.told, sentence) {
			e.log.Warn(sentence)
		}
	}
	e.told = problems
}

func (e *Engine) sweepScope(ctx context.Context, s *scope) {
	defer e.ids.lock(s.id)()
	if e.scope(s.id) != s {
		return
	}
	r := s.now()
	var err error
	switch {
	case r.State == staged && e.config.now().Sub(r.Prepared) > stagedLifetime:
		err = e.finish(s, "it was prepared and never attached")
	case r.State != staged && !e.alive(r):
		err = e.finish(s, "its container is gone")
	case r.State == enforcing && r.Slot == nil:
		err = e.reinstall(ctx, s)
	case r.State == enforcing:
		err = e.keepLocked(s)
		e.tellLost(s)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && s.complaint != err.Error() {
		s.complaint = err.Error()
		e.log.WithField("scope", s.id).WithError(err).Error("keep scope in order")
	}
}
