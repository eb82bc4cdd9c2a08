// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/actplane/actplane/internal/exposure"
)

const (
	dropAll = "version: 1\nlimits: {capabilities: {drop: [ALL]}}\npolicy: |\n  rule r:\n    block exec \"git\" \"push\"\n"
)

// What is stronger than the policy keeps a container from starting, unless the host
// allows it by name; then the operator is warned.
func TestExposed(t *testing.T) {
	plain := strings.Replace(minimal, "ADD", "", 1)
	with := func(old, new string) string { return strings.Replace(plain, old, new, 1) }
	admin := with(`"cwd"`, `"capabilities":{"bounding":["CAP_SYS_ADMIN"]},"cwd"`)
	pid := with(`{"type":"pid"},`, "")
	ptrace := strings.Replace(pid, `"cwd"`, `"capabilities":{"effective":["CAP_SYS_PTRACE"]},"cwd"`, 1)
	guarded := with(`"mounts":[`, `"mounts":[{"destination":"/x","type":"bind","source":"ROOT/secrets"},`)
	for _, test := range []struct{ name, config, host, policy, want string }{
		{"capability", admin, "", good, "it has CAP_SYS_ADMIN, with which"},
		{"says how to allow it", admin, "", good, "allow: [cap-sys-admin] in ROOT/etc/config.yaml"},
		{"allowed", admin, "allow: [cap-sys-admin]", good, ""},
		{"another is allowed", admin, "allow: [cap-bpf]", good, "it has CAP_SYS_ADMIN"},
		{"the policy takes it away", admin, "", dropAll, ""},
		{"host's processes", pid, "", good, "it shares the host's process namespace"},
		{"and ptrace", ptrace, "allow: [host-pid]", good, "CAP_SYS_PTRACE and shares its process namespace"},
		{"both are told", ptrace, "", good, "allow: [cap-sys-ptrace, host-pid] in"},
		{"mount", guarded, "guarded_paths: [ROOT/secrets/a]", good, `"ROOT/secrets" is mounted at "/x", which holds the host's ROOT/secrets/a`},
		{"guarded path", plain, "guarded_paths: [x]", good, `guarded_paths: "x" is not an absolute path`},
		{"misspelt", plain, "allow: [priviledged]", good, `did you mean "privileged"?`},
		{"without a policy", pid, "require_policy: false", "", ""},
	} {
		files := map[string]string{"etc/config.yaml": test.host + "\n"}
		if test.policy != "" {
			files["src/actplane.yaml"] = test.policy
		}
		w := newWorld(t, test.config, files)
		err := w.prepare(t)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), w.expand(test.want))) {
			t.Errorf("%s: error %v instead of %q", test.name, err, w.expand(test.want))
		}
		if test.name == "allowed" {
			if got := strings.Join(w.engine.Prepared()[0].Warnings, "\n"); !strings.HasPrefix(got, "the host allows cap-sys-admin: it has CAP_SYS_ADMIN") {
				t.Errorf("warnings %q", got)
			}
		}
		if record, err := w.Records.Load(id); test.config == ptrace && err == nil && !record.SharedPID {
			t.Error("the record does not say that it shares processes")
		}
	}
}

// A runtime that is a virtual machine has programs that the host's kernel does not see.
func TestVMRuntime(t *testing.T) {
	for runtime, want := range map[string]bool{"/usr/bin/runc": true, "/usr/local/bin/runsc": false} {
		w := newWorld(t, strings.Replace(minimal, "ADD", "", 1), map[string]string{"src/actplane.yaml": good})
		_, err := w.Prepare(t.Context(), Container{ID: id, Bundle: filepath.Join(w.root, "bundle"), Runtime: runtime})
		if (err == nil) != want {
			t.Errorf("%s: %v", runtime, err)
		}
	}
}

// The kernel's paths are protected whatever the container's starter asked for, and left
// open only where the host allows that.
func TestProtectedPaths(t *testing.T) {
	open := strings.Replace(minimal, `{"type":"mount"}]}ADD`, `{"type":"mount"}],"maskedPaths":["/proc/kcore","/own"],"readonlyPaths":["/proc/scsi"]}`, 1)
	for host, want := range map[string]int{"": len(exposure.MaskedPaths()) + len(exposure.ReadonlyPaths()), "allow: [system-paths]": 2} {
		w := newWorld(t, open, map[string]string{"src/actplane.yaml": good, "etc/config.yaml": host})
		for range 2 {
			if err := w.prepare(t); err != nil {
				t.Fatal(err)
			}
		}
		var spec specs.Spec
		if err := json.Unmarshal(w.config(t), &spec); err != nil {
			t.Fatal(err)
		}
		masked, readonly := spec.Linux.MaskedPaths, spec.Linux.ReadonlyPaths
		own := 1
		left := exposure.Open(append(exposure.MaskedPaths(), exposure.ReadonlyPaths()...), masked, readonly)
		if host == "" && (len(left) != 0 || len(masked)+len(readonly) != want+own) || host != "" && len(masked)+len(readonly) != want+own {
			t.Errorf("%q: masked %q, read-only %q", host, masked, readonly)
		}
		if masked[0] != "/proc/kcore" || masked[1] != "/own" || readonly[0] != "/proc/scsi" {
			t.Errorf("%q: what was there is gone: masked %q, read-only %q", host, masked, readonly)
		}
	}
}

// What "compose run" makes of a service whose annotations it loses does not start: neither
// the policy that they name nor any other is there. What holds for all is still there.
func TestLostAnnotations(t *testing.T) {
	annotated := strings.Replace(minimal, "ADD", `,"annotations":{"dev.actplane.policy-file":"/src/own.yaml","com.docker.compose.oneoff":"True"}`, 1)
	lost := strings.Replace(annotated, `"dev.actplane.policy-file":"/src/own.yaml",`, "", 1)
	for _, test := range []struct{ name, config, host, floor, want string }{
		{"kept", annotated, "", "", ""},
		{"lost", lost, "", "", noneFound},
		{"lost, and required in words", lost, "require_policy: true\n", "", noneFound},
		{"lost, and there is a floor", lost, "", good, ""},
		{"lost, and none is required", lost, "require_policy: false\n", "", ""},
	} {
		files := map[string]string{"src/own.yaml": "# own\n" + good, "etc/config.yaml": test.host}
		if test.floor != "" {
			files["etc/policy.d/a.yaml"] = test.floor
		}
		w := newWorld(t, test.config, files)
		before := w.config(t)
		err := w.prepare(t)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || !bytes.Equal(before, w.config(t))) {
			t.Errorf("%s: error %v instead of %q", test.name, err, test.want)
		}
		record, err := w.Records.Load(id)
		if test.name == "lost, and none is required" && (err != nil || !record.Unmanaged) || test.want != "" && err == nil {
			t.Errorf("%s: record %v, error %v", test.name, record, err)
		}
	}
}

func BenchmarkLook(b *testing.B) {
	for b.Loop() {
		if _, err := exposure.Look(exposure.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
