// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/pattern"
)

// pod makes the configuration of a container with annotations of CRI's.
func pod(args string, annotations map[string]string) string {
	text, _ := json.Marshal(annotations)
	return fmt.Sprintf(`{"process":{"cwd":"/","args":[%s],"env":["PATH=/bin"]},"root":{"path":"ROOT/rootfs"},"linux":{"namespaces":[{"type":"pid"},{"type":"mount"}]},"annotations":%s}`, args, text)
}

func with(annotations map[string]string, more ...string) map[string]string {
	all := map[string]string{}
	for key, value := range annotations {
		all[key] = value
	}
	for i := 0; i < len(more); i += 2 {
		all[more[i]] = more[i+1]
	}
	return all
}

var (
	sandbox = map[string]string{"io.kubernetes.cri.container-type": "sandbox", "io.kubernetes.cri.sandbox-name": "web", "io.kubernetes.cri.sandbox-id": id}
	member  = map[string]string{"io.kubernetes.cri.container-type": "container", "io.kubernetes.cri.sandbox-name": "web", "io.kubernetes.cri.container-name": "agent"}
)

// A sandbox has a policy of its own, whatever its pod's is, and the limits of the pod.
func TestSandbox(t *testing.T) {
	for _, annotations := range []map[string]string{
		with(sandbox, "dev.actplane.policy", "policy: {", "dev.actplane.policy-file", "/none", "dev.actplane.agents", "claude",
			"dev.actplane.limits.capabilities.drop", "ALL", "dev.actplane.container.agent.policy", "x"),
		{"io.kubernetes.cri-o.ContainerType": "sandbox", "io.kubernetes.pod.name": "web", "dev.actplane.limits.capabilities.drop": "ALL"},
	} {
		w := newWorld(t, pod(`"/pause"`, annotations), map[string]string{"rootfs/pause": "", "etc/policy.d/floor.yaml": good, "rootfs/etc/actplane/policy.yaml": broken})
		if err := w.prepare(t); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"/etc/policy.d/floor.yaml", "sandbox of a pod"}, w.layers()); diff != "" {
			t.Error(diff)
		}
		if name := w.engine.Prepared()[0].Name; name != "web/sandbox" {
			t.Errorf("name %q", name)
		}
		record, err := w.Records.Load(id)
		if err != nil || record.Unmanaged || len(record.Capabilities) != 1 {
			t.Errorf("record %v, error %v", record, err)
		}
	}
}

// The one program that a sandbox may run is named as the kernel will resolve it.
func TestSandboxProgram(t *testing.T) {
	for args, want := range map[string]string{
		`"/pause"`:                 "/pause",
		`"pause","-x"`:             "/bin/pause",
		`"./pause"`:                "/pause",
		`"/link"`:                  "/real/pause",
		`"/outside"`:               "/real/pause", // as seen in the container
		`"up"`:                     "/real/pause",
		`"none"`:                   "/none",
		`"/none/such"`:             "/none/such",
		`"/a \"b\" \\ [c] {d},*?"`: `/a "b" \ [c] {d},*?`,
	} {
		w := newWorld(t, pod(args, sandbox), map[string]string{"rootfs/pause": "", "rootfs/real/pause": "", "rootfs/bin/pause": ""})
		for link, to := range map[string]string{"link": "/real/pause", "outside": "../../../../real/pause", "bin/up": "../real/pause"} {
			if err := os.Symlink(to, filepath.Join(w.root, "rootfs", link)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.prepare(t); err != nil {
			t.Fatalf("%s: %v", args, err)
		}
		request := w.engine.Prepared()[0]
		if want := `allow exec "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(pattern.Literal(want)) + `"`; !strings.Contains(string(request.Layers[0].Text), want) {
			t.Errorf("%s: no %s in %s", args, want, request.Layers[0].Text)
		}
		var program ir.Program
		if err := json.Unmarshal(request.Program, &program); err != nil {
			t.Fatal(err)
		}
		allowed := 0
		for _, clause := range program.Clauses {
			if clause.Effect == ir.Allow && clause.Op == ir.Exec && clause.Pattern.Text == pattern.Literal(want) {
				allowed++
			}
		}
		if allowed != 1 || len(program.Defaults) < 5 {
			t.Errorf("%s: %d clauses allow %s, %d defaults", args, allowed, want, len(program.Defaults))
		}
	}
}

func TestSandboxRefusals(t *testing.T) {
	for args, want := range map[string]string{
		``:           "has no program",
		`""`:         "has no program",
		`"/a\nb"`:    "no policy can hold",
		`"/a\u001b"`: "no policy can hold",
	} {
		w := newWorld(t, pod(args, sandbox), nil)
		if err := w.prepare(t); err == nil || !strings.Contains(err.Error(), want) || strings.ContainsAny(err.Error(), "\n\x1b") {
			t.Errorf("%s: error %v", args, err)
		}
	}
	// A pod's settings that are wrong are so before any of its containers is there.
	w := newWorld(t, pod(`"/pause"`, with(sandbox, "dev.actplane.polcy", "x")), nil)
	if err := w.prepare(t); err == nil || !strings.Contains(err.Error(), "did you mean") {
		t.Errorf("error %v", err)
	}
}

// Of a pod's annotations, one that names a container is for that one and goes before one
// for all.
func TestContainerAnnotations(t *testing.T) {
	files := map[string]string{"etc/policies/a.yaml": good, "etc/policies/b.yaml": good + "limits: {pids: 7}\n"}
	for _, test := range []struct {
		annotations map[string]string
		want        string // the layer, or an error
	}{
		{with(member, "dev.actplane.policy", "a"), "/etc/policies/a.yaml"},
		{with(member, "dev.actplane.policy", "a", "dev.actplane.container.agent.policy", "b"), "/etc/policies/b.yaml"},
		{with(member, "dev.actplane.policy", "a", "dev.actplane.container.other.policy", "b"), "/etc/policies/a.yaml"},
		{map[string]string{"io.kubernetes.container.name": "agent", "dev.actplane.container.agent.policy": "b"}, "/etc/policies/b.yaml"},
		{with(member, "dev.actplane.container.other.policy", "b"), noneFound},
		{with(member, "dev.actplane.policy", "a", "dev.actplane.container.other.polcy", "b"), "expected dev.actplane.container.NAME.KEY"},
		{with(member, "dev.actplane.container.policy", "b"), "expected dev.actplane.container.NAME.KEY"},
		{with(member, "dev.actplane.container..policy", "b"), "expected dev.actplane.container.NAME.KEY"},
		{map[string]string{"dev.actplane.container.agent.policy": "b"}, "is in no pod"},
	} {
		w := newWorld(t, pod(`"/agent"`, test.annotations), files)
		err := w.prepare(t)
		got := strings.Join(w.layers(), " ")
		if err != nil {
			got = err.Error()
		}
		if got != test.want && (err == nil || !strings.Contains(got, test.want)) {
			t.Errorf("%v: %q instead of %q", test.annotations, got, test.want)
		}
	}
}

// What to do is said in the words of who starts the container.
func TestNoPolicy(t *testing.T) {
	for _, test := range []struct {
		plan      plan
		want, not string
	}{
		{plan{docker: true, spec: &spec{}}, "--label dev.actplane.policy-file=PATH", "--annotation"},
		{plan{home: "/snapshots/1/fs", spec: &spec{}}, "--annotation dev.actplane.policy-file=PATH", "-v"},
		{plan{name: "agent", spec: &spec{annotations: member}}, "pod_annotations", "--"},
	} {
		test.plan.settings = &settings{workspace: "/"}
		if got := test.plan.noPolicy(id).Error(); !strings.Contains(got, test.want) || strings.Contains(got, test.not) {
			t.Errorf("%q", got)
		}
	}
}
