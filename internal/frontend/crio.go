// SPDX-License-Identifier: Apache-2.0

package frontend

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
)

// Where CRI-O's files are.
const (
	CRIOConfig = "/etc/crio/crio.conf"
	crioSocket = "/var/run/crio/crio.sock"
)

// CRIO is CRI-O: a runtime handler "actplane".
type CRIO struct {
	Programs Programs
	Config   string // its main file; ours goes to Config.d
}

func (c *CRIO) Name() string { return "CRI-O" }

func (c *CRIO) dropIn() string { return filepath.Join(c.Config+".d", dropInConf) }

func (c *CRIO) editor() *block {
	b := &block{
		table: []string{"crio", "runtime", "runtimes", runtimeName},
		value: map[string]any{
			"runtime_path": c.Programs.path(runtimeProgram),
			"runtime_type": "oci",
			"runtime_root": "/run/actplane-crio",
		},
	}
	b.body = tableText(tableHeader(b.table), b.value)
	return b
}

// Look implements FrontEnd.
func (c *CRIO) Look(ctx context.Context) State {
	var s State
	_, err := exec.LookPath("crio")
	if s.Here = err == nil || exists(c.Config) || exists(c.Config+".d"); !s.Here {
		return s
	}
	if out, err := output(ctx, "crio", "--version"); err == nil {
		s.Version = crioVersion(out)
	}
	for _, path := range []string{c.Config, c.dropIn()} {
		content, _ := load(path)
		if table, ok := lookUp(content, c.editor().table).(map[string]any); ok {
			s.Files = append(s.Files, path)
			s.Program, _ = table["runtime_path"].(string)
		}
		if driver, ok := lookUp(content, []string{"crio", "runtime", "cgroup_manager"}).(string); ok {
			s.CgroupDriver = driver
		}
	}
	s.Running, s.Knows, s.Unsure = criKnows(ctx, crioSocket)
	return s
}

// crioVersion is of its first line, "crio version 1.30.0", or of a later one.
func crioVersion(text string) string {
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) > 1 && strings.HasPrefix(strings.ToLower(fields[len(fields)-2]), "version") {
			return fields[len(fields)-1]
		}
	}
	return ""
}

// Plan implements FrontEnd.
func (c *CRIO) Plan(_ context.Context, remove bool) ([]*Edit, error) {
	edits, err := planOurs(c.dropIn(), []string{c.Config}, c.editor(), []string{"crio", "runtime", "default_runtime"}, remove)
	if err != nil {
		return nil, err
	}
	hook, err := c.Programs.planHook(HooksFolder, remove)
	return append(edits, hook...), err
}

// Apply implements FrontEnd.
func (c *CRIO) Apply(_ context.Context, edits []*Edit) error { return applyAll(edits) }

// Settle implements FrontEnd.
func (c *CRIO) Settle(ctx context.Context, want, restart bool) (string, error) {
	return settleCRI(ctx, "crio", crioSocket, want, restart)
}

// Try implements FrontEnd.
func (c *CRIO) Try(context.Context) error {
	return &UntriedError{"CRI-O starts nothing without an image from a registry, not even the pod itself"}
}
