// SPDX-License-Identifier: Apache-2.0

package ocihook

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/actplane/actplane/internal/bundle"
	"github.com/actplane/actplane/internal/daemon"
	"github.com/actplane/actplane/internal/daemon/daemontest"
	"github.com/actplane/actplane/shim/prepare"
)

type world struct {
	engine *daemontest.Engine
	hook   *Hook
	bundle string
	stderr bytes.Buffer
}

// spec is a container with a root directory, and what else is given.
func spec(root, process, more string) string {
	return fmt.Sprintf(`{"root":{"path":%q},"process":{"cwd":"/src"%s},"linux":{"namespaces":[{"type":"pid"},{"type":"mount"}],`+
		`"maskedPaths":["/proc/acpi","/proc/kcore","/proc/keys","/proc/latency_stats","/proc/sched_debug","/proc/scsi","/proc/timer_list","/sys/firmware"],`+
		`"readonlyPaths":["/proc/bus","/proc/fs","/proc/irq","/proc/sys","/proc/sysrq-trigger"]}%s}`, root, process, more)
}

func newWorld(t *testing.T, config string) *world {
	t.Helper()
	directory, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{bundle: filepath.Join(directory, "bundle")}
	var socket string
	w.engine, socket = daemontest.Start(t)
	w.hook = &Hook{Stderr: &w.stderr, Host: &prepare.Host{
		Config: filepath.Join(directory, "config.yaml"), Floor: filepath.Join(directory, "policy.d"), Policies: filepath.Join(directory, "policies"),
		Records: bundle.Records(filepath.Join(directory, "runtime")), Proc: filepath.Join(directory, "proc"), Swap: func() bool { return false },
		Engine: daemon.Options{Socket: socket, Directory: t.TempDir(), Program: "/bin/false", NoSystemd: true, NoCgroup: true}}}
	w.write(t, "bundle/config.json", strings.ReplaceAll(config, "BUNDLE", w.bundle))
	w.mounts(t, "rootfs", "")
	return w
}

func (w *world) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(filepath.Dir(w.bundle), name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// mounts says what is mounted for the container: its root, and more.
func (w *world) mounts(t *testing.T, root, more string) {
	t.Helper()
	if !filepath.IsAbs(root) {
		root = filepath.Join(w.bundle, root)
	}
	w.write(t, fmt.Sprintf("proc/%d/mountinfo", os.Getpid()),
		fmt.Sprintf("20 1 8:1 / / rw - ext4 /dev/sda1 rw\n30 20 0:999 / %s rw - overlay overlay rw\n%s", root, strings.ReplaceAll(more, "ROOT", root)))
}

func (w *world) state(pid int) string {
	return fmt.Sprintf(`{"ociVersion":"1.0.2","id":"one","status":"creating","pid":%d,"bundle":%q,"annotations":{"a":"b"}}`, pid, w.bundle)
}

func (w *world) run(state string, args ...string) int {
	w.stderr.Reset()
	w.hook.Stdin = strings.NewReader(state)
	return w.hook.Run(args)
}

func TestCreateRuntime(t *testing.T) {
	for path, want := range map[string]string{"rootfs": "BUNDLE/rootfs", "/var/lib/x/merged/": "/var/lib/x/merged", "../r": "BUNDLE/../r"} {
		w := newWorld(t, spec(path, "", ""))
		w.mounts(t, path, "")
		record := &bundle.Record{ID: "one", Bundle: w.bundle}
		if err := w.hook.Host.Records.Save(record); err != nil {
			t.Fatal(err)
		}
		if status := w.run(w.state(os.Getpid()), "createRuntime"); status != 0 || w.stderr.Len() != 0 {
			t.Fatalf("status %d, stderr %q", status, &w.stderr)
		}
		attached := w.engine.Attached()
		want = filepath.Clean(strings.ReplaceAll(want, "BUNDLE", w.bundle))
		if len(attached) != 1 || attached[0].Id != "one" || attached[0].Pid != int64(os.Getpid()) || attached[0].Rootfs != want {
			t.Errorf("attached %v", attached)
		}
		record, err := w.hook.Host.Records.Load("one")
		if err != nil || record.Pid != os.Getpid() || record.PidStarted == 0 {
			t.Errorf("record %+v, error %v", record, err)
		}
	}
}

func TestCreateRuntimeFails(t *testing.T) {
	config := spec("rootfs", "", "")
	for _, test := range []struct {
		name, config, want string
		break_             func(*world)
		state              func(*world) string
	}{
		{name: "attach", config: config, want: `policy of container "one" cannot be enforced: the self-test failed`,
			break_: func(w *world) { w.engine.AttachErr = errors.New("the self-test\nfailed") }},
		{name: "engine", config: config, want: "cannot be started", break_: func(w *world) { w.hook.Host.Engine.Socket += ".none" }},
		{name: "no root", config: `{}`, want: "no root.path"},
		{name: "no config", config: `nonsense`, want: "parse"},
		{name: "pid", config: config, want: "no process", state: func(w *world) string { return w.state(0) }},
		{name: "state", config: config, want: "read container state", state: func(*world) string { return "nonsense" }},
		{name: "empty state", config: config, want: "read container state", state: func(*world) string { return "" }},
		{name: "id", config: config, want: "container id", state: func(w *world) string { return `{"id":"../x","pid":1}` }},
		{name: "relative bundle", config: config, want: "not an absolute path", state: func(w *world) string { return `{"id":"one","pid":1,"bundle":"b"}` }},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, test.config)
			if test.break_ != nil {
				test.break_(w)
			}
			state := w.state(os.Getpid())
			if test.state != nil {
				state = test.state(w)
			}
			status := w.run(state, "createRuntime")
			if status != 1 || !strings.Contains(w.stderr.String(), test.want) || strings.Contains(w.stderr.String(), "\n") {
				t.Errorf("status %d, stderr %q", status, &w.stderr)
			}
		})
	}
}

// What the runtime has prepared is looked at once more: other runtimes can have changed
// it, and somebody a mount's source.
func TestVerify(t *testing.T) {
	dropped := &bundle.Record{ID: "one", NoNewPrivileges: true, Capabilities: []bundle.CapabilityFilter{{Drop: []string{"ALL"}, Add: []string{"CHOWN"}}}}
	for _, test := range []struct {
		name, process, mounts, host string
		record                      *bundle.Record
		want                        string
	}{
		{"as it was", `,"noNewPrivileges":true,"capabilities":{"bounding":["CAP_CHOWN"]}`, "", "", dropped, ""},
		{"a capability is back", `,"noNewPrivileges":true,"capabilities":{"bounding":["CAP_KILL"]}`, "", "", dropped, "has added CAP_KILL, which the policy drops"},
		{"no_new_privileges is gone", ``, "", "", dropped, "has taken away no_new_privileges"},
		{"a strong capability", `,"capabilities":{"effective":["CAP_SYS_ADMIN"]}`, "", "", nil, "it has CAP_SYS_ADMIN"},
		{"that is allowed", `,"capabilities":{"effective":["CAP_SYS_ADMIN"]}`, "", "allow: [cap-sys-admin]", nil, ""},
		{"the host's cgroups", ``, "31 30 0:5 / ROOT/cg rw - cgroup2 cgroup2 rw\n", "", nil, `"cgroup2" is mounted at "/cg", writable`},
		{"cgroups, read-only", ``, "31 30 0:5 / ROOT/cg ro - cgroup2 cgroup2 rw\n", "", nil, ""},
		{"not below its root", ``, "31 30 0:5 / ROOT-other/cg rw - cgroup2 cgroup2 rw\n", "", nil, ""},
		{"configuration", ``, "", "allow: [cap-sys-admn]", nil, "did you mean"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, spec("rootfs", test.process, ""))
			w.mounts(t, "rootfs", test.mounts)
			w.write(t, "config.yaml", test.host+"\n")
			if test.record != nil {
				if err := w.hook.Host.Records.Save(test.record); err != nil {
					t.Fatal(err)
				}
			}
			status := w.run(w.state(os.Getpid()), "createRuntime")
			if test.want == "" && status != 0 || test.want != "" && (status != 1 || !strings.Contains(w.stderr.String(), test.want) || len(w.engine.Attached()) != 0) {
				t.Errorf("status %d, stderr %q, attached %v", status, &w.stderr, w.engine.Attached())
			}
		})
	}
	w := newWorld(t, spec("rootfs", "", ""))
	w.mounts(t, "elsewhere", "")
	if status := w.run(w.state(os.Getpid()), "createRuntime"); status != 1 || !strings.Contains(w.stderr.String(), "nothing is mounted at") {
		t.Errorf("status %d, stderr %q", status, &w.stderr)
	}
}

const good = "version: 1\npolicy: |\n  rule r:\n    block exec \"git\" \"push\"\n"

// The hook alone finds the policy, asks for what it cannot set, and is called for both
// stages by the same words.
func TestAlone(t *testing.T) {
	annotated := func(entries string) string { return `,"annotations":{"dev.actplane.policy":"strict"` + entries + `}` }
	chown := `,"noNewPrivileges":true,"capabilities":{"bounding":["CAP_CHOWN"]}`
	limits := "version: 1\nlimits: {capabilities: {drop: [ALL], add: [CHOWN]}, no_new_privileges: true}\n" + strings.TrimPrefix(good, "version: 1\n")
	for _, test := range []struct {
		name, process, more, policy, host string
		want                              string // of the error; "none": no policy; empty: it is under the policy
	}{
		{"policy", "", annotated(""), good, "", ""},
		{"no policy", "", "", good, "", "no policy found"},
		{"none is required", "", "", good, "require_policy: false", "none"},
		{"exempt", "", annotated(`,"engine":"own"`), good, "exempt: [engine=own]", "none"},
		{"exempt by another value", "", annotated(`,"engine":"owned"`), limits, "exempt: [engine=own]", "limit process"},
		{"broken", "", annotated(""), "version: 1\npolicy: x\n", "", "policy"},
		{"meets the limits", chown, annotated(""), limits, "", ""},
		{"has a capability too many", strings.Replace(chown, `"CAP_CHOWN"`, `"CAP_CHOWN","CAP_KILL"`, 1), annotated(""), limits, "",
			`container "one": its policy has limits that it does not meet, and a hook alone can set none: limit process (--cap-drop, --security-opt no-new-privileges); start it with them, or with --runtime actplane`},
		{"has too many in one set", chown[:len(chown)-1] + `,"ambient":["CAP_KILL"]}`, annotated(""), limits, "", "limit process"},
		{"may gain privileges", `,"capabilities":{"bounding":["CAP_CHOWN"]}`, annotated(""), limits, "", "limit process"},
		{"too many processes", "", annotated(`,"dev.actplane.limits.pids":"5"`), good, "", "limit pids (--pids-limit 5)"},
		{"too much memory", "", annotated(`,"dev.actplane.limits.memory":"1k"`), good, "", "limit memory (--memory 1024 --memory-swap 1024)"},
		{"too many processors", "", annotated(`,"dev.actplane.limits.cpus":"1.5"`), good, "", "limit cpus (--cpus 1.5)"},
		{"privileged", `,"capabilities":{"effective":["CAP_SYS_MODULE"]}`, annotated(""), good, "", "it has CAP_SYS_MODULE"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, spec("rootfs", test.process, test.more))
			w.write(t, "policies/strict.yaml", test.policy)
			w.write(t, "config.yaml", test.host+"\n")
			status := w.run(w.state(os.Getpid()), "alone")
			staged, attached := len(w.engine.Prepared()), len(w.engine.Attached())
			record, err := w.hook.Host.Records.Load("one")
			switch test.want {
			case "":
				if status != 0 || staged != 1 || attached != 1 || err != nil || record.Pid != os.Getpid() {
					t.Fatalf("status %d, stderr %q, staged %d, attached %d, record %v", status, &w.stderr, staged, attached, record)
				}
				request := w.engine.Prepared()[0]
				if !request.NoFeedback || !strings.Contains(request.Warnings[0], "by the hook alone") {
					t.Errorf("request %v", request)
				}
				stopped := strings.Replace(w.state(0), "creating", "stopped", 1)
				if status := w.run(stopped, "alone"); status != 0 || len(w.engine.Closed()) != 1 {
					t.Errorf("status %d, stderr %q, closed %q", status, &w.stderr, w.engine.Closed())
				}
			case "none":
				if status != 0 || staged+attached != 0 || err == nil {
					t.Errorf("status %d, stderr %q, staged %d, attached %d", status, &w.stderr, staged, attached)
				}
			default:
				if status != 1 || !strings.Contains(w.stderr.String(), test.want) || strings.Contains(w.stderr.String(), "\n") || staged != len(w.engine.Closed()) || attached != 0 || err == nil {
					t.Errorf("status %d, stderr %q, staged %d, attached %d", status, &w.stderr, staged, attached)
				}
			}
		})
	}
}

// What the engine does not take is taken back.
func TestAloneIsUndone(t *testing.T) {
	w := newWorld(t, spec("rootfs", "", `,"annotations":{"dev.actplane.policy":"strict"}`))
	w.write(t, "policies/strict.yaml", good)
	w.engine.AttachErr = errors.New("the self-test failed")
	if status := w.run(w.state(os.Getpid()), "alone"); status != 1 || !strings.Contains(w.stderr.String(), "self-test failed") || len(w.engine.Closed()) != 1 {
		t.Errorf("status %d, stderr %q, closed %q", status, &w.stderr, w.engine.Closed())
	}
	if _, err := w.hook.Host.Records.Load("one"); err == nil {
		t.Error("a record was left behind")
	}
}

func TestPoststop(t *testing.T) {
	w := newWorld(t, `{}`)
	save := func(directory string) {
		if err := w.hook.Host.Records.Save(&bundle.Record{ID: "one", Bundle: directory}); err != nil {
			t.Fatal(err)
		}
	}
	save("/another")
	if status := w.run(w.state(0), "poststop"); status != 0 || len(w.engine.Closed()) != 0 {
		t.Errorf("status %d, closed %q: the scope is another container's", status, w.engine.Closed())
	}
	save(w.bundle)
	if status := w.run(w.state(0), "poststop"); status != 0 || len(w.engine.Closed()) != 1 || w.stderr.Len() != 0 {
		t.Errorf("status %d, closed %q, stderr %q", status, w.engine.Closed(), &w.stderr)
	}
	if _, err := w.hook.Host.Records.Load("one"); err == nil {
		t.Error("the record is still there")
	}
	// Errors are told and break nothing.
	w.engine.CloseErr = errors.New("busy")
	if status := w.run(w.state(0), "poststop"); status != 0 || !strings.Contains(w.stderr.String(), "busy") {
		t.Errorf("status %d, stderr %q", status, &w.stderr)
	}
	w.hook.Host.Engine.Socket += ".none"
	save(w.bundle)
	if status := w.run(w.state(0), "poststop"); status != 0 {
		t.Errorf("status %d", status)
	}
	if _, err := w.hook.Host.Records.Load("one"); err == nil {
		t.Error("the record is still there")
	}
	if status := w.run("nonsense", "poststop"); status != 0 || w.stderr.Len() == 0 {
		t.Errorf("status %d, stderr %q", status, &w.stderr)
	}
}

func TestUsage(t *testing.T) {
	w := newWorld(t, `{}`)
	for _, args := range [][]string{{}, {"frob"}, {"poststop", "x"}} {
		if status := w.run("", args...); status != 2 {
			t.Errorf("%q: status %d", args, status)
		}
	}
}
