// SPDX-License-Identifier: Apache-2.0

package agentfiles

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
)

var update = flag.Bool("update", false, "write the golden files")

func TestGoldens(t *testing.T) {
	for _, agent := range Agents() {
		for _, file := range agent.Files {
			name := agent.Name + "-" + filepath.Base(file.Path)
			t.Run(name, func(t *testing.T) {
				got := mustSet(t, file, nil)
				golden := filepath.Join("testdata", name)
				if *update {
					if err := os.WriteFile(golden, got, 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(golden)
				if err != nil || string(got) != string(want) {
					t.Errorf("got  %s\nwant %s (%v)", got, want, err)
				}
				if again := mustSet(t, file, got); string(again) != string(got) {
					t.Errorf("set twice is %s", again)
				}
				if left, err := file.Unset(got); err != nil || left != nil {
					t.Errorf("unset leaves %q, %v", left, err)
				}
				if left, err := file.Unset(nil); err != nil || left != nil {
					t.Errorf("unset of nothing is %q, %v", left, err)
				}
			})
		}
	}
}

func mustSet(t *testing.T, file File, old []byte) []byte {
	t.Helper()
	text, err := file.Set(old)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func fileOf(t *testing.T, agent, base string) File {
	t.Helper()
	for _, a := range Agents() {
		for _, file := range a.Files {
			if a.Name == agent && filepath.Base(file.Path) == base {
				return file
			}
		}
	}
	t.Fatalf("no file %s of %s", base, agent)
	return File{}
}

// What somebody else wrote is there before, between and after.
func TestForeignKeysStay(t *testing.T) {
	const group = `{"matcher": "Bash", "hooks": [{"type": "command", "command": "theirs"}]}`
	tests := []struct{ agent, base, old string }{
		{"claude", "managed-settings.json", `{"permissions": {"deny": ["Read(.env)"]}, "big": 12345678901234567890, "hooks": {"PostToolUse": [` + group + `], "PreToolUse": [` + group + `]}}`},
		{"gemini", "settings.json", `{"hooksConfig": {"disabled": ["x"]}, "hooks": {"AfterTool": [` + group + `]}, "<html>": "&"}`},
		{"qwen", "settings.json", `{"model": {"name": "q"}}`},
		{"copilot", "50-actplane.json", `{"version": 1, "hooks": {"postToolUse": [{"type": "command", "bash": "theirs"}], "empty": []}}`},
		{"cursor", "hooks.json", `{"version": 1, "hooks": {"stop": [{"command": "theirs"}]}}`},
		{"opencode", "opencode.json", `{"plugin": ["theirs"], "model": "a/b"}`},
	}
	for _, test := range tests {
		t.Run(test.agent, func(t *testing.T) {
			file := fileOf(t, test.agent, test.base)
			set := mustSet(t, file, []byte(test.old))
			if !strings.Contains(string(set), "actplane") {
				t.Errorf("nothing was put into %s", set)
			}
			if again := mustSet(t, file, set); string(again) != string(set) {
				t.Errorf("set twice is %s", again)
			}
			left, err := file.Unset(set)
			if err != nil || !reflect.DeepEqual(decode(t, left), decode(t, []byte(test.old))) {
				t.Errorf("unset leaves %s, %v", left, err)
			}
			if same, err := file.Unset([]byte(test.old)); err != nil || string(same) != test.old {
				t.Errorf("unset of what has no hook is %s, %v", same, err)
			}
		})
	}
}

func decode(t *testing.T, text []byte) (value any) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		t.Errorf("%q: %v", text, err)
	}
	return value
}

// Ours among the hooks of one group, as somebody may have put it there.
func TestMixedGroup(t *testing.T) {
	file := fileOf(t, "claude", "managed-settings.json")
	old := `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"theirs"},{"type":"command","command":"` + Guest + ` hook --agent claude"}]}]}}`
	left, err := file.Unset([]byte(old))
	if err != nil || !strings.Contains(string(left), "theirs") || strings.Contains(string(left), "actplane") {
		t.Errorf("got %s, %v", left, err)
	}
	if set := mustSet(t, file, []byte(old)); strings.Count(string(set), `hook --agent claude`) != 5 {
		t.Errorf("got %s", set)
	}
}

func TestCodexKeepsTheRest(t *testing.T) {
	file := fileOf(t, "codex", "requirements.toml")
	old := "allowed_sandbox_modes = [\"read-only\"]\n[features]\nhooks = false\nweb = true\n[hooks]\nmanaged_dir = \"/etc/codex\"\n" +
		"[[hooks.Stop]]\nmatcher = \"x\"\n[[hooks.Stop.hooks]]\ntype = \"command\"\ncommand = \"theirs\"\n"
	set := mustSet(t, file, []byte(old))
	if again := mustSet(t, file, set); string(again) != string(set) {
		t.Errorf("set twice is %s", again)
	}
	var got struct {
		AllowedSandboxModes []string `toml:"allowed_sandbox_modes"`
		Features            struct{ Hooks, Web bool }
		Hooks               struct {
			ManagedDir  string `toml:"managed_dir"`
			Stop        []struct{ Hooks []struct{ Command string } }
			PostToolUse []struct{ Hooks []struct{ Command string } }
		}
	}
	if err := toml.Unmarshal(set, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.AllowedSandboxModes) != 1 || !got.Features.Hooks || !got.Features.Web || got.Hooks.ManagedDir != "/etc/codex" ||
		len(got.Hooks.Stop) != 2 || got.Hooks.Stop[0].Hooks[0].Command != "theirs" || len(got.Hooks.PostToolUse) != 1 {
		t.Errorf("got %s", set)
	}
	left, err := file.Unset(set)
	if err != nil || strings.Contains(string(left), Guest) || !strings.Contains(string(left), "theirs") || !strings.Contains(string(left), "managed_dir") {
		t.Errorf("unset leaves %s, %v", left, err)
	}
	if same, err := file.Unset([]byte(old)); err != nil || string(same) != old {
		t.Errorf("unset of what has no hook is %s, %v", same, err)
	}
}

// What cannot be changed without loss is refused, and so is what would do nothing.
func TestRefused(t *testing.T) {
	tests := []struct{ agent, base, old, says string }{
		{"claude", "managed-settings.json", `{"disableAllHooks": true}`, "disableAllHooks"},
		{"claude", "managed-settings.json", `{// comment` + "\n}", "no JSON"},
		{"claude", "managed-settings.json", `[]`, "no JSON"},
		{"claude", "managed-settings.json", `{"hooks": []}`, "hooks"},
		{"claude", "managed-settings.json", `{"hooks": {"Stop": {}}}`, "Stop"},
		{"claude", "managed-settings.json", `{"a": 1, "a": 2}`, "ambiguous"},
		{"gemini", "settings.json", `{"hooksConfig": 1}`, "hooksConfig"},
		{"opencode", "opencode.json", `{"plugin": "x"}`, "plugin"},
		{"opencode", "actplane.js", "theirs", "already"},
		{"codex", "requirements.toml", "x =", "no TOML"},
		{"codex", "requirements.toml", "hooks = 1", "no table"},
		{"codex", "requirements.toml", "features = 1", "no table"},
		{"codex", "requirements.toml", "[hooks]\nStop = 1", "no array"},
	}
	for _, test := range tests {
		if got, err := fileOf(t, test.agent, test.base).Set([]byte(test.old)); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s %s: %s, %v", test.agent, test.old, got, err)
		}
	}
}

func TestFind(t *testing.T) {
	installed := func(program string) bool { return program == "cursor" || program == "pi" }
	tests := []struct{ list, want string }{
		{"claude", "claude"},
		{"codex, claude,codex", "codex claude"},
		{"auto", "cursor pi"},
		{"pi,auto", "pi cursor"},
		{"", "error"},
		{"claude,", "error"},
		{"cloude", "error"},
	}
	for _, test := range tests {
		agents, err := Find(test.list, installed)
		var names []string
		for _, agent := range agents {
			names = append(names, agent.Name)
		}
		if got := strings.Join(names, " "); got != test.want && (err == nil || test.want != "error") {
			t.Errorf("%q: got %q, %v", test.list, got, err)
		}
	}
}

// With the server each agent's files are these, whatever is there already, and both go
// again.
func TestMCPGoldens(t *testing.T) {
	places := 0
	for _, agent := range Agents() {
		with, there := agent.WithMCP()
		if !there {
			if len(with.Files) != len(agent.Files) {
				t.Errorf("%s: other files without a server", agent.Name)
			}
			continue
		}
		places++
		for _, file := range with.Files {
			if file.Path != agent.server.Path {
				continue
			}
			name := agent.Name + "-mcp-" + filepath.Base(file.Path)
			t.Run(name, func(t *testing.T) {
				got := mustSet(t, file, nil)
				golden := filepath.Join("testdata", name)
				if *update {
					if err := os.WriteFile(golden, got, 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(golden)
				if err != nil || string(got) != string(want) {
					t.Errorf("got  %s\nwant %s (%v)", got, want, err)
				}
				if again := mustSet(t, file, got); string(again) != string(got) {
					t.Errorf("set twice is %s", again)
				}
				if left, err := file.Unset(got); err != nil || left != nil {
					t.Errorf("unset leaves %q, %v", left, err)
				}
			})
		}
	}
	if places != 5 {
		t.Errorf("%d agents have a place for it", places)
	}
}

// Other servers stay, and one of somebody else's under our name is not written over.
func TestMCPKeepsTheRest(t *testing.T) {
	for _, test := range []struct{ agent, base, old, taken string }{
		{"claude", "managed-mcp.json", `{"mcpServers": {"db": {"command": "db"}}, "big": 12345678901234567890}`, `{"mcpServers": {"actplane": {"command": "theirs"}}}`},
		{"gemini", "settings.json", `{"mcpServers": {"db": {"command": "db"}}, "hooksConfig": {"disabled": ["x"]}}`, `{"mcpServers": {"actplane": {"command": "theirs"}}}`},
		{"opencode", "opencode.json", `{"mcp": {"db": {"type": "remote"}}, "plugin": ["theirs"]}`, `{"mcp": {"actplane": {"command": ["theirs"]}}}`},
		{"codex", "config.toml", "model = \"m\"\n[mcp_servers.db]\ncommand = \"db\"\n", "[mcp_servers.actplane]\ncommand = \"theirs\"\n"},
	} {
		t.Run(test.agent, func(t *testing.T) {
			i := slices.IndexFunc(Agents(), func(a Agent) bool { return a.Name == test.agent })
			with, _ := Agents()[i].WithMCP()
			file := with.Files[slices.IndexFunc(with.Files, func(f File) bool { return f.Path == test.base })]
			set := mustSet(t, file, []byte(test.old))
			if !strings.Contains(string(set), Guest) || !strings.Contains(string(set), "db") || string(mustSet(t, file, set)) != string(set) {
				t.Errorf("set is %s", set)
			}
			left, err := file.Unset(set)
			if same := strings.Contains(string(left), Guest); err != nil || same || !strings.Contains(string(left), "db") {
				t.Errorf("unset leaves %s, %v", left, err)
			}
			if test.agent != "codex" && !reflect.DeepEqual(decode(t, left), decode(t, []byte(test.old))) {
				t.Errorf("unset leaves %s", left)
			}
			if _, err := file.Set([]byte(test.taken)); err == nil || !strings.Contains(err.Error(), "another server") {
				t.Errorf("got %v", err)
			}
		})
	}
	if _, err := fileWith(t, "codex").Set([]byte("mcp_servers = 1\n")); err == nil {
		t.Error("mcp_servers is no table, and taken")
	}
}

func fileWith(t *testing.T, agent string) File {
	t.Helper()
	for _, a := range Agents() {
		if a.Name == agent {
			return *a.server
		}
	}
	t.Fatalf("no agent %s", agent)
	return File{}
}
