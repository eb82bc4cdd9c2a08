// SPDX-License-Identifier: Apache-2.0

// Package frontend brings the runtime "actplane" into the configurations of the programs
// that start containers (Docker, containerd, CRI-O, podman), and out of them again, and
// tells what they make of it.
//
// The files belong to others. They are edited as text: whatever is not ours stays byte
// for byte, and an edit whose outcome does not say the same plus our entry is not made.
// All edits are planned, and what can be refused is refused, before the first is made.
package frontend

import (
	"context"
	"path/filepath"
	"time"
)

const (
	runtimeName    = "actplane"
	runtimeProgram = "actplane-runtime"
	shimProgram    = "containerd-shim-actplane-v2"
)

// A FrontEnd is a program that starts containers.
type FrontEnd interface {
	// Name is what messages call it.
	Name() string
	// Look tells what is on this host. It changes nothing.
	Look(ctx context.Context) State
	// Plan makes the edits that bring the runtime in, or take it out.
	Plan(ctx context.Context, remove bool) ([]*Edit, error)
	// Apply makes them.
	Apply(ctx context.Context, edits []*Edit) error
	// Settle makes a daemon that runs read what was written, if it can do that without
	// being restarted or restart is true, and tells how it stands then. An error is that
	// it does not do as its files say.
	Settle(ctx context.Context, want, restart bool) (string, error)
	// Try starts a container that needs no image of anyone's, and asks in it whether its
	// policy is enforced. An *UntriedError tells why that is not possible here.
	Try(ctx context.Context) error
}

// State is what is on this host of a front end.
type State struct {
	Here    bool   // it is installed
	Version string // "" if it does not tell
	// Unfit is why the runtime cannot be brought in, "" if it can; Remedy is what helps.
	Unfit, Remedy string
	// Needless is why it needs no configuration, "" if it does; Hint is how it is used then.
	Needless, Hint string
	Files          []string // that have the runtime
	Program        string   // what they say it is; "" if that is for the front end to find
	CgroupDriver   string   // systemd or cgroupfs, "" if it does not tell
	Running        bool
	// Knows is whether what runs knows the runtime; Unsure is why that cannot be told.
	Knows  bool
	Unsure error
}

// An UntriedError is why no container was started.
type UntriedError struct{ Why string }

func (e *UntriedError) Error() string { return e.Why }

// A DeniedError tells that a front end runs and is not for this user.
type DeniedError struct{ Who string } // may ask it

func (e *DeniedError) Error() string { return "only " + e.Who + " may ask it" }

// Programs is where our programs are.
type Programs struct {
	Directory string
	Source    string // the folder that they are installed from, perhaps later than this; "" is none
	Hook      string // the file of hooks for podman and CRI-O, with a path that is replaced
}

func (p Programs) path(name string) string { return filepath.Join(p.Directory, name) }

// settleTime bounds how long a front end has to do as its files say, and one answer of it.
const settleTime = 20 * time.Second
