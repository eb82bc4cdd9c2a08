// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/actplane/actplane/internal/atomicfile"
)

// backupSuffix is of the configuration as it was before the runtime came in.
const backupSuffix = ".before-actplane"

// dockerSetup brings the runtime into Docker's configuration and out again.
type dockerSetup struct {
	ctx  context.Context
	out  io.Writer
	dry  bool
	file string
}

// edit is a change of the configuration that was checked and not yet made.
type edit struct {
	path    string // behind any links
	before  []byte
	after   []byte
	existed bool
	mode    fs.FileMode
	owner   *atomicfile.Owner // nil: who writes it
}

// options make what is written look like what was there.
func (e *edit) options() atomicfile.Options {
	return atomicfile.Options{Mode: uint32(e.mode), Owner: e.owner, Sync: true}
}

// present tells whether Docker is installed.
func (d *dockerSetup) present() bool {
	_, err := exec.LookPath("dockerd")
	return err == nil || exists(d.file)
}

// plan reads the configuration and makes the new one. Nothing is written.
func (d *dockerSetup) plan(change func([]byte) ([]byte, error)) (*edit, error) {
	e := &edit{path: d.file, mode: 0o644}
	if target, err := filepath.EvalSymlinks(d.file); err == nil {
		e.path = target
	}
	before, err := os.ReadFile(e.path)
	switch {
	case err == nil:
		e.before, e.existed = before, true
	case !errors.Is(err, fs.ErrNotExist):
		return nil, environmentError("read Docker's configuration: %v", err)
	}
	if info, err := os.Stat(e.path); err == nil {
		e.mode = info.Mode().Perm()
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			e.owner = &atomicfile.Owner{UID: int(stat.Uid), GID: int(stat.Gid)}
		}
	}
	if e.after, err = change(before); err != nil {
		return nil, environmentError("%s: %v; it was not changed", d.file, err)
	}
	return e, nil
}

func (e *edit) changes() bool { return !bytes.Equal(e.before, e.after) }

// apply writes the configuration, and what it was beside it.
func (d *dockerSetup) apply(e *edit) error {
	if !e.changes() {
		return nil
	}
	if d.dry {
		fmt.Fprintf(d.out, "would change %s to\n%s", d.file, e.after)
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(e.path), 0o755); err != nil {
		return environmentError("change Docker's configuration: %v", err)
	}
	if e.existed {
		if err := atomicfile.Write(e.path+backupSuffix, e.before, e.options()); err != nil {
			return environmentError("back up Docker's configuration: %v", err)
		}
	}
	if err := atomicfile.Write(e.path, e.after, e.options()); err != nil {
		return environmentError("change Docker's configuration: %v", err)
	}
	fmt.Fprintf(d.out, "changed %s\n", d.file)
	return nil
}

// remove takes the runtime out of the configuration and out of a running Docker.
// A Docker that keeps it until it is restarted is said to, and no reason to stop.
func (d *dockerSetup) remove(e *edit) error {
	if !e.changes() {
		return nil
	}
	if d.dry {
		fmt.Fprintf(d.out, "would change %s to\n%s", d.file, e.after)
		return nil
	}
	// A reload without the key, or without the file, leaves Docker's runtimes as
	// they are; one with an empty list does not.
	between, err := emptyRuntimes(e.before)
	if err == nil {
		err = atomicfile.Write(e.path, between, e.options())
	}
	if err != nil {
		return environmentError("change Docker's configuration: %v", err)
	}
	if err := d.verify(false); err != nil {
		fmt.Fprintf(d.out, "note: %v\n", err)
	}
	return d.undo(e)
}

// undo writes the configuration without the runtime. A file that install made
// goes; the backup goes when it says nothing else.
func (d *dockerSetup) undo(e *edit) error {
	backup, err := os.ReadFile(e.path + backupSuffix)
	made := errors.Is(err, fs.ErrNotExist) && strings.Join(strings.Fields(string(e.after)), "") == "{}"
	if made {
		err = os.Remove(e.path)
	} else {
		err = atomicfile.Write(e.path, e.after, e.options())
	}
	if err != nil {
		return environmentError("change Docker's configuration: %v", err)
	}
	if !made && bytes.Equal(backup, e.after) {
		os.Remove(e.path + backupSuffix)
	}
	fmt.Fprintf(d.out, "changed %s\n", d.file)
	return nil
}

// verify makes the running Docker read its configuration, and believes only what
// Docker says afterwards.
func (d *dockerSetup) verify(want bool) error {
	if d.dry {
		return nil
	}
	pid := d.daemonPID()
	if pid == 0 && !want {
		return nil
	}
	if pid == 0 {
		fmt.Fprintln(d.out, "Docker is not running; it reads the runtime when it starts")
		return nil
	}
	known, err := d.runtimes()
	if err != nil {
		return environmentError("Docker runs as process %d and \"docker info\" does not answer (%v): whether it knows the runtime is not verified", pid, err)
	}
	if known == want {
		return nil
	}
	if err := syscall.Kill(pid, syscall.SIGHUP); err != nil {
		return environmentError("tell Docker to reload: %v; run \"systemctl reload docker\"", err)
	}
	ok := poll(d.ctx, verifyTime, func() bool {
		known, err = d.runtimes()
		return err == nil && known == want
	})
	switch {
	case ok && want:
		fmt.Fprintln(d.out, "Docker knows the runtime: docker run --runtime actplane …")
	case ok:
		fmt.Fprintln(d.out, "Docker has forgotten the runtime")
	case want:
		return environmentError("%s has the runtime and Docker still says it does not know it; does dockerd read another file (--config-file)? Restart Docker and run \"docker info\"", d.file)
	default:
		return environmentError("%s is without the runtime and Docker still knows it; restart Docker", d.file)
	}
	return nil
}

// daemonPID is the process id of the Docker that reads this file; 0 if none runs.
func (d *dockerSetup) daemonPID() int {
	pidfile := "/var/run/docker.pid"
	var config struct {
		Pidfile string `json:"pidfile"`
	}
	if text, err := os.ReadFile(d.file); err == nil && json.Unmarshal(text[firstByte(text):], &config) == nil && config.Pidfile != "" {
		pidfile = config.Pidfile
	}
	text, err := os.ReadFile(pidfile)
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 1 {
		return 0
	}
	comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil || strings.TrimSpace(string(comm)) != "dockerd" {
		return 0 // the file is left of one that ended
	}
	return pid
}

// errDockerDenied tells that Docker runs and is not for this user.
var errDockerDenied = errors.New("only root and the group docker may ask it")

// runtimes asks Docker whether it knows ours.
func (d *dockerSetup) runtimes() (bool, error) {
	ctx, cancel := context.WithTimeout(d.ctx, verifyTime)
	defer cancel()
	out, err := exec.CommandContext(ctx, "docker", "info", "--format", "{{json .}}").Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) && len(exit.Stderr) > 0 {
			return false, dockerError(string(exit.Stderr))
		}
		return false, err
	}
	// A client without a server exits with 0, and tells of it among the facts.
	var info struct {
		Runtimes     map[string]json.RawMessage
		ServerErrors []string
	}
	if err := json.Unmarshal(out, &info); err != nil {
		return false, fmt.Errorf("read its answer: %w", err)
	}
	if len(info.ServerErrors) > 0 {
		return false, dockerError(info.ServerErrors[0])
	}
	_, ok := info.Runtimes[runtimeName]
	return ok, nil
}

// dockerError is what Docker's client complains of, as one line.
func dockerError(text string) error {
	if strings.Contains(text, "permission denied") {
		return errDockerDenied
	}
	return errors.New(clean(strings.Join(strings.Fields(text), " ")))
}
