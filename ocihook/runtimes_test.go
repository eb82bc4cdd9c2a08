// SPDX-License-Identifier: Apache-2.0

package ocihook

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/actplane/actplane/internal/bundle"
	"github.com/actplane/actplane/internal/daemon"
	"github.com/actplane/actplane/internal/testenv"
	"github.com/actplane/actplane/shim/prepare"
)

// What the test program is told when a runtime calls it as the hook.
const (
	hookFolder = "ACTPLANE_TEST_HOOK_FOLDER"
	hookSocket = "ACTPLANE_TEST_HOOK_SOCKET"
)

func TestMain(m *testing.M) {
	folder := os.Getenv(hookFolder)
	if folder == "" {
		os.Exit(m.Run())
	}
	hook := &Hook{Stdin: os.Stdin, Stderr: os.Stderr, Host: &prepare.Host{
		Config: filepath.Join(folder, "config.yaml"), Policies: filepath.Join(folder, "policies"), Floor: filepath.Join(folder, "policy.d"),
		Records: bundle.Records(filepath.Join(folder, "runtime")), Swap: func() bool { return false },
		Engine: daemon.Options{Socket: os.Getenv(hookSocket), Directory: folder, Program: "/bin/false", NoSystemd: true, NoCgroup: true}}}
	os.Exit(hook.Run(os.Args[1:]))
}

// The runtimes that there are call the hook when the mounts are made, and what it sees is
// what the container gets: also where a source was exchanged after it was judged.
func TestRuntimes(t *testing.T) {
	testenv.RequireRoot(t)
	busybox := testenv.RequireProgram(t, "busybox", "busybox-static")
	for _, runtime := range []string{"runc", "crun"} {
		t.Run(runtime, func(t *testing.T) {
			program := testenv.RequireProgram(t, runtime, runtime)
			for _, test := range []struct {
				name, stage string
				mounts      []specs.Mount
				limits      bool
				want        string
			}{
				{"plain", "createRuntime", nil, false, ""},
				{"read-only", "createRuntime", []specs.Mount{bindMount("/usr/bin", "/b", "ro")}, false, ""},
				{"writable", "createRuntime", []specs.Mount{bindMount("/usr/bin", "/b")}, false, "decides what this host runs"},
				{"exchanged", "createRuntime", []specs.Mount{bindMount("FOLDER/exchanged", "/x")}, false, "FOLDER/guarded"},
				{"cgroups", "createRuntime", []specs.Mount{{Destination: "/c", Type: "cgroup", Source: "cgroup"}}, false, "cgroup"},
				{"the host's /proc", "createRuntime", []specs.Mount{bindMount("/proc", "/p", "ro")}, false, "through the host's /proc"},
				{"alone", "alone", nil, false, ""},
				{"alone, without its limits", "alone", nil, true, "limit pids"},
			} {
				t.Run(test.name, func(t *testing.T) {
					w := newWorld(t, "{}")
					folder := filepath.Dir(w.bundle)
					w.hook.Host.Proc = ""
					w.runtimeBundle(t, busybox, test.stage, test.mounts, test.limits)
					out, err := exec.Command(program, "--root", filepath.Join(folder, "state"), "run", "--bundle", w.bundle, fmt.Sprintf("actplane-%s-%d", runtime, os.Getpid())).CombinedOutput()
					if strings.Contains(string(out), "hybrid mode not supported") {
						t.Skipf("%s runs nothing on this machine: %s", runtime, out)
					}
					want := strings.ReplaceAll(test.want, "FOLDER", folder)
					if want == "" && (err != nil || string(out) != "ran\n" || len(w.engine.Attached()) != 1) {
						t.Errorf("error %v, attached %v: %s", err, w.engine.Attached(), out)
					}
					if want != "" && (err == nil || !strings.Contains(strings.ReplaceAll(string(out), `\"`, `"`), want) || strings.Contains(string(out), "ran\n") || len(w.engine.Attached()) != 0) {
						t.Errorf("error %v, attached %v: %s", err, w.engine.Attached(), out)
					}
				})
			}
		})
	}
}

func bindMount(source, destination string, options ...string) specs.Mount {
	return specs.Mount{Type: "bind", Source: source, Destination: destination, Options: append(options, "rbind")}
}

// runtimeBundle is a bundle that a runtime can run, with the test program as its hook.
func (w *world) runtimeBundle(t *testing.T, busybox, stage string, mounts []specs.Mount, limits bool) {
	t.Helper()
	folder := filepath.Dir(w.bundle)
	for _, name := range []string{"bundle/rootfs/bin", "bundle/rootfs/proc", "bundle/rootfs/sys", "bundle/rootfs/dev", "guarded", "policies"} {
		if err := os.MkdirAll(filepath.Join(folder, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	program, err := os.ReadFile(busybox)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.bundle, "rootfs/bin/busybox"), program, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("guarded", filepath.Join(folder, "exchanged")); err != nil {
		t.Fatal(err)
	}
	w.write(t, "config.yaml", fmt.Sprintf("guarded_paths: [%q]\n", filepath.Join(folder, "guarded")))
	w.write(t, "policies/strict.yaml", good)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var spec specs.Spec
	if err := json.Unmarshal([]byte(specOf()), &spec); err != nil {
		t.Fatal(err)
	}
	for i := range mounts {
		mounts[i].Source = strings.ReplaceAll(mounts[i].Source, "FOLDER", folder)
	}
	spec.Mounts = append(spec.Mounts, mounts...)
	spec.Annotations = map[string]string{"dev.actplane.policy": "strict"}
	if limits {
		spec.Annotations["dev.actplane.limits.pids"] = "7"
	}
	hook := specs.Hook{Path: self, Args: []string{"hook", stage}, Env: []string{hookFolder + "=" + folder, hookSocket + "=" + w.hook.Host.Engine.Socket}}
	spec.Hooks = &specs.Hooks{CreateRuntime: []specs.Hook{hook}}
	text, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	w.write(t, "bundle/config.json", string(text))
}

func specOf() string {
	text := spec("rootfs", `,"args":["/bin/busybox","echo","ran"],"user":{"uid":0,"gid":0},"env":["PATH=/bin"],"capabilities":{"bounding":["CAP_CHOWN"]}`,
		`,"ociVersion":"1.0.2","mounts":[{"destination":"/proc","type":"proc","source":"proc"},{"destination":"/dev","type":"tmpfs","source":"tmpfs"},`+
			`{"destination":"/sys","type":"sysfs","source":"sysfs","options":["nosuid","noexec","nodev","ro"]},`+
			`{"destination":"/sys/fs/cgroup","type":"cgroup","source":"cgroup","options":["ro"]}]`)
	return strings.Replace(text, `"cwd":"/src"`, `"cwd":"/"`, 1)
}
