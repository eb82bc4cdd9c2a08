// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/actplane/actplane/policy"
)

const (
	weak = `{"process":{"cwd":"/src","capabilities":{"bounding":["CAP_CHOWN","CAP_SYS_ADMIN","CAP_NET_RAW"],"effective":["CAP_SYS_ADMIN","CAP_BPF"]}},` +
		`"root":{"path":"ROOT/rootfs"},"linux":{"namespaces":[{"type":"pid"},{"type":"mount"}]},"mounts":[{"destination":"/src","type":"bind","source":"ROOT/src"}]}`
	online = "version: 1\nlimits: {capabilities: {drop: [SYS_MODULE]}}\npolicy: |\n  rule r:\n    block connect any\n"
)

// warned prepares a container and returns what its scope is to be warned of.
func warned(t *testing.T, config string, files map[string]string) []string {
	t.Helper()
	w := newWorld(t, config, files)
	if err := w.prepare(t); err != nil {
		t.Fatal(err)
	}
	return w.engine.Prepared()[0].Warnings
}

func TestWeakeningCapabilities(t *testing.T) {
	const lift = "the host allows cap-sys-admin: it has CAP_SYS_ADMIN, with which its programs can overwrite the tables of every policy on this host and mount what they like\n" +
		"the host allows cap-bpf: it has CAP_BPF, with which its programs can overwrite the tables of every policy on this host"
	const send = "the container has CAP_NET_RAW, by which its programs can send what no rule on connections sees; " +
		"start it without, or take it away with limits: {capabilities: {drop: [NET_RAW]}} in a policy"
	for name, test := range map[string]struct{ config, text, want string }{
		"weak":             {weak, good, lift},
		"weak and online":  {weak, online, lift + "\n" + send},
		"dropped":          {weak, strings.Replace(online, "[SYS_MODULE]", "[ALL], add: [CHOWN]", 1), ""},
		"one dropped":      {weak, strings.Replace(online, "[SYS_MODULE]", "[SYS_ADMIN, BPF]", 1), send},
		"none":             {strings.Replace(minimal, "ADD", "", 1), online, ""},
		"in other letters": {strings.ReplaceAll(weak, "CAP_", "cap_"), good, lift},
	} {
		if got := strings.Join(warned(t, test.config, map[string]string{"src/actplane.yaml": test.text, "etc/config.yaml": "allow: [cap-sys-admin, cap-bpf]\n"}), "\n"); got != test.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, test.want)
		}
	}
}

// A workspace that is not there starts, and is warned of, wherever it is looked for.
func TestStrayWorkspace(t *testing.T) {
	const config = `{"process":{"cwd":"/src/sub"},"linux":{"namespaces":[{"type":"pid"},{"type":"mount"}]},"root":{"path":"ROOT/rootfs"},"mounts":[{"destination":"/src","type":"bind","source":"ROOT/src"},` +
		`{"destination":"/tmp","type":"tmpfs"},{"destination":"/made/for/it","type":"tmpfs"},{"destination":"/made/file","type":"bind","source":"ROOT/src/actplane.yaml"}]}`
	const rules = "policy: |\n  rule r:\n    block write file \"x/*.py\"\n"
	for workspace, want := range map[string]string{
		"":                      "",
		"/src":                  "",
		"/src/sub":              "",
		"/src/none":             "that does not exist",
		"/src/actplane.yaml":    "that is no folder",
		"/src/actplane.yaml/x":  "that does not exist",
		"/workspace":            "that does not exist",
		"/etc":                  "",
		"/etc/[a]":              "that does not exist",
		"/made":                 "",
		"/made/file":            "that is no folder",
		"/tmp/x":                "",
		"/out":                  `"/out" is a symbolic link, and policies go by the path behind it; use that path`,
		"/out/x":                `"/out" is a symbolic link, and policies go by the path behind it; use that path`,
		"/src/up/etc":           `"/src/up" is a symbolic link, and policies go by the path behind it; use that path`,
		"/" + long("x/", 3_000): "that cannot be looked at: ",
	} {
		text := "version: 1\n" + rules
		if workspace != "" {
			text = "version: 1\nworkspace: \"" + workspace + "\"\n" + rules
		}
		w := newWorld(t, config, map[string]string{"etc/policy.d/floor.yaml": text, "src/actplane.yaml": good, "src/sub/file": ""})
		for name, target := range map[string]string{"rootfs/out": "/", "src/up": ".."} {
			if err := os.Symlink(target, filepath.Join(w.root, name)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.prepare(t); err != nil {
			t.Errorf("%.60q: %v", workspace, err)
			continue
		}
		got := strings.Join(w.engine.Prepared()[0].Warnings, "\n")
		if want != "" {
			want = fmt.Sprintf("policy %q: patterns below its workspace %q match nothing, because %s", filepath.Join(w.root, "etc/policy.d/floor.yaml"), workspace, want)
			if !strings.HasPrefix(workspace, "/x/") {
				want += `; the working directory is "/src/sub"`
			} else {
				want = want[:maxWarning]
			}
		}
		if !strings.HasPrefix(got, want) || want == "" && got != "" || strings.Contains(got, "\n") {
			t.Errorf("%.60q:\n%s\nwant\n%s", workspace, got, want)
		}
	}
}

func long(part string, length int) string { return strings.Repeat(part, length/len(part)) }

// A policy without patterns below its workspace misses nothing.
func TestIdleWorkspace(t *testing.T) {
	for _, text := range []string{strings.Replace(good, "policy", "workspace: /none\npolicy", 1), "version: 1\nworkspace: /none\npolicy: |\n  rule r:\n    block write file \"/x\"\n"} {
		if got := warned(t, strings.Replace(minimal, "ADD", "", 1), map[string]string{"src/actplane.yaml": text}); len(got) != 0 {
			t.Errorf("%s: %q", text, got)
		}
	}
}

// What the compiler warns of comes along, and no more than can be read.
func TestCompilerWarnings(t *testing.T) {
	var text strings.Builder
	text.WriteString("version: 1\npolicy: |\n")
	for i := range 30 {
		fmt.Fprintf(&text, "  rule r%d:\n    block exec \"git\" if L%d\n    because \"%s\"\n  source L%d = file \"/x\"\n  rule s%d:\n    block exec \"a.*\"\n", i, i, long("é", 2_000), i, i)
	}
	got := warned(t, strings.Replace(minimal, "ADD", "", 1), map[string]string{"src/actplane.yaml": text.String()})
	if len(got) != maxWarnings+1 || !strings.HasPrefix(got[0], "/src/actplane.yaml:") || !strings.Contains(got[0], ": warning[P") ||
		got[maxWarnings] != `10 more warnings; "actplane check" shows them` {
		t.Errorf("%d warnings: %q", len(got), got)
	}
	for length, want := range map[int]int{maxWarning: maxWarning, maxWarning + 1: maxWarning + len("…")} {
		if got := bounded(strings.Repeat("a", length)); len(got) != want {
			t.Errorf("of %d bytes: %d", length, len(got))
		}
	}
	if got := bounded("a" + strings.Repeat("é", maxWarning)); got != "a"+strings.Repeat("é", maxWarning/2-1)+"…" {
		t.Errorf("cut in a character: %q", got)
	}
}

// The same for what runs on the host.
func TestStrayWorkspacesOfTheHost(t *testing.T) {
	here := t.TempDir()
	compiled, err := policy.Compile([]policy.Document{
		{Name: "a", Text: []byte("version: 1\nworkspace: /nonexistent\npolicy: |\n  rule r:\n    block write file \"x\"\n")},
		{Name: "b", Text: []byte("version: 1\npolicy: |\n  rule s:\n    block write file \"x\"\n")},
	}, policy.Options{Workspace: here})
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`policy "a": patterns below its workspace "/nonexistent" match nothing, because that does not exist; the working directory is %q`, here)
	if got := StrayWorkspaces(compiled, here); len(got) != 1 || got[0] != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
