// SPDX-License-Identifier: Apache-2.0

package bundle

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
	"github.com/actplane/actplane/internal/proc"
)

// ValidID says whether a container id is one: what runc accepts, and a file name.
func ValidID(id string) error {
	if id == "" {
		return errors.New("the container id is empty")
	}
	if len(id) > 200 {
		return errors.New("the container id is longer than 200 bytes")
	}
	for _, c := range []byte(id) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && !strings.ContainsRune("_+-.", rune(c)) {
			return fmt.Errorf("the container id %q has the character %q in it", id, c)
		}
	}
	if id == "." || id == ".." || id[0] == '-' {
		return fmt.Errorf("%q is not a container id", id)
	}
	return nil
}

// Record is what the runtime keeps of a container from create to poststop: an
// exec is not told of the bundle, yet has to apply the same limits.
type Record struct {
	ID     string
	Root   string // the runtime's --root, as given
	Bundle string
	// Unmanaged is a container that was started without a policy, as the host's
	// configuration permits.
	Unmanaged bool `json:",omitempty"`
	// Capabilities are filters that a capability must all pass.
	Capabilities    []CapabilityFilter `json:",omitempty"`
	NoNewPrivileges bool               `json:",omitempty"`
	// Limits are what an update of the container cannot go beyond.
	Limits Limits
	// SharedPID: its processes are not alone in their process namespace.
	SharedPID bool `json:",omitempty"`
	// Pid is the container's first process once the policy holds for it, and
	// PidStarted its start time in clock ticks, since pids are used again.
	Pid        int    `json:",omitempty"`
	PidStarted uint64 `json:",omitempty"`
}

// Limits are numbers of resources; zero is no limit.
type Limits struct {
	Pids   int64   `json:",omitempty"`
	Memory int64   `json:",omitempty"` // bytes, with swap
	CPUs   float64 `json:",omitempty"`
}

// CapabilityFilter drops capabilities, by name or ALL, but for those in Add.
type CapabilityFilter struct {
	Drop []string `json:",omitempty"`
	Add  []string `json:",omitempty"`
}

// Records is the folder of all records. Only root can reach it.
type Records string

// stagedLife is how long a container can take from create to createRuntime.
const stagedLife = 15 * time.Minute

func (r Records) path(id string) string { return filepath.Join(string(r), id+".json") }

// Save writes a record.
func (r Records) Save(record *Record) error {
	if err := ValidID(record.ID); err != nil {
		return err
	}
	if err := os.MkdirAll(string(r), 0o700); err != nil {
		return fmt.Errorf("make record folder: %w", err)
	}
	data, err := encode(record)
	if err != nil {
		return fmt.Errorf("encode record: %w", err)
	}
	if err := atomicfile.Write(r.path(record.ID), data, atomicfile.Options{Mode: 0o600}); err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	return nil
}

// Load reads a container's record; the error is fs.ErrNotExist without one.
func (r Records) Load(id string) (*Record, error) {
	if err := ValidID(id); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(r.path(id))
	if err != nil {
		return nil, fmt.Errorf("read record: %w", err)
	}
	record := new(Record)
	if err := json.Unmarshal(data, record); err != nil {
		return nil, fmt.Errorf("parse record of %q: %w", id, err)
	}
	if record.ID != id {
		return nil, fmt.Errorf("parse record of %q: it is of %q", id, record.ID)
	}
	return record, nil
}

// Remove deletes a container's record, if there is one.
func (r Records) Remove(id string) error {
	if err := ValidID(id); err != nil {
		return err
	}
	if err := os.Remove(r.path(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove record: %w", err)
	}
	return nil
}

// Stale says whether the record's container has come to its end, or never came
// to a start. An unmanaged one has no hooks that would tell its process: it is
// there for as long as its bundle.
func (r *Record) Stale(now, written time.Time) bool {
	if r.Unmanaged {
		_, err := os.Stat(r.Bundle)
		return errors.Is(err, fs.ErrNotExist) && now.Sub(written) > stagedLife
	}
	if r.Pid == 0 {
		return now.Sub(written) > stagedLife
	}
	stat, err := proc.ReadStat(proc.Directory, r.Pid)
	return err != nil || stat.Started != r.PidStarted
}

// Sweep removes what killed runtimes and hooks have left behind.
func (r Records) Sweep(now time.Time) {
	entries, err := os.ReadDir(string(r))
	if err != nil {
		return
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			continue
		}
		id, ok := strings.CutSuffix(entry.Name(), ".json")
		if strings.HasPrefix(entry.Name(), ".") || !ok { // a write that was killed
			if now.Sub(info.ModTime()) > stagedLife && info.Mode().IsRegular() {
				os.Remove(filepath.Join(string(r), entry.Name()))
			}
			continue
		}
		if record, err := r.Load(id); err == nil && record.Stale(now, info.ModTime()) {
			r.Remove(id)
		}
	}
}
