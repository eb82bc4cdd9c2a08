// SPDX-License-Identifier: Apache-2.0

package frontend

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// PodmanConfig is where podman's configuration is.
const PodmanConfig = "/etc/containers/containers.conf"

// Podman is podman run by root. It has no daemon: what its files say, counts.
type Podman struct {
	Programs Programs
	Config   string // its main file; ours goes to Config.d
	Probe    Probe
}

func (p *Podman) Name() string { return "podman" }

func (p *Podman) dropIn() string { return filepath.Join(p.Config+".d", dropInConf) }

// editor adds the key actplane to the table of runtimes.
func (p *Podman) editor() *block {
	paths := []any{p.Programs.path(runtimeProgram)}
	return &block{
		table: []string{"engine", "runtimes"},
		value: map[string]any{runtimeName: paths},
		body:  tableText("engine.runtimes", map[string]any{runtimeName: paths}),
	}
}

// Look implements FrontEnd.
func (p *Podman) Look(ctx context.Context) State {
	var s State
	if _, err := exec.LookPath("podman"); err != nil {
		return s
	}
	s.Here = true
	if out, err := output(ctx, "podman", "--version"); err == nil {
		s.Version = strings.TrimPrefix(strings.TrimSpace(out), "podman version ")
	}
	for _, path := range []string{p.Config, p.dropIn()} {
		content, _ := load(path)
		if paths, ok := lookUp(content, append(p.editor().table, runtimeName)).([]any); ok && len(paths) > 0 {
			s.Files = append(s.Files, path)
			s.Program, _ = paths[0].(string)
		}
	}
	s.Running = true
	if os.Geteuid() != 0 {
		s.Unsure = &DeniedError{"root, whose podman it is,"} // for others it would make folders of their own
		return s
	}
	s.Knows, s.Unsure = p.knows(ctx)
	if driver, err := output(ctx, "podman", "info", "--format", "{{.Host.CgroupManager}}"); err == nil {
		s.CgroupDriver = strings.TrimSpace(driver)
	}
	return s
}

// knows has podman find the runtime, which it does before it asks what it is.
func (p *Podman) knows(ctx context.Context) (bool, error) {
	out, err := output(ctx, "podman", "--runtime", runtimeName, "info", "--format", "{{.Host.OCIRuntime.Path}}")
	if err == nil {
		return filepath.Base(strings.TrimSpace(out)) == runtimeProgram, nil
	}
	if strings.Contains(err.Error(), `"`+runtimeName+`" not found`) || strings.Contains(err.Error(), "invalid argument") {
		return false, nil
	}
	return false, err
}

// Plan implements FrontEnd.
func (p *Podman) Plan(_ context.Context, remove bool) ([]*Edit, error) {
	edits, err := planOurs(p.dropIn(), []string{p.Config}, p.editor(), []string{"engine", "runtime"}, remove)
	if err != nil {
		return nil, err
	}
	hook, err := p.Programs.planHook(HooksFolder, remove)
	return append(edits, hook...), err
}

// Apply implements FrontEnd.
func (p *Podman) Apply(_ context.Context, edits []*Edit) error { return applyAll(edits) }

// Settle implements FrontEnd.
func (p *Podman) Settle(ctx context.Context, want, _ bool) (string, error) {
	knows, err := p.knows(ctx)
	switch {
	case err != nil:
		return "", fmt.Errorf("whether podman knows the runtime is not to be told: %w", err)
	case knows && want:
		return "podman knows the runtime: podman run --runtime actplane …", nil
	case knows:
		return "", fmt.Errorf("podman still knows the runtime; see its files below /usr/share/containers and %s.d", p.Config)
	case want:
		return "", fmt.Errorf("%s has the runtime and podman does not know it; is CONTAINERS_CONF set?", p.dropIn())
	}
	return "podman has forgotten the runtime", nil
}

// Try implements FrontEnd.
func (p *Podman) Try(ctx context.Context) error {
	return p.Probe.run(ctx, func(ctx context.Context, root string) *exec.Cmd {
		args := []string{"--runtime", runtimeName, "run", "--rm", "--network", "none", "--env", probeVariable + "=" + probePolicy,
			"--name", fmt.Sprintf("actplane-probe-%d", os.Getpid()), "--rootfs", root}
		return exec.CommandContext(ctx, "podman", append(args, probeCommand...)...)
	})
}
