// SPDX-License-Identifier: Apache-2.0

package frontend

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// DockerConfig is where Docker's configuration is, of Debian's, Fedora's and Docker's
// own packages.
const DockerConfig = "/etc/docker/daemon.json"

const snapDocker = "/var/snap/docker"

// Docker is dockerd.
type Docker struct {
	Programs Programs
	Config   string
	Named    bool // the user named the file
	Probe    Probe
}

func (d *Docker) Name() string { return "Docker" }

// Look implements FrontEnd.
func (d *Docker) Look(ctx context.Context) State {
	var s State
	daemon, err := exec.LookPath("dockerd")
	client, clientErr := exec.LookPath("docker")
	file := d.file()
	s.Here = err == nil || clientErr == nil || exists(file) || exists(snapDocker)
	if !s.Here {
		return s
	}
	if s.Unfit, s.Remedy = d.unfit(daemon, client); s.Unfit != "" {
		return s
	}
	if text, err := os.ReadFile(file); err == nil {
		if without, err := removeRuntime(text); err == nil && !bytes.Equal(without, text) || strings.Contains(fmt.Sprint(err), "default-runtime") {
			s.Files = append(s.Files, file)
			s.Program = runtimePath(text)
		}
	}
	s.Running = d.daemonPID() != 0
	info, err := d.info(ctx)
	var denied *DeniedError
	switch {
	case errors.As(err, &denied):
		s.Running, s.Unsure = true, err
	case err != nil:
		s.Unsure = err
	case info.rootless():
		s.Unfit, s.Remedy = rootlessWhy, rootlessRemedy
	default:
		s.Running, s.Version, s.CgroupDriver = true, info.ServerVersion, info.CgroupDriver
		_, s.Knows = info.Runtimes[runtimeName]
	}
	return s
}

const (
	snapWhy    = "it is a snap, which is confined: it sees no programs of the host, so it cannot start containers by actplane-runtime"
	snapRemedy = "install Docker from Debian (docker.io), Docker's own repository (docker-ce) or as moby-engine, and run \"actplane install\" again"

	rootlessWhy    = "it is rootless: its runtimes run in a user's namespace, where they may not ask the engine, and only root decides what is under policy"
	rootlessRemedy = "use a Docker that runs as root; the agent in the container need not be root"
)

// unfit tells why this Docker cannot have the runtime.
func (d *Docker) unfit(daemon, client string) (why, remedy string) {
	switch {
	case d.Named && !strings.HasPrefix(d.Config, snapDocker) && !isRootless(d.Config):
		return "", ""
	case isRootless(d.Config):
		return rootlessWhy, rootlessRemedy
	case strings.HasPrefix(d.Config, snapDocker) || inSnap(daemon) || daemon == "" && inSnap(client) || daemon == "" && exists(snapDocker):
		return snapWhy, snapRemedy
	}
	if host, ok := strings.CutPrefix(os.Getenv("DOCKER_HOST"), "unix:///run/user/"); ok && host != "" {
		return rootlessWhy, rootlessRemedy
	}
	return "", ""
}

// isRootless tells by where a configuration is that a rootless Docker reads it.
func isRootless(config string) bool { return strings.HasSuffix(config, "/.config/docker/daemon.json") }

// inSnap tells whether a program belongs to a snap: those are links to snap itself.
func inSnap(path string) bool {
	return strings.HasPrefix(path, "/snap/") || strings.HasPrefix(path, "/var/lib/snapd/")
}

// file is the configuration that the running dockerd reads, unless the user named one.
func (d *Docker) file() string {
	if d.Named {
		return d.Config
	}
	pid := pidOf("/var/run/docker.pid")
	if pid == 0 {
		return d.Config
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return d.Config
	}
	args := strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
	for i, arg := range args {
		name, value, found := strings.Cut(arg, "=")
		if strings.TrimLeft(name, "-") != "config-file" {
			continue
		}
		if !found && i+1 < len(args) {
			value = args[i+1]
		}
		if filepath.IsAbs(value) {
			return value
		}
	}
	return d.Config
}

// Plan implements FrontEnd.
func (d *Docker) Plan(_ context.Context, remove bool) ([]*Edit, error) {
	e, err := planEdit(d.file(), daemonJSON{d.Programs.path(runtimeProgram)}, remove)
	if err != nil {
		return nil, err
	}
	if remove {
		e.resume()
	}
	return []*Edit{e}, nil
}

// resume goes on with a removal that ended between its two steps.
func (e *Edit) resume() {
	backup := e.backup()
	if backup == nil || e.Changes() {
		return
	}
	if full, err := addRuntime(backup, "/"+runtimeProgram); err == nil {
		if between, err := emptyRuntimes(full); err == nil && bytes.Equal(between, e.Before) {
			e.After = backup
		}
	}
}

// Apply implements FrontEnd. A reload without the key "runtimes", or without the file,
// leaves Docker's runtimes as they are; one with an empty list does not. So that is
// what Docker gets to read before ours is gone from the file.
func (d *Docker) Apply(ctx context.Context, edits []*Edit) error {
	var between error
	for _, e := range edits {
		if !e.removing || !e.Changes() {
			continue
		}
		text, err := emptyRuntimes(e.Before)
		if err != nil {
			return fmt.Errorf("change %s: %w", e.Path, err)
		}
		if err := e.write(e.target, text); err != nil {
			return fmt.Errorf("change %s: %w", e.Path, err)
		}
		_, between = d.Settle(ctx, false, false)
	}
	if err := applyAll(edits); err != nil {
		return err
	}
	if between != nil {
		return &LateError{between}
	}
	return nil
}

// A LateError is of what was done to the files, and has no effect before the front end
// is restarted.
type LateError struct{ cause error }

func (e *LateError) Error() string { return e.cause.Error() }
func (e *LateError) Unwrap() error { return e.cause }

// Settle implements FrontEnd: it makes the running Docker read its configuration, and
// believes only what Docker says afterwards. Docker is never restarted, which would
// end its containers.
func (d *Docker) Settle(ctx context.Context, want, _ bool) (string, error) {
	pid := d.daemonPID()
	if pid == 0 {
		return "Docker is not running; it reads its files when it starts", nil
	}
	known, err := d.knows(ctx)
	if err != nil {
		return "", fmt.Errorf("Docker runs as process %d and \"docker info\" does not answer (%w): whether it knows the runtime is not verified", pid, err)
	}
	if known != want {
		if err := syscall.Kill(pid, syscall.SIGHUP); err != nil {
			return "", fmt.Errorf("tell Docker to reload: %w; run \"systemctl reload docker\"", err)
		}
		Poll(ctx, settleTime, func() bool {
			known, err = d.knows(ctx)
			return err == nil && known == want
		})
	}
	switch {
	case known == want && want:
		return "Docker knows the runtime: docker run --runtime actplane …", nil
	case known == want:
		return "Docker has forgotten the runtime", nil
	case want:
		return "", fmt.Errorf("%s has the runtime and Docker still says it does not know it; does dockerd read another file (--config-file)? Restart Docker and run \"docker info\"", d.file())
	}
	return "", fmt.Errorf("%s is without the runtime and Docker still knows it; restart Docker", d.file())
}

// daemonPID is the process id of the Docker that reads this file; 0 if none runs.
func (d *Docker) daemonPID() int {
	pidfile := "/var/run/docker.pid"
	var config struct {
		Pidfile string `json:"pidfile"`
	}
	if text, err := os.ReadFile(d.file()); err == nil && json.Unmarshal(text[firstByte(text):], &config) == nil && config.Pidfile != "" {
		pidfile = config.Pidfile
	}
	return pidOf(pidfile)
}

// pidOf is the dockerd of which a file has the number; 0 if there is none.
func pidOf(pidfile string) int {
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

// dockerInfo is what Docker tells of itself.
type dockerInfo struct {
	ServerVersion   string
	CgroupDriver    string
	Runtimes        map[string]json.RawMessage
	SecurityOptions []string
	ServerErrors    []string
}

func (i *dockerInfo) rootless() bool {
	for _, option := range i.SecurityOptions {
		if strings.Contains(option, "name=rootless") {
			return true
		}
	}
	return false
}

func (d *Docker) info(ctx context.Context) (*dockerInfo, error) {
	out, err := output(ctx, "docker", "info", "--format", "{{json .}}")
	if err != nil {
		return nil, dockerError(err.Error())
	}
	// A client without a server exits with 0, and tells of it among the facts.
	var info dockerInfo
	if err := json.Unmarshal([]byte(out), &info); err != nil {
		return nil, fmt.Errorf("read its answer: %w", err)
	}
	if len(info.ServerErrors) > 0 {
		return nil, dockerError(info.ServerErrors[0])
	}
	return &info, nil
}

// knows asks Docker whether it knows the runtime.
func (d *Docker) knows(ctx context.Context) (bool, error) {
	info, err := d.info(ctx)
	if err != nil {
		return false, err
	}
	_, ok := info.Runtimes[runtimeName]
	return ok, nil
}

// dockerError is what Docker's client complains of, as one line.
func dockerError(text string) error {
	if strings.Contains(text, "permission denied") {
		return &DeniedError{"root and the group docker"}
	}
	return errors.New(oneLine(text))
}

// Try implements FrontEnd. The image is an empty folder, imported and removed again.
func (d *Docker) Try(ctx context.Context) error {
	if err := d.Probe.able(ctx); err != nil {
		return err
	}
	if d.daemonPID() == 0 {
		return &UntriedError{"Docker is not running"}
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	name := fmt.Sprintf("actplane-probe-%d", os.Getpid())
	load := exec.CommandContext(ctx, "docker", "import", "-", name)
	load.Stdin = bytes.NewReader(emptyImage())
	if err := told(load); err != nil {
		return fmt.Errorf("make an image: %w", err)
	}
	defer exec.CommandContext(context.WithoutCancel(ctx), "docker", "rmi", "--force", name).Run()
	args := []string{"run", "--rm", "--name", name, "--runtime", runtimeName, "--network", "none", "--env", probeVariable + "=" + probePolicy, name}
	return told(exec.CommandContext(ctx, "docker", append(args, probeCommand...)...))
}

// emptyImage is a root folder as an archive.
func emptyImage() []byte {
	var out bytes.Buffer
	archive := tar.NewWriter(&out)
	for _, name := range probeFolders {
		_ = archive.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755}) // to memory
	}
	_ = archive.Close()
	return out.Bytes()
}
