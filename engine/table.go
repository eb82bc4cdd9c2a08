// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/internal/atomicfile"
)

// maxPast is how many requests of a scope are kept whose answer is over.
const maxPast = 100

// requests is the table of one scope: what is open, what has an answer in force, and the
// latest of the others. It lies in a file as well, from which the next daemon goes on.
type requests struct {
	path string

	mu    sync.Mutex
	all   []*request // oldest first; guarded by mu
	saved time.Time  // when it was saved last; guarded by mu
	dirty bool       // it has changed since; guarded by mu
	// settled: no answer can end by itself, and none that has ended is in the kernel;
	// guarded by mu.
	settled bool
}

func newRequests(dir string) *requests {
	return &requests{path: filepath.Join(dir, "requests.json")}
}

// loadRequests takes over the table of an earlier daemon.
func loadRequests(dir string) (*requests, error) {
	t := newRequests(dir)
	text, err := os.ReadFile(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &t.all)
	}
	if err != nil {
		return nil, fmt.Errorf("load requests: %w", err)
	}
	for _, r := range t.all {
		r.told = true
	}
	return t, nil
}

// change edits the table and saves it; where it changes often, keepSaved does that a
// little later, since whoever records waits for it. What a killed daemon has not saved
// asks anew.
func (t *requests) change(now time.Time, edit func()) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	edit()
	t.drop(now)
	t.settled = false
	if t.dirty = true; time.Since(t.saved) < askInterval {
		return nil
	}
	return t.save()
}

// keepSaved saves the table if it has changed since.
func (t *requests) keepSaved() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.dirty {
		return nil
	}
	return t.save()
}

// save is for who holds mu.
func (t *requests) save() error {
	t.dirty, t.saved = false, time.Now()
	text, err := json.Marshal(t.all)
	if err == nil {
		err = atomicfile.Write(t.path, text, atomicfile.Options{Mode: 0o600})
	}
	if err != nil {
		return fmt.Errorf("save requests: %w", err)
	}
	return nil
}

// drop forgets the oldest of what is over. mu is held.
func (t *requests) drop(now time.Time) {
	past := func(r *request) bool { return r.State != requestOpen && !r.Answer.inForce(now) }
	excess := -maxPast
	for _, r := range t.all {
		if past(r) {
			excess++
		}
	}
	t.all = slices.DeleteFunc(t.all, func(r *request) bool {
		if excess <= 0 || !past(r) {
			return false
		}
		excess--
		return true
	})
}

// list copies the table.
func (t *requests) list() []request {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]request, 0, len(t.all))
	for _, r := range t.all {
		out = append(out, *r)
	}
	return out
}

// open finds the open request for an operation of a process. mu is held.
func (t *requests) open(key kernel.AskKey, process kernel.ProcessID) *request {
	return t.last(func(r *request) bool { return r.State == requestOpen && r.Key == key && r.Process == process })
}

// asking finds the request that a record is about: the open one, or one that was answered
// while the record was on its way. mu is held.
func (t *requests) asking(rec kernel.Record, process kernel.ProcessID) *request {
	if r := t.open(rec.Ask, process); r != nil || process != 0 {
		return r
	}
	return t.last(func(r *request) bool {
		a := r.Answer
		return r.Key == rec.Ask && a != nil && a.Over == "" &&
			(rec.Time.Before(a.Time) || rec.Asked == kernel.StillOpen && rec.Time.Equal(a.Time))
	})
}

// answered finds the request whose answer an operation has met. mu is held.
func (t *requests) answered(key kernel.AskKey, denied bool) *request {
	return t.last(func(r *request) bool { return r.Key == key && r.Answer != nil && r.Answer.Denied == denied })
}

// named finds a request by its name. mu is held.
func (t *requests) named(id string) *request {
	return t.last(func(r *request) bool { return r.ID == id })
}

// find copies what a search finds, nil for nothing.
func (t *requests) find(search func() *request) *request {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := search()
	if r == nil {
		return nil
	}
	found := *r
	return &found
}

func (t *requests) last(is func(*request) bool) *request {
	for _, r := range slices.Backward(t.all) {
		if is(r) {
			return r
		}
	}
	return nil
}

// mayEnd tells whether there can be something to do about answers: the kernel's table of
// all containers is not looked through for nothing.
func (t *requests) mayEnd() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.settled
}

// settle notes that no answer ends by itself until the table changes, but for KEPT ones
// that are over and still in the kernel.
func (t *requests) settle(kept bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settled = !kept && t.last(func(r *request) bool { return r.Answer != nil && r.Answer.Over == "" && !r.Answer.Lifetime }) == nil
}
