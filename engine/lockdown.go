// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/engine/state"
	"github.com/actplane/actplane/feedback"
)

// maxLockReason bounds the reason of a lock, in bytes.
const maxLockReason = 1000

// lockdown locks scopes: from when it returns, nothing that their programs begin succeeds,
// but to exit. The note of it comes first, so that it holds whatever happens then: over
// restarts of the daemon and of the container, until it is taken back.
func (e *Engine) lockdown(req *api.LockdownRequest) (*api.LockdownResponse, error) {
	if len(req.Because) > maxLockReason || !utf8.ValidString(req.Because) {
		return nil, status.Errorf(codes.InvalidArgument, "the reason is longer than %d bytes, or is no text", maxLockReason)
	}
	ids, err := e.named(req.Scope, req.All, func() []string { return liveIDs(e.live()) })
	if err != nil {
		return nil, err
	}
	response := &api.LockdownResponse{}
	var errs []error
	for _, id := range ids {
		lock, err := e.lockScope(id, req)
		if err != nil {
			errs = append(errs, fmt.Errorf("lock %q: %w", shortID(id), err))
		}
		if lock != nil {
			response.Locks = append(response.Locks, apiLock(lock, e.scope(id) != nil))
		}
	}
	if req.All {
		errs = append(errs, e.lockOrphans())
	}
	if err := errors.Join(errs...); err != nil {
		return nil, status.Errorf(codes.Internal, "%s; the engine goes on trying", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return response, nil
}

// named are the ids that a request names: with all, those that all gives.
func (e *Engine) named(word string, all bool, every func() []string) ([]string, error) {
	switch {
	case all && word != "":
		return nil, status.Error(codes.InvalidArgument, "name a scope, or all, and not both")
	case all:
		ids := every()
		slices.Sort(ids)
		return ids, nil
	case word == "":
		return nil, status.Error(codes.InvalidArgument, "name a scope")
	}
	id, err := e.findAny(word)
	return []string{id}, err
}

func liveIDs(scopes []*scope) (ids []string) {
	for _, s := range scopes {
		ids = append(ids, s.id)
	}
	return ids
}

// lockScope locks one container, running or not. One that is locked stays as it is, but
// for a freeze that is asked for now.
func (e *Engine) lockScope(id string, req *api.LockdownRequest) (*state.Lock, error) {
	defer e.ids.lock(id)()
	s := e.scope(id)
	lock := e.states.LoadLock(id)
	known := lock != nil
	if lock == nil {
		lock = &state.Lock{ID: id, Since: e.config.now(), By: operatorOf(req.By).String(), Because: req.Because}
		if s != nil {
			r := s.now()
			lock.Name, lock.Home = r.Name, r.Home
		} else if saved := e.states.Load(id, ""); saved != nil {
			lock.Name, lock.Home = saved.Name, saved.Home
		}
	}
	lock.Freeze = lock.Freeze || req.Freeze
	if err := e.states.SaveLock(lock); err != nil {
		return nil, err
	}
	if !known {
		e.log.WithField("scope", id).WithField("by", lock.By).WithField("because", lock.Because).Warn("locked by an operator")
	}
	if s == nil {
		return lock, nil
	}
	if err := s.change(func(r *record) { r.Lock = lock }); err != nil {
		return lock, err
	}
	if err := e.enforceLock(s); err != nil {
		return lock, err
	}
	if !known {
		e.tellLock(s, lock, feedback.Locked, 0)
	}
	return lock, nil
}

// enforceLock brings a scope's lock into the kernel, if it has one. The id is locked, or
// nobody else knows the scope.
func (e *Engine) enforceLock(s *scope) error {
	r := s.now()
	if r.Lock == nil || r.Slot == nil {
		return nil
	}
	if err := e.config.Kernel.Lock(*r.Slot); err != nil {
		return err
	}
	if r.Lock.Freeze && r.Cgroup != "" {
		return e.config.host.Freeze(r.Cgroup, true)
	}
	return nil
}

// keepLocked is enforceLock for the sweep, where a lock did not take, or the policy was
// installed anew.
func (e *Engine) keepLocked(s *scope) error {
	r := s.now()
	if r.Lock == nil || r.Slot == nil {
		return nil
	}
	stats, err := e.config.Kernel.Stats(*r.Slot)
	if err != nil || stats.Locked {
		return err
	}
	return e.enforceLock(s)
}

// lockOrphans locks what the kernel enforces without a record: until it ends.
func (e *Engine) lockOrphans() error {
	e.mu.Lock()
	orphans := slices.Clone(e.orphans)
	e.mu.Unlock()
	var errs []error
	for _, slot := range orphans {
		errs = append(errs, e.config.Kernel.Lock(slot))
	}
	return errors.Join(errs...)
}

// unlock takes locks back. The kernel comes first: if the daemon dies in between, the
// scope is locked again.
func (e *Engine) unlock(req *api.UnlockRequest) (*api.UnlockResponse, error) {
	locks, err := e.states.Locks()
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	var ids []string
	if req.All || req.Scope == "" {
		ids, err = e.named(req.Scope, req.All, func() []string { return lockedIDs(locks) })
	} else {
		ids, err = e.findLock(locks, req.Scope)
	}
	if err != nil {
		return nil, err
	}
	response := &api.UnlockResponse{}
	var errs []error
	for _, id := range ids {
		lock, refused, err := e.unlockScope(id, operatorOf(req.By))
		if err != nil {
			errs = append(errs, fmt.Errorf("unlock %q: %w", shortID(id), err))
		} else if lock != nil {
			told := apiLock(lock, e.scope(id) != nil)
			told.Refused = refused
			response.Locks = append(response.Locks, told)
		}
	}
	if req.All {
		e.mu.Lock()
		orphans := slices.Clone(e.orphans)
		e.mu.Unlock()
		for _, slot := range orphans {
			errs = append(errs, e.config.Kernel.Unlock(slot))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, status.Error(codes.Internal, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return response, nil
}

func lockedIDs(locks []*state.Lock) (ids []string) {
	for _, lock := range locks {
		ids = append(ids, lock.ID)
	}
	return ids
}

// findLock finds the lock that a word names: by id, name, or the beginning of the id.
func (e *Engine) findLock(locks []*state.Lock, word string) ([]string, error) {
	for _, matches := range []func(*state.Lock) bool{
		func(l *state.Lock) bool { return l.ID == word },
		func(l *state.Lock) bool { return l.Name == word },
		func(l *state.Lock) bool { return strings.HasPrefix(l.ID, word) },
	} {
		var found []string
		for _, lock := range locks {
			if matches(lock) {
				found = append(found, lock.ID)
			}
		}
		if len(found) > 1 {
			return nil, status.Errorf(codes.InvalidArgument, "%q fits %d locked containers: %s", word, len(found), strings.Join(found, ", "))
		}
		if len(found) == 1 {
			return found, nil
		}
	}
	if id, err := e.findAny(word); err == nil {
		return nil, status.Errorf(codes.FailedPrecondition, "%q is not locked", shortID(id))
	}
	return nil, status.Errorf(codes.NotFound, "no container is %q; \"actplane ps\" lists them", word)
}

// unlockScope unlocks one container, and tells how many operations were refused.
func (e *Engine) unlockScope(id string, by operator) (*state.Lock, uint64, error) {
	defer e.ids.lock(id)()
	lock := e.states.LoadLock(id)
	if lock == nil {
		return nil, 0, nil
	}
	s := e.scope(id)
	var refused uint64
	if s != nil {
		r := s.now()
		if r.Slot != nil {
			refused = e.slotStats(s).Refused
			if err := e.config.Kernel.Unlock(*r.Slot); err != nil {
				return nil, 0, err
			}
		}
		if lock.Freeze && r.Cgroup != "" {
			if err := e.config.host.Freeze(r.Cgroup, false); err != nil {
				return nil, 0, err
			}
		}
		if err := s.change(func(r *record) { r.Lock = nil }); err != nil {
			return nil, 0, err
		}
	}
	if err := e.states.RemoveLock(id); err != nil {
		return nil, 0, err
	}
	e.log.WithField("scope", id).WithField("by", by.String()).WithField("refused", refused).Warn("unlocked by an operator")
	if s != nil {
		told := *lock
		told.By = by.String()
		e.tellLock(s, &told, feedback.Unlocked, refused)
	}
	return lock, refused, nil
}

// tellLock puts a lock, or its end, among the scope's events.
func (e *Engine) tellLock(s *scope, lock *state.Lock, outcome feedback.Outcome, refused uint64) {
	item := feedback.Item{
		Time: e.config.now(), Effect: feedback.Block, Operation: "lockdown", Outcome: outcome,
		By: lock.By, Reason: lock.Because, Refused: refused, Since: lock.Since,
	}
	item, err := s.events.add(item, s.events.told())
	if err != nil {
		e.log.WithFields(s.fields()).WithError(err).Warn("event will not survive a restart")
	}
	// The kernel has not counted it among those that it sent.
	if err := s.change(func(r *record) { r.Base.Sequence++ }); err != nil {
		e.log.WithFields(s.fields()).WithError(err).Warn("save scope")
	}
	e.hub.publish(s, item)
}

// refuseLocked is the error of a container that is to be started while it is locked.
func (e *Engine) refuseLocked(id string) error {
	lock := e.states.LoadLock(id)
	if lock == nil {
		return nil
	}
	return status.Errorf(codes.FailedPrecondition, "%s; \"actplane unlock %s\" ends that", lockSentence(lock), shortID(id))
}

// lockSentence says since when a container is locked.
func lockSentence(lock *state.Lock) string {
	text := "locked by " + lock.By
	if !lock.Since.IsZero() {
		text += " since " + lock.Since.UTC().Format(time.RFC3339)
	}
	if lock.Because != "" {
		text += ", because: " + lock.Because
	}
	return text
}

func apiLock(lock *state.Lock, running bool) *api.Lock {
	out := &api.Lock{Id: lock.ID, Name: lock.Name, By: lock.By, Because: lock.Because, Frozen: lock.Freeze, Running: running}
	if !lock.Since.IsZero() {
		out.SinceUnixMs = lock.Since.UnixMilli()
	}
	return out
}

// lockedScopes are the containers that are locked and do not run, as List tells of them.
func (e *Engine) lockedScopes() []*api.Scope {
	locks, err := e.states.Locks()
	if err != nil {
		e.log.WithError(err).Warn("list locks")
	}
	var out []*api.Scope
	for _, lock := range locks {
		if e.scope(lock.ID) == nil {
			out = append(out, &api.Scope{Id: lock.ID, Name: lock.Name, State: "locked", Lock: apiLock(lock, false),
				Degraded: []string{lockSentence(lock) + "; it does not run, and cannot be started"}})
		}
	}
	return out
}

// lockTrouble is what a locked scope's operator should know.
func (r *record) lockTrouble(stats kernel.Stats) []string {
	if r.Lock == nil {
		return nil
	}
	text := lockSentence(r.Lock) + fmt.Sprintf("; everything that its programs do is refused, %d times so far", stats.Refused)
	if r.Lock.Freeze {
		text += "; they are stopped"
	}
	if !stats.Locked {
		text = cmp.Or(lockSentence(r.Lock), "") + "; this is NOT in force yet"
	}
	return []string{text}
}
