// SPDX-License-Identifier: Apache-2.0

package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/actplane/actplane/internal/atomicfile"
)

// Lock is an operator's word that nothing of a container may go on, until it is taken
// back. It belongs to the container, whether it runs or not, and has no time.
type Lock struct {
	ID      string
	Name    string // what people call the container
	Since   time.Time
	By      string
	Because string
	Freeze  bool // its processes are stopped, too
	// Home is as in Saved.
	Home string
}

const lockSuffix = ".lock"

func (s *Store) lockPath(id string) string { return filepath.Join(s.dir, id+lockSuffix) }

// SaveLock keeps a lock. When it returns nil, it is on disk.
func (s *Store) SaveLock(lock *Lock) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, err := json.Marshal(lock)
	if err == nil {
		err = atomicfile.Write(s.lockPath(lock.ID), text, atomicfile.Options{Mode: 0o600, Sync: true})
	}
	if err != nil {
		return fmt.Errorf("save lock: %w", err)
	}
	return nil
}

// LoadLock gives the lock of a container, nil if there is none. One that cannot be read is
// a lock all the same.
func (s *Store) LoadLock(id string) *Lock {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.loadLock(id)
}

func (s *Store) loadLock(id string) *Lock {
	text, err := os.ReadFile(s.lockPath(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	lock := &Lock{}
	if err != nil || json.Unmarshal(text, lock) != nil || lock.ID != id {
		lock = &Lock{ID: id, By: "somebody", Because: "the note of the lock cannot be read"}
	}
	return lock
}

// RemoveLock forgets a lock; there need not be one.
func (s *Store) RemoveLock(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.remove(s.lockPath(id))
}

// Locks lists all locks, and forgets those of containers that are removed.
func (s *Store) Locks() ([]*Lock, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("list locks: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var locks []*Lock
	for _, entry := range entries {
		id, ok := strings.CutSuffix(entry.Name(), lockSuffix)
		if !ok {
			continue
		}
		lock := s.loadLock(id)
		if lock != nil && Removed(lock.Home) && s.remove(s.lockPath(id)) == nil {
			continue
		}
		if lock != nil {
			locks = append(locks, lock)
		}
	}
	return locks, nil
}
