// SPDX-License-Identifier: Apache-2.0

// Package ocihook is the OCI hook. In createRuntime, when the container's first
// process waits in its cgroup and its program has not begun, it has the engine
// bind the container's scope to that cgroup: without the engine's word that the
// policy holds there is no container. In poststop it has the scope closed.
//
// Behind our runtime, which has prepared the container, it looks once more at what came of
// that. Alone, where podman or CRI-O call it by a file of oci-hooks(5), it also finds the
// policy; it can change nothing any more, and refuses what does not meet the limits.
//
// A runtime shows what a failing hook writes to standard error, so that this is
// one line.
package ocihook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/internal/bundle"
	"github.com/actplane/actplane/internal/daemon"
	"github.com/actplane/actplane/internal/proc"
	"github.com/actplane/actplane/shim/prepare"
)

const (
	maxState = 4 << 20
	// The runtime kills a hook after 60 seconds: be done, and say why, before.
	attachTimeout = 55 * time.Second
	closeTimeout  = 10 * time.Second
)

// Hook is one call of the hook.
type Hook struct {
	Stdin  io.Reader
	Stderr io.Writer
	Host   *prepare.Host
}

// Main runs the hook as installed, for the stage that args name, and returns its
// exit status.
func Main(args []string) int {
	hook := &Hook{Stdin: os.Stdin, Stderr: os.Stderr, Host: prepare.DefaultHost()}
	return hook.Run(args[1:])
}

// alone is the word by which a file of oci-hooks(5) calls the hook: for whichever stage.
const alone = "alone"

// Run runs the hook for a stage.
func (h *Hook) Run(args []string) int {
	if len(args) != 1 {
		return h.say(errors.New("usage: actplane-hook createRuntime|poststop|alone, with the container's state on standard input"), 2)
	}
	stage := args[0]
	if stage != "createRuntime" && stage != "poststop" && stage != alone {
		return h.say(fmt.Errorf("unknown hook stage %q", stage), 2)
	}
	state, err := h.state()
	if stage == "poststop" || err == nil && stage == alone && state.Status == specs.StateStopped {
		if err == nil {
			err = h.poststop(state)
		}
		if err != nil {
			return h.say(err, 0) // the container is gone: an error must not keep the rest of it from going
		}
		return 0
	}
	if err == nil {
		err = h.createRuntime(state, stage == alone)
	}
	if err != nil {
		return h.say(err, 1)
	}
	return 0
}

func (h *Hook) say(err error, status int) int {
	line := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(err.Error(), "?"))
	// No newline: runc puts the whole into the middle of its own sentence.
	fmt.Fprint(h.Stderr, "actplane: "+line)
	return status
}

func (h *Hook) state() (*specs.State, error) {
	state := new(specs.State)
	if err := json.NewDecoder(io.LimitReader(h.Stdin, maxState)).Decode(state); err != nil {
		return nil, fmt.Errorf("read container state: %w", err)
	}
	if err := bundle.ValidID(state.ID); err != nil {
		return nil, fmt.Errorf("read container state: %w", err)
	}
	return state, nil
}

func (h *Hook) createRuntime(state *specs.State, alone bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), attachTimeout)
	defer cancel()
	if state.Pid <= 0 {
		return fmt.Errorf("container %q has no process yet", state.ID)
	}
	rootfs, err := rootOf(state.Bundle)
	if err != nil {
		return err
	}
	if alone {
		staged, err := h.Host.Adopt(ctx, state, rootfs)
		if err != nil || staged == nil {
			return err
		}
		if err := h.attach(ctx, state, rootfs); err != nil {
			staged.Undo()
			return err
		}
		return h.mark(state)
	}
	record, err := h.Host.Records.Load(state.ID)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // without one, something else has prepared it
		return err
	}
	if err := h.Host.Verify(state, rootfs, record); err != nil {
		return err
	}
	if err := h.attach(ctx, state, rootfs); err != nil {
		return err
	}
	return h.mark(state)
}

func (h *Hook) attach(ctx context.Context, state *specs.State, rootfs string) error {
	// The engine holds staged scopes on disk: one that was started anew knows them.
	client, err := daemon.Ensure(ctx, h.Host.Engine)
	if err != nil {
		return err
	}
	defer client.Close()
	if _, err := client.Attach(ctx, &api.AttachRequest{Id: state.ID, Pid: int64(state.Pid), Rootfs: rootfs}); err != nil {
		return fmt.Errorf("policy of container %.12q cannot be enforced: %s", state.ID, daemon.Reason(err))
	}
	return nil
}

// mark notes the container's process in its record.
func (h *Hook) mark(state *specs.State) error {
	record, err := h.Host.Records.Load(state.ID)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // prepared by something else than our runtime
	}
	if err != nil {
		return err
	}
	stat, err := proc.ReadStat(proc.Directory, state.Pid)
	if err != nil {
		return err
	}
	record.Pid, record.PidStarted = state.Pid, stat.Started
	return h.Host.Records.Save(record)
}

// rootOf is the absolute path of a bundle's root file system.
func rootOf(directory string) (string, error) {
	if !filepath.IsAbs(directory) {
		return "", fmt.Errorf("bundle %q is not an absolute path", directory)
	}
	file, err := bundle.Open(filepath.Join(directory, bundle.ConfigName))
	if err != nil {
		return "", err
	}
	var root struct{ Path string }
	if _, err := file.Root.Get("root", &root); err != nil {
		return "", err
	}
	switch {
	case root.Path == "":
		return "", fmt.Errorf("bundle %q has no root.path", directory)
	case filepath.IsAbs(root.Path):
		return filepath.Clean(root.Path), nil
	}
	return filepath.Join(directory, root.Path), nil
}

func (h *Hook) poststop(state *specs.State) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	record, err := h.Host.Records.Load(state.ID)
	if err == nil && !samePath(record.Bundle, state.Bundle) {
		return nil // another container of the same id is the one we know
	}
	defer h.Host.Records.Remove(state.ID)
	client, err := daemon.Connect(ctx, h.Host.Engine)
	if err != nil {
		return nil // a daemon that is not there finds out when it is back
	}
	defer client.Close()
	if _, err := client.EngineClient.Close(ctx, &api.CloseRequest{Id: state.ID}); err != nil {
		return fmt.Errorf("close scope of container %q: %s", state.ID, daemon.Reason(err))
	}
	return nil
}

// samePath compares paths of which runtimes may resolve links or not.
func samePath(a, b string) bool {
	if resolved, err := filepath.EvalSymlinks(b); err == nil {
		b = resolved
	}
	return filepath.Clean(a) == filepath.Clean(b)
}
