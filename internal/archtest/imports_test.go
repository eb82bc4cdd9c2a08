// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"slices"
	"strings"
	"testing"
)

// An arrow says what packages may import: patterns of packages of this module,
// where "x/..." is x and all below it. A package's first matching arrow counts.
type arrow struct {
	from string
	to   []string
}

// The arrows. Below every one of them the standard library is open; foreign
// modules are ruled by the table below this one.
var arrows = []arrow{
	{"cmd/...", []string{"..."}},
	{"examples/...", []string{"..."}},
	{"integration/...", []string{"..."}},

	{"shim/...", []string{"shim/...", "policy/...", "engine/api", "internal/..."}},
	{"ocihook", []string{"shim/prepare", "policy/...", "engine/api", "internal/..."}},
	{"compose/...", []string{"compose/...", "policy/...", "internal/..."}},
	{"feedback/...", []string{"feedback/...", "engine/api", "policy/ir", "internal/..."}},

	// What people on the host see of the engine: clients of its API.
	{"console/...", []string{"console/...", "engine/api", "feedback", "internal/..."}},

	{"engine/api", nil},
	{"engine/...", []string{"engine/...", "bpf", "feedback", "policy", "policy/diag", "policy/ir", "policy/dfa", "internal/..."}},
	{"bpf", nil},

	{"policy", []string{"policy/..."}},
	{"policy/model", []string{"policy/ir", "policy/dfa", "policy/pattern", "policy/diag"}},
	{"policy/explain", []string{"policy/ir", "policy/model", "policy/diag", "policy/pattern"}},
	{"policy/compare", []string{"policy/ir", "policy/dfa", "policy/model", "policy/pattern"}},
	{"policy/replay", []string{"policy/ir", "policy/model", "policy/syntax", "policy/diag", "policy/pattern"}},
	{"policy/templates", []string{"policy", "policy/model", "policy/diag", "policy/ir"}},
	{"policy/check", []string{"policy/syntax", "policy/diag", "policy/ir", "policy/pattern"}},
	{"policy/syntax", []string{"policy/diag"}},
	{"policy/dfa", []string{"policy/ir", "policy/pattern"}},
	{"policy/ir", []string{"policy/diag"}},
	{"policy/pattern", []string{"policy/diag"}},
	{"policy/diag", nil},
	// Signatures are of texts, whatever these say.
	{"policy/signature", nil},

	// The client of the daemon's socket, for all who have a container to start.
	{"internal/daemon/...", []string{"internal/...", "engine/api"}},
	{"internal/...", []string{"internal/..."}},

	{"packaging", nil},
}

// Foreign modules that have one place: everywhere else they are not wanted.
var foreign = []struct {
	module string
	users  []string
}{
	{"github.com/cilium/ebpf", []string{"bpf", "engine/..."}},
	{"github.com/containerd/ttrpc", []string{"console/consoletest", "engine/...", "shim/...", "ocihook", "internal/daemon/...", "cmd/..."}},
	{"google.golang.org/protobuf", []string{"console/consoletest", "engine/...", "shim/...", "ocihook", "internal/daemon/...", "internal/frontend", "cmd/..."}},
	{"github.com/containerd/containerd", []string{"shim/task", "cmd/..."}},
	{"github.com/compose-spec/compose-go", []string{"compose"}},
	{"github.com/hiddeco/sshsig", []string{"policy/signature"}},
	{"github.com/modelcontextprotocol/go-sdk", []string{"feedback/mcp"}},
	{"golang.org/x/crypto", []string{"policy/signature", "cmd/..."}},
}

// matches reports whether a pattern covers a package; both are relative to the module.
func matches(pattern, name string) bool {
	if pattern == "..." {
		return true
	}
	if root, found := strings.CutSuffix(pattern, "/..."); found {
		return name == root || strings.HasPrefix(name, root+"/")
	}
	return pattern == name
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, name) })
}

// Only what is built counts: a test may look across.
func TestImports(t *testing.T) {
	for _, p := range packages(t) {
		i := slices.IndexFunc(arrows, func(a arrow) bool { return matches(a.from, p.name) })
		if i < 0 {
			t.Errorf("no arrow says what package %q may import; see arrows in imports_test.go", p.name)
			continue
		}
		for _, path := range p.Imports {
			if name, ours := strings.CutPrefix(path, p.Module.Path+"/"); ours && !matchesAny(arrows[i].to, name) {
				t.Errorf("%s imports %s; it may import %s of this module", p.name, name, list(arrows[i].to))
			}
			for _, rule := range foreign {
				if strings.HasPrefix(path, rule.module) && !matchesAny(rule.users, p.name) {
					t.Errorf("%s imports %s, which is for %s", p.name, path, list(rule.users))
				}
			}
		}
	}
}

// The compiler knows nothing of kernels, and the programs that a container starts
// with are small: what they must not import, they must not reach either.
func TestReach(t *testing.T) {
	unreachable := []struct{ from, ours, foreign []string }{
		{
			from: []string{"policy/..."},
			ours: []string{"bpf/...", "engine/...", "feedback/...", "shim/...", "internal/..."},
			// Ciphers ask x/sys/cpu what the processor can; that is no system call.
			foreign: []string{"github.com/cilium/ebpf/...", "golang.org/x/sys/unix/...", "golang.org/x/sys/windows/..."},
		},
		{
			from:    []string{"shim/prepare", "shim/runtime", "ocihook"},
			ours:    []string{"bpf/...", "engine", "engine/kernel", "feedback/..."},
			foreign: []string{"github.com/cilium/ebpf/..."},
		},
	}
	for _, p := range packages(t) {
		for _, rule := range unreachable {
			if !matchesAny(rule.from, p.name) {
				continue
			}
			for _, path := range p.Deps {
				name, ours := strings.CutPrefix(path, p.Module.Path+"/")
				if ours && matchesAny(rule.ours, name) || !ours && matchesAny(rule.foreign, path) {
					t.Errorf("%s reaches %s", p.name, path)
				}
			}
		}
	}
}

// The tests above pass if nothing ever matches.
func TestMatches(t *testing.T) {
	tests := []struct {
		pattern, name string
		want          bool
	}{
		{"policy", "policy", true},
		{"policy", "policy/ir", false},
		{"policy/...", "policy", true},
		{"policy/...", "policy/ir", true},
		{"policy/...", "policyholder", false},
		{"...", "anything/at/all", true},
	}
	for _, test := range tests {
		if got := matches(test.pattern, test.name); got != test.want {
			t.Errorf("matches(%q, %q) = %v", test.pattern, test.name, got)
		}
	}
}

func list(patterns []string) string {
	if len(patterns) == 0 {
		return "nothing"
	}
	return strings.Join(patterns, ", ")
}
