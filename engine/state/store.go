// SPDX-License-Identifier: Apache-2.0

package state

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/actplane/actplane/internal/atomicfile"
)

// Directory is where a host keeps saved states.
const Directory = "/var/lib/actplane/containers"

// Retention is for how long a state is kept after its container has stopped, where the
// host's configuration does not say.
const Retention = 24 * time.Hour

// Total bounds all saved states of a host together, in bytes. Above it a state is
// saved as lost, which takes next to nothing.
const Total = 512 << 20

// Store is the saved states of a host: for each container ID a file ID.state, and
// while it runs a file ID.run, which names the start: a state of another start is not
// what the container has become since. One process uses it at a time.
type Store struct {
	dir       string
	retention time.Duration
	now       func() time.Time
	total     int64

	mu    sync.Mutex         // one writer at a time
	swept map[string]glimpse // states that Sweep has read; guarded by mu
}

// glimpse is what of a large state is looked at often.
type glimpse struct {
	home  string
	saved time.Time
}

// MakeDirectory makes a directory of saved states, for root alone.
func MakeDirectory(dir string) error {
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = os.Chmod(dir, 0o700)
	}
	if err != nil {
		return fmt.Errorf("make the directory of saved states: %w", err)
	}
	return nil
}

// Open makes the directory, for root alone. now is the clock.
func Open(dir string, retention time.Duration, now func() time.Time) (*Store, error) {
	if err := MakeDirectory(dir); err != nil {
		return nil, err
	}
	if err := atomicfile.RemoveLeftovers(dir); err != nil {
		return nil, fmt.Errorf("clean the directory of saved states: %w", err)
	}
	return &Store{dir: dir, retention: retention, now: now, total: Total, swept: map[string]glimpse{}}, nil
}

func (s *Store) statePath(id string) string { return filepath.Join(s.dir, id+".state") }
func (s *Store) runPath(id string) string   { return filepath.Join(s.dir, id+".run") }

// Load gives the state of a container that is about to start, nil if there is none or
// its time is up. What is there and cannot be used comes back as a state that is lost. One
// of another container that had the same id is forgotten; see Another.
func (s *Store) Load(id, home string) *Saved {
	s.mu.Lock()
	defer s.mu.Unlock()
	saved := s.load(id)
	if saved == nil || s.expired(saved) {
		return nil
	}
	if !Another(saved.Home, home) {
		return saved
	}
	// At once: should this start be lost, it must not be taken for one of that container.
	if err := s.forget(id); err != nil {
		return &Saved{ID: id, Saved: s.now(), Lost: err.Error()}
	}
	return nil
}

// load reads a state, whatever its age.
func (s *Store) load(id string) *Saved {
	run, runErr := os.ReadFile(s.runPath(id))
	saved, err := s.read(id)
	switch {
	case errors.Is(err, fs.ErrNotExist) && errors.Is(runErr, fs.ErrNotExist):
		return nil
	case errors.Is(runErr, fs.ErrNotExist) && err == nil, runErr == nil && err == nil && saved.Run == string(run):
		return saved
	}
	lost := &Saved{ID: id, Saved: s.now(), Lost: "nothing was saved when it ended last"}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		lost.Lost = "its saved state is spoilt: " + err.Error()
	}
	if err == nil { // of an earlier start: what does not depend on files goes on
		// Answers do not: who knows what has used them up.
		lost.Name, lost.Home, lost.Counters, lost.Sequence = saved.Name, saved.Home, saved.Counters, saved.Sequence
	}
	return lost
}

// read reads a file of ours.
func (s *Store) read(id string) (*Saved, error) {
	file, err := os.Open(s.statePath(id))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, MaxSize+1))
	if err != nil {
		return nil, err
	}
	if len(text) > MaxSize {
		return nil, errors.New("it is too large")
	}
	saved, err := decode(text)
	if err == nil && saved.ID != id {
		err = fmt.Errorf("it is of container %.64q", saved.ID)
	}
	return saved, err
}

func (s *Store) expired(saved *Saved) bool { return s.now().Sub(saved.Saved) > s.retention }

// Begin notes on disk, before it returns, that a start of a container has begun: what
// was saved before is no longer its state.
func (s *Store) Begin(id, run string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := atomicfile.Write(s.runPath(id), []byte(run), atomicfile.Options{Mode: 0o600, Sync: true}); err != nil {
		return fmt.Errorf("note the start: %w", err)
	}
	return nil
}

// Cancel takes Begin back: the container's program has not run.
func (s *Store) Cancel(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.remove(s.runPath(id))
}

// Save keeps the state of a container that has stopped. When it returns nil, it is on
// disk. If it does not fit, it is kept as lost, which is no error.
func (s *Store) Save(saved *Saved) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, err := saved.encode()
	if err != nil {
		return err
	}
	if used := s.used(saved.ID); used+int64(len(text)) > s.total {
		short := *saved
		short.Files, short.Filesystems, short.Open, short.Answers = nil, nil, nil, nil
		short.Lost = fmt.Sprintf("the saved states of this host have %d MiB, and no more are kept", used>>20)
		if text, err = short.encode(); err != nil {
			return err
		}
	}
	if err := atomicfile.Write(s.statePath(saved.ID), text, atomicfile.Options{Mode: 0o600, Sync: true}); err != nil {
		return fmt.Errorf("save state: %w", err)
	}
	delete(s.swept, saved.ID)
	return s.remove(s.runPath(saved.ID))
}

// used is how many bytes the states of other containers have.
func (s *Store) used(but string) (sum int64) {
	entries, _ := os.ReadDir(s.dir) // what cannot be read fails when it is written
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && entry.Name() != but+".state" {
			sum += info.Size()
		}
	}
	return sum
}

// Reset makes the next start of a stopped container one that knows of nothing that
// happened before, and is not reported for it.
func (s *Store) Reset(id string) error {
	s.mu.Lock()
	old := s.load(id)
	s.mu.Unlock()
	if old == nil {
		return fmt.Errorf("there is no saved state of container %q", id)
	}
	return s.Save(&Saved{ID: id, Name: old.Name, Home: old.Home, Saved: s.now(), Counters: old.Counters, Sequence: old.Sequence})
}

// Remove forgets a container.
func (s *Store) Remove(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.forget(id)
}

// forget is Remove for who holds the lock.
func (s *Store) forget(id string) error {
	delete(s.swept, id)
	return errors.Join(s.remove(s.runPath(id)), s.remove(s.statePath(id)))
}

// remove removes a file for good.
func (s *Store) remove(path string) error {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = atomicfile.SyncDirectory(s.dir)
	}
	if err != nil {
		return fmt.Errorf("remove saved state: %w", err)
	}
	return nil
}

// Sweep forgets the states whose time is up and those of containers that are removed.
// live tells whether a container runs or is about to; starts of which nobody knows any
// more are lost, and their time begins now.
func (s *Store) Sweep(live func(id string) bool) error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return fmt.Errorf("list saved states: %w", err)
	}
	var errs []error
	for _, entry := range entries {
		id, kind := splitName(entry.Name())
		if kind == "" || live(id) {
			continue
		}
		errs = append(errs, s.sweep(id, kind))
	}
	return errors.Join(errs...)
}

// splitName takes a file's name apart; of a name that is not ours it gives nothing.
func splitName(name string) (id, kind string) {
	for _, kind := range []string{"state", "run"} {
		if id, ok := strings.CutSuffix(name, "."+kind); ok {
			return id, kind
		}
	}
	return "", ""
}

func (s *Store) sweep(id, kind string) error {
	s.mu.Lock()
	known, cached := s.swept[id]
	s.mu.Unlock()
	if kind == "run" || !cached {
		s.mu.Lock()
		saved := s.load(id)
		s.mu.Unlock()
		if saved == nil {
			return nil
		}
		if kind == "run" && saved.Run == "" {
			return s.Save(saved) // lost: its retention begins
		}
		known = glimpse{saved.Home, saved.Saved}
	}
	if Removed(known.home) || s.now().Sub(known.saved) > s.retention {
		return s.Remove(id)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.swept[id] = known
	return nil
}

// Removed tells whether a container is gone for good, by its home.
func Removed(home string) bool {
	if home == "" {
		return false
	}
	_, err := os.Stat(home)
	return errors.Is(err, fs.ErrNotExist)
}

// Another tells whether what had a home of its own is another container than the one of
// the same id that is here now: it is removed, or about to be, since its home is not this
// one's. What is not known, "", tells nothing.
func Another(then, now string) bool {
	return Removed(then) || then != "" && now != "" && then != now
}

// Entry is a saved state as it is listed.
type Entry struct {
	*Saved
	Expires time.Time
	Size    int64
}

// List lists the saved states, by container; those of containers that run are what
// they were before.
func (s *Store) List() ([]Entry, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("list saved states: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Entry
	listed := map[string]bool{}
	for _, entry := range entries {
		id, kind := splitName(entry.Name())
		if kind == "" || listed[id] {
			continue
		}
		listed[id] = true
		if saved := s.load(id); saved != nil {
			e := Entry{Saved: saved, Expires: saved.Saved.Add(s.retention)}
			if info, err := os.Stat(s.statePath(id)); err == nil {
				e.Size = info.Size()
			}
			list = append(list, e)
		}
	}
	return list, nil
}
