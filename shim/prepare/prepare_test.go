// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/internal/bundle"
	"github.com/actplane/actplane/internal/daemon"
	"github.com/actplane/actplane/internal/daemon/daemontest"
	"github.com/actplane/actplane/policy/ir"
)

const (
	id        = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	good      = "version: 1\npolicy: |\n  rule r:\n    block exec \"git\" \"push\"\n"
	broken    = "version: 1\npolicy: |\n  rule r:\n    blok exec \"git\"\n"
	minimal   = `{"process":{"cwd":"/src"},"root":{"path":"ROOT/rootfs"},"mounts":[{"destination":"/src","type":"bind","source":"ROOT/src"}],"linux":{"namespaces":[{"type":"pid"},{"type":"mount"}]}ADD}`
	noneFound = "no policy found"
)

// world is a host with a bundle and a fake engine.
type world struct {
	*Host
	engine *daemontest.Engine
	root   string
}

// newWorld makes a host; files are by path below its root.
func newWorld(t *testing.T, config string, files map[string]string) *world {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{root: root}
	for _, directory := range []string{"src", "rootfs/etc", "bundle", "etc/policy.d", "etc/policies", "secrets"} {
		if err := os.MkdirAll(filepath.Join(root, directory), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w.write(t, "bundle/config.json", w.expand(config))
	for name, text := range files {
		w.write(t, name, w.expand(text))
	}
	engine, socket := daemontest.Start(t)
	engine.Directory = "/run/actplane/scopes/x"
	w.engine = engine
	w.Host = &Host{
		Config: filepath.Join(root, "etc/config.yaml"), Floor: filepath.Join(root, "etc/policy.d"),
		Policies: filepath.Join(root, "etc/policies"), Records: bundle.Records(filepath.Join(root, "runtime")),
		Hook:   "/usr/local/bin/actplane-hook",
		Engine: daemon.Options{Socket: socket, Directory: t.TempDir(), Program: "/bin/false", NoSystemd: true, NoCgroup: true},
		Swap:   func() bool { return true },
	}
	return w
}

func (w *world) expand(text string) string {
	return strings.NewReplacer("ROOT", w.root, "CONTAINER", id).Replace(text)
}

func (w *world) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(w.root, w.expand(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (w *world) prepare(t *testing.T) error {
	t.Helper()
	_, err := w.Prepare(t.Context(), Container{ID: id, Root: "/run/runc", Bundle: filepath.Join(w.root, "bundle")})
	return err
}

// layers are the names of what the engine was given, without the host's root.
func (w *world) layers() []string {
	var names []string
	for _, request := range w.engine.Prepared() {
		for _, layer := range request.Layers {
			names = append(names, strings.TrimPrefix(layer.Name, w.root))
		}
	}
	return names
}

func (w *world) config(t *testing.T) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(w.root, "bundle/config.json"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// update rewrites the golden files: go test ./shim/prepare -update.
func update() bool {
	f := flag.Lookup("update")
	return f != nil && f.Value.String() == "true"
}

func TestMain(m *testing.M) {
	flag.Bool("update", false, "rewrite the golden files")
	flag.Parse()
	os.Exit(m.Run())
}

func TestSpec(t *testing.T) {
	for _, name := range []string{"docker", "podman", "limited"} {
		t.Run(name, func(t *testing.T) {
			in, err := os.ReadFile(filepath.Join("testdata", name, "in.json"))
			if err != nil {
				t.Fatal(err)
			}
			w := newWorld(t, string(in), map[string]string{"src/actplane.yaml": good})
			for _, run := range []string{"first", "second"} {
				if err := w.prepare(t); err != nil {
					t.Fatalf("%s: %v", run, err)
				}
				var got bytes.Buffer
				if err := json.Indent(&got, w.config(t), "", " "); err != nil {
					t.Fatal(err)
				}
				text := strings.NewReplacer(w.root, "ROOT", id, "CONTAINER").Replace(got.String()) + "\n"
				golden := filepath.Join("testdata", name, "out.json")
				if update() {
					if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(golden)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(want), text); diff != "" {
					t.Errorf("%s run: %s", run, diff)
				}
			}
		})
	}
}

func TestRequest(t *testing.T) {
	in, _ := os.ReadFile("testdata/docker/in.json")
	w := newWorld(t, string(in), map[string]string{
		"src/actplane.yaml": good,
		"containers/CONTAINER/config.v2.json": `{"ID":"CONTAINER","Name":"/agent","Config":{"Labels":{"dev.actplane.limits.capabilities.drop":"NET_RAW"}},
			"State":{"StartedAt":"2026-01-02T03:04:05.6Z","FinishedAt":"2026-01-02T03:05:00Z"}}`,
	})
	if err := w.prepare(t); err != nil {
		t.Fatal(err)
	}
	request := w.engine.Prepared()[0]
	if request.Id != id || request.Name != "agent" || request.Mode != "enforce" || len(request.Layers) != 1 {
		t.Errorf("request %v", request)
	}
	if ended := time.UnixMilli(request.EndedUnixMs).UTC(); ended.Format(time.DateTime) != "2026-01-02 03:05:00" ||
		request.Home != filepath.Join(w.root, "containers", id) {
		t.Errorf("ended %s, home %q", ended, request.Home)
	}
	var program ir.Program
	if err := json.Unmarshal(request.Program, &program); err != nil || program.Workspace != "/src" {
		t.Errorf("program %v, error %v", program, err)
	}
	record, err := w.Records.Load(id)
	if err != nil {
		t.Fatal(err)
	}
	want := &bundle.Record{ID: id, Root: "/run/runc", Bundle: filepath.Join(w.root, "bundle"),
		Capabilities: []bundle.CapabilityFilter{{Drop: []string{"CAP_NET_RAW"}}}}
	if diff := cmp.Diff(want, record); diff != "" {
		t.Error(diff)
	}
}

// Docker writes the year 1 for what has not happened, and no end when the host went down.
func TestEnded(t *testing.T) {
	at := func(text string) time.Time { parsed, _ := time.Parse(time.RFC3339, text); return parsed }
	for _, test := range []struct{ started, finished, want string }{
		{"0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"},
		{"2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z", "2026-01-03T00:00:00Z"},
		{"2026-01-02T00:00:00Z", "0001-01-01T00:00:00Z", "2026-01-02T00:00:00Z"},
	} {
		file := &dockerFile{}
		file.State.StartedAt, file.State.FinishedAt = at(test.started), at(test.finished)
		if got := file.ended(); !got.Equal(at(test.want)) {
			t.Errorf("%v: %s", test, got)
		}
	}
	if !(*dockerFile)(nil).ended().IsZero() {
		t.Error("without Docker, it has ended")
	}
}

// Everything that exists is a layer, in order, and a text that is there twice is one.
func TestLayers(t *testing.T) {
	text := func(n int) string { return fmt.Sprintf("# %d\n%s", n, good) }
	in, _ := os.ReadFile("testdata/docker/in.json")
	config := strings.Replace(string(in), `"env": [`, `"env": ["ACTPLANE_POLICY=strict", "ACTPLANE_POLICY_FILE=.env-policy.yaml", `, 1)
	config = strings.Replace(config, `"ociVersion"`, `"annotations": {"dev.actplane.policy": "version: 1\n", "dev.actplane.policy-file": "/src/own.yaml", "other": "x"}, "ociVersion"`, 1)
	w := newWorld(t, config, map[string]string{
		"containers/CONTAINER/config.v2.json": `{"ID":"CONTAINER","Config":{"Labels":{"dev.actplane.policy":"strict","dev.actplane.policy-file":"actplane.yaml"}}}`,
		"etc/policy.d/20-b.yaml":              text(1), "etc/policy.d/10-a.yaml": text(2), "etc/policy.d/readme": "x",
		"etc/policies/strict.yaml": text(3), "src/own.yaml": text(4), "src/actplane.yaml": text(5),
		"src/.actplane/policy.yaml": text(6), "src/.env-policy.yaml": text(7), "rootfs/etc/actplane/policy.yaml": text(8),
	})
	if err := w.prepare(t); err != nil {
		t.Fatal(err)
	}
	want := []string{"/etc/policy.d/10-a.yaml", "/etc/policy.d/20-b.yaml", "annotation dev.actplane.policy", "/src/own.yaml",
		"/etc/policies/strict.yaml", "/src/actplane.yaml", "/src/.env-policy.yaml", "/src/.actplane/policy.yaml", imagePolicy}
	if diff := cmp.Diff(want, w.layers()); diff != "" {
		t.Error(diff)
	}
}

// A container that shares another one's network has that one's /etc/hosts, and
// labels of its own.
func TestLabelsWithSharedNetwork(t *testing.T) {
	config := strings.Replace(minimal, `"mounts":[`, `"mounts":[{"destination":"/etc/hosts","type":"bind","source":"ROOT/containers/other/hosts"},`, 1)
	w := newWorld(t, strings.Replace(config, "ADD", "", 1), map[string]string{
		"containers/other/config.v2.json":     `{"ID":"other","Config":{"Labels":{"dev.actplane.policy":"none"}}}`,
		"containers/CONTAINER/config.v2.json": `{"ID":"CONTAINER","Name":"/agent","Config":{"Labels":{"dev.actplane.policy":"strict"}}}`,
		"etc/policies/strict.yaml":            "# strict\n" + good, "src/actplane.yaml": good,
	})
	if err := w.prepare(t); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/etc/policies/strict.yaml", "/src/actplane.yaml"}, w.layers()); diff != "" {
		t.Error(diff)
	}
}

func TestRefusals(t *testing.T) {
	annotation := func(key, value string) string {
		return strings.Replace(minimal, "ADD", fmt.Sprintf(`,"annotations":{"dev.actplane.%s":%q}`, key, value), 1)
	}
	environment := func(entry string) string {
		return strings.Replace(strings.Replace(minimal, "ADD", "", 1), `"cwd"`, fmt.Sprintf(`"env":[%q],"cwd"`, entry), 1)
	}
	plain := strings.Replace(minimal, "ADD", "", 1)
	mounted := func(mount string) string {
		return strings.Replace(plain, `"mounts":[`, `"mounts":[`+mount+`,`, 1)
	}
	policy := map[string]string{"src/actplane.yaml": good}
	tests := []struct {
		name, config string
		files        map[string]string
		want         string
	}{
		{"nothing", plain, nil, noneFound},
		{"broken", plain, map[string]string{"src/actplane.yaml": broken}, `policy "/src/actplane.yaml": 1 error (first: 4:`},
		{"broken, next command", plain, map[string]string{"src/actplane.yaml": broken}, `run "actplane check ROOT/src/actplane.yaml"`},
		{"broken, inline", annotation("policy", broken), nil, `policy in annotation dev.actplane.policy: 1 error (first: 4:`},
		{"cut, inline", annotation("policy", "policy: |"), nil, `the policy "policy: |" says nothing`},
		{"cut at its version", annotation("policy", "version: 1"), policy, `says nothing`},
		{"misspelt key", annotation("polcy-file", "x"), policy, `unknown name; did you mean "dev.actplane.policy-file"?`},
		{"misspelt limit", annotation("limits.pid", "1"), policy, `did you mean "dev.actplane.limits.pids"?`},
		{"misspelt variable", environment("ACTPLANE_POLICYFILE=x"), policy, `did you mean "ACTPLANE_POLICY_FILE"?`},
		{"two values", strings.Replace(environment("ACTPLANE_POLICY=a"), `"env":[`, `"env":["ACTPLANE_POLICY=b",`, 1), policy, "has two values"},
		{"shadow", annotation("mode", "shadow"), policy, "mode shadow is not supported by this version"},
		{"mode", annotation("mode", "enforced"), policy, `unknown mode "enforced"; did you mean "enforce"?`},
		{"shadow by environment", environment("ACTPLANE_MODE=shadow"), policy, "not supported"},
		{"feedback", annotation("feedback", "nome"), policy, `unknown feedback "nome"; did you mean "none"?`},
		{"feedback by environment", environment("ACTPLANE_FEEDBACK=none"), policy, "only by an annotation"},
		{"workspace by environment", environment("ACTPLANE_WORKSPACE=/"), policy, "only by an annotation"},
		{"workspace", annotation("workspace", "src"), policy, "not an absolute path"},
		{"policy file", annotation("policy-file", "/src/none.yaml"), policy, `policy file "/src/none.yaml": there is no such file`},
		{"policy file with NUL", annotation("policy-file", "/src/a\x00b"), policy, "NUL"},
		{"named policy", annotation("policy", "strcit"), map[string]string{"etc/policies/strict.yaml": good}, `did you mean "strict"?`},
		{"policy by path", annotation("policy", "../../x"), policy, "neither the name of a host policy nor a policy"},
		{"limit", annotation("limits.memory", "much"), policy, "expected a size"},
		{"limit below zero", annotation("limits.pids", "-1"), policy, "expected a positive number"},
		{"capability", annotation("limits.capabilities.drop", "NET_RWA"), policy, `did you mean "CAP_NET_RAW"?`},
		{"all capabilities", annotation("limits.capabilities.add", "ALL"), policy, "ALL cannot be added"},
		{"host policy", plain, map[string]string{"etc/policy.d/a.yml": good}, "rename it"},
		{"host configuration", plain, map[string]string{"etc/config.yaml": "runtime: runc"}, `unknown key "runtime"; did you mean "runtimes"?`},
		{"host configuration", plain, map[string]string{"etc/config.yaml": "retention: 1s"}, `retention: 1s is not between`},
		{"host's approvers", plain, map[string]string{"etc/config.yaml": "approvers: [{name: a, command: [/bin/true], timout: 1s}]"}, `line 1: unknown key "timout"; did you mean "timeout"?`},
		{"host's approvers", plain, map[string]string{"etc/config.yaml": "approvers: [{name: a, url: \"http://example.com/\"}]"}, `approvers: "a": url: "example.com" is not on this host`},
		{"host's notifications", plain, map[string]string{"etc/config.yaml": "notifications: [&n {name: a, command: [/bin/true], rules: [x]}, *n]"}, `unknown key "rules"`},
		{"host's mode", plain, map[string]string{"etc/config.yaml": "mode: shadow"}, "not supported"},
		{"own mount", mounted(`{"destination":"/run//actplane/","type":"bind","source":"/tmp"}`), policy, "mount of its own"},
		{"mount below", mounted(`{"destination":"/run/x/../actplane/bin","type":"tmpfs"}`), policy, "mount of its own"},
		{"no process", `{"root":{"path":"r"}}`, policy, "no process"},
		{"no root", `{"process":{}}`, policy, "no root.path"},
		{"case", `{"Process":{},"root":{"path":"r"}}`, policy, "ambiguous key"},
		{"hooks", strings.Replace(minimal, "ADD", `,"hooks":[]`, 1), policy, "expected an object"},
		{"docker file of another", strings.Replace(mounted(`{"destination":"/etc/hosts","type":"bind","source":"ROOT/containers/CONTAINER/hosts"}`), "ADD", "", 1),
			map[string]string{"containers/CONTAINER/config.v2.json": `{"ID":"x"}`}, `is of container "x"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, test.config, test.files)
			before := w.config(t)
			err := w.prepare(t)
			if err == nil || !strings.Contains(err.Error(), w.expand(test.want)) {
				t.Fatalf("error %v instead of %q", err, w.expand(test.want))
			}
			if !bytes.Equal(before, w.config(t)) {
				t.Error("the bundle was changed")
			}
			if staged, closed := len(w.engine.Prepared()), len(w.engine.Closed()); staged != closed {
				t.Errorf("%d scopes staged, %d closed", staged, closed)
			}
			if _, err := w.Records.Load(id); err == nil {
				t.Error("a record was left behind")
			}
		})
	}
}

// An image must not lead a mount, and what is in it, to paths that no pattern has.
func TestLinksOfTheImage(t *testing.T) {
	tests := []struct{ name, link, add, policy, want string }{
		{"workspace", "src", "", good, `policy file "/src/actplane.yaml": "/src" is a symbolic link`},
		{"workspace of the image", "work", `,"annotations":{"dev.actplane.policy-file":"/data/p.yaml","dev.actplane.workspace":"/work/a"}`, good, `workspace "/work/a": "/work" is a symbolic link`},
		{"pattern", "data", "", strings.Replace(good, `exec "git" "push"`, `read file "/data/**"`, 1), `mount "/data": "/data" is a symbolic link`},
		{"target", "data", "", strings.Replace(good, `exec "git" "push"`, `write file any unless target not "/data/x"`, 1), `mount "/data": "/data" is a symbolic link`},
		{"own workspace", "data", "", "workspace: /data\n" + strings.Replace(good, `exec "git" "push"`, `read file "x"`, 1), `mount "/data": "/data" is a symbolic link`},
		{"nothing to do with it", "data", "", good, ""},
		{"policy file", "data", `,"annotations":{"dev.actplane.policy-file":"/data/p.yaml"}`, good, `policy file "/data/p.yaml": "/data" is a symbolic link`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			config := strings.Replace(minimal, `}]`, `},{"destination":"/data","type":"bind","source":"ROOT/secrets"}]`, 1)
			w := newWorld(t, strings.Replace(config, "ADD", test.add, 1), map[string]string{"src/actplane.yaml": test.policy, "secrets/p.yaml": good})
			if err := os.Symlink("etc", filepath.Join(w.root, "rootfs", test.link)); err != nil {
				t.Fatal(err)
			}
			err := w.prepare(t)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("error %v instead of %q", err, test.want)
			}
		})
	}
}

func TestEngineRefuses(t *testing.T) {
	files := map[string]string{"src/actplane.yaml": good}
	plain := strings.Replace(minimal, "ADD", "", 1)
	t.Run("prepare", func(t *testing.T) {
		w := newWorld(t, plain, files)
		w.engine.PrepErr = fmt.Errorf("the table is full")
		if err := w.prepare(t); err == nil || err.Error() != "actplane engine does not take the policy: the table is full" {
			t.Errorf("error %v", err)
		}
	})
	t.Run("too large", func(t *testing.T) {
		large := map[string]string{"src/actplane.yaml": good}
		for n := range 4 {
			large[fmt.Sprintf("etc/policy.d/%d.yaml", n)] = fmt.Sprint("# ", n, "\n", good, strings.Repeat("# x\n", (maxPolicy-200)/4))
		}
		w := newWorld(t, plain, large)
		if err := w.prepare(t); err == nil || !strings.Contains(err.Error(), "KiB together, compiled and as text, and the engine takes 4080 KiB") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("problem", func(t *testing.T) {
		w := newWorld(t, plain, files)
		w.engine.About = api.StatusResponse{Problem: "kernel 5.10 is too old"}
		if err := w.prepare(t); err == nil || !strings.Contains(err.Error(), `cannot enforce on this host: kernel 5.10 is too old; run "actplane doctor"`) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("down", func(t *testing.T) {
		w := newWorld(t, plain, files)
		w.Engine.Socket += ".none"
		if err := w.prepare(t); err == nil || !strings.Contains(err.Error(), "cannot be started") {
			t.Errorf("error %v", err)
		}
	})
}

// Where the host permits it, a container without a policy runs as it would, but
// for limits.
func TestPolicyNotRequired(t *testing.T) {
	config := strings.Replace(minimal, "ADD", `,"annotations":{"dev.actplane.limits.pids":"7"}`, 1)
	w := newWorld(t, config, map[string]string{"etc/config.yaml": "require_policy: false\ndegraded: refuse\nretention: 48h\n"})
	if err := w.prepare(t); err != nil {
		t.Fatal(err)
	}
	if len(w.engine.Prepared()) != 0 {
		t.Error("a scope was staged")
	}
	if got := string(w.config(t)); !strings.Contains(got, `"pids":{"limit":7}`) || strings.Contains(got, "hooks") {
		t.Errorf("config %s", got)
	}
	if record, err := w.Records.Load(id); err != nil || !record.Unmanaged {
		t.Errorf("record %v, error %v", record, err)
	}
}

func TestUndoLeavesAnother(t *testing.T) {
	w := newWorld(t, strings.Replace(minimal, "ADD", "", 1), map[string]string{"src/actplane.yaml": good})
	other := &bundle.Record{ID: id, Root: "/other", Bundle: "/other"}
	if err := w.Records.Save(other); err != nil {
		t.Fatal(err)
	}
	w.engine.PrepErr = fmt.Errorf("the id is in use")
	if err := w.prepare(t); err == nil {
		t.Fatal("no error")
	}
	if record, err := w.Records.Load(id); err != nil || record.Root != "/other" {
		t.Errorf("record %v, error %v", record, err)
	}
}

// TestFeedback: who starts the container has the first word on what goes to standard error,
// then the host's configuration, then the policy.
func TestFeedback(t *testing.T) {
	for _, c := range []struct {
		policy             bool
		config, annotation string
		want               bool
	}{
		{false, "", "", false},
		{true, "", "", true},
		{false, "socket,stderr", "", true},
		{true, "socket", "", false},
		{false, "socket", "socket,stderr", true},
		{true, "socket,stderr", "socket", false},
		{true, "none", "", false},
		{true, "", "none", false},
		{false, "none", "socket,stderr", true},
	} {
		spec, files := strings.Replace(minimal, "ADD", "", 1), map[string]string{"src/actplane.yaml": good}
		if c.policy {
			files["src/actplane.yaml"] += "feedback: {stderr: true}\n"
		}
		if c.config != "" {
			files["etc/config.yaml"] = "feedback: " + c.config + "\n"
		}
		if c.annotation != "" {
			spec = strings.Replace(minimal, "ADD", `,"annotations":{"dev.actplane.feedback":"`+c.annotation+`"}`, 1)
		}
		w := newWorld(t, spec, files)
		if err := w.prepare(t); err != nil {
			t.Fatal(err)
		}
		var program ir.Program
		if err := json.Unmarshal(w.engine.Prepared()[0].Program, &program); err != nil || program.Feedback.Stderr != c.want {
			t.Errorf("%+v: %v, %v", c, program.Feedback.Stderr, err)
		}
	}
}

// TestNoFeedback: nothing of ours is mounted, the scope is asked for without a socket, and
// hooks that somebody asks for are left out with a warning, unless there is no such agent.
func TestNoFeedback(t *testing.T) {
	own := `{"destination":"/run/actplane","type":"tmpfs"},`
	w := agentWorld(t, "claude", own, map[string]string{"etc/config.yaml": "feedback: none\n"})
	w.engine.Directory = ""
	if err := w.prepare(t); err != nil {
		t.Fatal(err)
	}
	var spec specs.Spec
	if err := json.Unmarshal(w.config(t), &spec); err != nil {
		t.Fatal(err)
	}
	request := w.engine.Prepared()[0]
	if len(spec.Mounts) != 2 || len(spec.Hooks.CreateRuntime) != 1 || !request.NoFeedback {
		t.Errorf("mounts %v, hooks %v, request %v", spec.Mounts, spec.Hooks, request.NoFeedback)
	}
	if text := strings.Join(request.Warnings, "\n"); !strings.Contains(text, "no hooks of agents are set up, since its feedback is none") {
		t.Errorf("warnings %q", text)
	}
	w = agentWorld(t, "clod", "", map[string]string{"etc/config.yaml": "feedback: none\n"})
	if err := w.prepare(t); err == nil || !strings.Contains(err.Error(), "clod") {
		t.Errorf("got %v", err)
	}
}
