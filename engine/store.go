// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/engine/state"
	"github.com/actplane/actplane/internal/atomicfile"
)

// recordVersion is the layout of scope.json. A daemon leaves others alone.
const recordVersion = 1

// errOtherVersion tells a record that is not ours from one that is spoilt.
var errOtherVersion = errors.New("of another engine")

// lifeState is where a scope is in its life; the words are the API's.
type lifeState string

const (
	staged    lifeState = "staged"
	attaching lifeState = "attaching" // the kernel may know it; the client has no answer yet
	enforcing lifeState = "enforcing"
	closed    lifeState = "closed" // never in a scope.json
)

// record is what a new daemon must know of a scope: its scope.json.
type record struct {
	Version int
	ID      string
	Name    string
	Image   string // that it was made of; may be empty
	// NoFeedback: it has no socket and no guest program.
	NoFeedback bool `json:",omitempty"`
	Mode       string
	State      lifeState
	Program    json.RawMessage
	// Clauses maps the installed image's clause numbers to the program's. A
	// newer daemon's compiler may number them otherwise.
	Clauses []int
	// Defaults is the same of the defaults.
	Defaults []int
	// Protects is the same of what is protected.
	Protects []int
	Layers   []layer
	// Warnings are sentences on the policy and the container, from who prepared it.
	Warnings []string
	Prepared time.Time
	// Before are the counters of the container's earlier starts.
	Before kernel.Stats
	// From here on, all is empty before Attach.
	Attached time.Time
	PID      int    // the container's first process
	PIDStart uint64 // and when it started, in the kernel's ticks
	Cgroup   string // absolute directory
	CgroupID uint64
	HostRoot bool
	// Slot is nil until the kernel side has given one. An attaching scope
	// without a slot may have one all the same.
	Slot *kernel.Slot
	// Base is where the slot's counters and the scope's events meet.
	Base base
	// Run names this start; empty before its program could run, and for scopes that are
	// started once.
	Run string
	// Home is there as long as the container is; empty is not known.
	Home string
	// Ended is when the container ended last; zero: it is not known to have run.
	Ended time.Time
	// Filesystems are the container's, as it began.
	Filesystems []state.Filesystem
	// Kept are the labels that the kernel side keeps of files, and Marks tells whether it
	// keeps if they were changed.
	Kept  []string
	Marks bool
	// Lost is why not all is known of the container's earlier starts.
	Lost string
	// Next is a policy that is being put into force.
	Next *next `json:",omitempty"`
	// Lock is an operator's, or nil.
	Lock *state.Lock
	// Degraded are sentences on what is not as it should be.
	Degraded []string
}

// base says that when the kernel had counted Records, the newest event was
// number Sequence. It tells how many records are still on their way.
type base struct {
	Records  uint64
	Sequence uint64
}

// layer is one policy document, for people to read.
type layer struct {
	Name  string
	Text  []byte
	Added *addition `json:",omitempty"` // nil: the container began with it
}

func (r *record) save(dir string) error {
	text, err := json.Marshal(r)
	if err == nil {
		err = atomicfile.Write(filepath.Join(dir, "scope.json"), text, atomicfile.Options{Mode: 0o600})
	}
	if err != nil {
		return fmt.Errorf("save scope: %w", err)
	}
	return nil
}

func loadRecord(dir string) (*record, error) {
	text, err := os.ReadFile(filepath.Join(dir, "scope.json"))
	if err != nil {
		return nil, fmt.Errorf("load scope: %w", err)
	}
	r := &record{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("load scope: %w", err)
	}
	if r.Version != recordVersion {
		return nil, fmt.Errorf("load scope: %w: scope.json has version %d, this daemon reads %d", errOtherVersion, r.Version, recordVersion)
	}
	if r.ID != filepath.Base(dir) {
		return nil, fmt.Errorf("load scope: scope.json is of %q", r.ID)
	}
	return r, nil
}
