// SPDX-License-Identifier: Apache-2.0

// Package kernel is the half of the engine that touches the kernel: it probes
// by effect what this host can enforce, loads and pins the BPF programs, installs
// scopes, and decodes what the programs report.
//
// Enforcement does not depend on this process: maps and links are pinned, and a
// new process adopts them. The package knows images and cgroups, not containers,
// policies' texts or clients; those are package engine's.
package kernel

import (
	"time"

	"github.com/actplane/actplane/policy/dfa"
	"github.com/actplane/actplane/policy/ir"
)

// Tier is the way in which programs are attached on this host.
type Tier string

// The tiers, best first; see docs/architecture.md.
const (
	LSM     Tier = "lsm"
	FmodRet Tier = "fmod_ret"
)

// Spec is what a scope is installed with.
type Spec struct {
	// Cgroup is the scope's directory in the cgroup v2 file system, absolute.
	Cgroup string
	// HostRoot tells that the scope's processes keep the host's root directory,
	// so that their first exec, whatever their root, ends the setup state.
	HostRoot bool
	Image    *dfa.Image
	// State is what earlier starts of the same container have left.
	State State
}

// Slot names a scope in the kernel's tables. Generation tells apart the scopes
// that have had the same slot one after the other.
type Slot struct {
	Index      uint32
	Generation uint32
}

// Stats are a scope's counters since it was installed.
type Stats struct {
	Denied   uint64
	Notified uint64
	Lost     uint64 // records that did not fit into the ring buffer
	Starved  uint64 // operations refused for want of memory, without a record
	Unnoted  uint64 // gains of labels without a record
	Locked   bool   // everything is refused
	Refused  uint64 // operations while it was locked, without records
	// Saturated: there was no room for what is to be remembered of files.
	Saturated bool
}

// ProcessID names a process (a thread group) for as long as the engine's maps
// live; pids are for display only.
type ProcessID uint64

// Process is what the kernel side keeps of a process in a scope.
type Process struct {
	ID    ProcessID
	Slot  Slot
	Setup bool
	// Deep tells that the oldest ancestors are missing from the list.
	Deep bool
	// Ancestors, nearest first.
	Ancestors []ProcessID
	Labels    uint64
	Lineage   uint64 // bits of what it and its ancestors have run
	Cleared   uint64 // labels that its program has cleared, and does not regain
}

// Parent is a process above another.
type Parent struct {
	PID    int // as the host numbers it
	Inside int // and as its own pid namespace does
	Comm   string
}

// Record is one decoded record of the ring buffer.
type Record struct {
	Slot Slot
	Time time.Time
	// Probe marks the denial of a self-test; it is no event of the scope.
	Probe  bool
	Effect ir.Effect
	Op     ir.Op
	// Clause is the index in dfa.Image.Clauses of the deciding clause, or behind those
	// in dfa.Image.Protects of what is protected; -1 for
	// a decision of a default, or of the engine's own, which Reason explains.
	Clause  int
	Default int // index in dfa.Image.Defaults, or -1
	// Label is that of a file source that names other files when a directory is
	// renamed, which is why it was refused; or -1.
	Label  int
	Reason string
	// Former: the numbers above and in Matches are of the image before the last Swap.
	Former bool
	image  uint32
	// Matches are the clauses that matched, numbered as Clause is and in that order; of
	// more than 16 some, and MatchesCut tells that.
	Matches    []int
	MatchesCut bool
	// Object is the path, address or socket name, as the container sees it.
	Object string
	Args   []string // argv of an exec, bounded
	// ArgsCut tells that Args do not hold all of argv.
	ArgsCut bool
	PID     int // thread group, as the host numbers it
	Comm    string
	UID     uint32 // real, as the host numbers it
	// Mapped: of an exec, a program's code is mapped by another, which gives it
	// arguments that nobody sees.
	Mapped  bool
	Process Process
	// Carried are the labels of the process alone: Process.Labels has those that the
	// operation would bring in, too.
	Carried uint64
	Sources uint64 // labels that the object has by its name
	Lineage uint64 // bits of what the process and its ancestors have run
	Started time.Time
	File    FileID // of the object, if it is a file that there is
	// Stderr is the pipe or terminal that was the process's standard error, if it is one
	// that it could write to.
	Stderr FileID
	// Parents are the nearest processes above it in the scope, as they were then: the
	// nearest first.
	Parents []Parent
	// Asked is what became of an ask, Ask whom an answer to it is for.
	Asked Asked
	Ask   AskKey
	// Directory is the working directory that an ask is about.
	Directory FileID
}
