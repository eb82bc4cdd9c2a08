// SPDX-License-Identifier: Apache-2.0

package ocihook

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/actplane/actplane/internal/testenv"
	"github.com/actplane/actplane/packaging"
)

// Podman reads the file of packaging/hooks.d and calls the hook for containers with an
// annotation of ours, at both stages. What its own defaults are meets the policy.
func TestPodman(t *testing.T) {
	testenv.RequireRoot(t)
	busybox := testenv.RequireProgram(t, "busybox", "busybox-static")
	podman := testenv.RequireProgram(t, "podman", "podman")
	w := newWorld(t, "{}")
	folder := filepath.Dir(w.bundle)
	w.runtimeBundle(t, busybox, "alone", nil, false) // for its root directory and policy
	w.hooksFolder(t)
	run := func(options ...string) (string, error) {
		args := []string{"--root", filepath.Join(folder, "storage"), "--runroot", filepath.Join(folder, "run"), "--tmpdir", filepath.Join(folder, "tmp"), "--storage-driver", "vfs", "--runtime", "runc", "--cgroup-manager", "cgroupfs", "--hooks-dir", filepath.Join(folder, "hooks"),
			"run", "--rm", "--network", "none", "--log-driver", "none", "--ulimit", "nofile=64:64", "--ulimit", "nproc=64:64"}
		args = append(append(args, options...), "--rootfs", filepath.Join(w.bundle, "rootfs"), "/bin/busybox", "echo", "ran")
		out, err := exec.CommandContext(t.Context(), podman, args...).CombinedOutput()
		return string(out), err
	}
	if out, err := run(); err != nil || !strings.Contains(out, "ran") || len(w.engine.Prepared()) != 0 {
		t.Fatalf("without an annotation: %v: %s", err, out)
	}
	if out, err := run("--annotation", "dev.actplane.policy=strict"); err != nil || !strings.Contains(out, "ran") || len(w.engine.Attached()) != 1 || len(w.engine.Closed()) != 1 {
		t.Errorf("with one: %v, attached %d, closed %d: %s", err, len(w.engine.Attached()), len(w.engine.Closed()), out)
	}
	for name, test := range map[string]struct{ option, want string }{
		"privileged": {"--privileged", "it is privileged"},
		"processes":  {"--pid=host", "shares the host's process namespace"},
		"no policy":  {"--annotation=dev.actplane.policy=strcit", "did you mean"},
		"limits":     {"--annotation=dev.actplane.limits.pids=7", "--pids-limit 7"},
	} {
		out, err := run("--annotation", "dev.actplane.policy=strict", test.option)
		if err == nil || !strings.Contains(strings.ReplaceAll(out, `\"`, `"`), test.want) || strings.Contains(out, "ran\n") {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
	if out, err := run("--annotation", "dev.actplane.policy=strict", "--annotation=dev.actplane.limits.pids=7", "--pids-limit", "7"); err != nil || !strings.Contains(out, "ran") {
		t.Errorf("with the limit: %v: %s", err, out)
	}
}

// hooksFolder has the file that is shipped, with the test program in the place of the hook.
func (w *world) hooksFolder(t *testing.T) {
	t.Helper()
	var file map[string]any
	if err := json.Unmarshal([]byte(packaging.Hook), &file); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	hook := file["hook"].(map[string]any)
	hook["path"] = self
	hook["env"] = []string{hookFolder + "=" + filepath.Dir(w.bundle), hookSocket + "=" + w.hook.Host.Engine.Socket}
	text, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	w.write(t, "hooks/actplane.json", string(text))
}
