// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// agentWorld is a container for whose agents hooks are asked for by an annotation, a
// scope's directory, and mounts before the others.
func agentWorld(t *testing.T, agents, mounts string, files map[string]string) *world {
	t.Helper()
	config := strings.Replace(minimal, "ADD", fmt.Sprintf(`,"annotations":{"dev.actplane.agents":%q}`, agents), 1)
	config = strings.Replace(config, `"mounts":[`, `"mounts":[`+mounts, 1)
	w := newWorld(t, config, files)
	w.write(t, "src/actplane.yaml", good)
	w.engine.Directory = filepath.Join(w.root, "scope")
	return w
}

// mounted are the mounts that ActPlane has added, by destination.
func (w *world) mounted(t *testing.T) map[string]specs.Mount {
	t.Helper()
	var spec specs.Spec
	if err := json.Unmarshal(w.config(t), &spec); err != nil {
		t.Fatal(err)
	}
	added := map[string]specs.Mount{}
	for _, mount := range spec.Mounts {
		if strings.HasPrefix(mount.Source, w.engine.Directory) {
			added[mount.Destination] = mount
		}
	}
	return added
}

func TestAgents(t *testing.T) {
	single := `{"destination":"/etc/claude-code/policy/a.json","type":"bind","source":"ROOT/single","options":["bind"]},`
	w := agentWorld(t, "claude,codex", single, map[string]string{
		"rootfs/etc/claude-code/managed-settings.json": `{"permissions":{"deny":["Read(.env)"]}}`,
		"rootfs/etc/claude-code/CLAUDE.md":             "the image's\n",
		"single":                                       "the operator's\n",
	})
	if err := w.prepare(t); err != nil {
		t.Fatal(err)
	}
	mounts := w.mounted(t)
	claude, codex := mounts["/etc/claude-code"], mounts["/etc/codex"]
	if len(mounts) != 3 || strings.Join(claude.Options, " ") != "bind ro nosuid nodev noexec rprivate" || codex.Source == "" {
		t.Fatalf("mounts %v", mounts)
	}
	for name, want := range map[string]string{
		claude.Source + "/managed-settings.json": "Read(.env)", claude.Source + "/CLAUDE.md": "the image's\n",
		claude.Source + "/policy/a.json": "the operator's\n", codex.Source + "/requirements.toml": "hook --agent codex",
	} {
		text, err := os.ReadFile(name)
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %q, %v", name, text, err)
		}
		if info, err := os.Stat(filepath.Dir(name)); err == nil && info.Mode().Perm() != 0o755 {
			t.Errorf("%s has mode %v", filepath.Dir(name), info.Mode())
		}
	}
	text, err := os.ReadFile(filepath.Join(w.root, "rootfs/etc/claude-code/managed-settings.json"))
	if err != nil || strings.Contains(string(text), "hook") {
		t.Errorf("the image was changed: %s, %v", text, err)
	}
}

// Which agents there are is seen by their programs, and a link to one will do.
func TestAgentsAuto(t *testing.T) {
	w := agentWorld(t, "auto", "", map[string]string{"rootfs/usr/bin/gemini": "", "rootfs/usr/bin/pi": "", "rootfs/opt/codex": "",
		"rootfs/usr/bin/qwen": "", "rootfs/etc/qwen-code/settings.json": "// comment\n{}"})
	if err := os.MkdirAll(filepath.Join(w.root, "rootfs/usr/local/bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/nowhere/claude.exe", filepath.Join(w.root, "rootfs/usr/local/bin/claude")); err != nil {
		t.Fatal(err)
	}
	if err := w.prepare(t); err != nil {
		t.Fatal(err)
	}
	mounts := w.mounted(t)
	if len(mounts) != 3 || mounts["/etc/claude-code"].Source == "" || mounts["/etc/gemini-cli"].Source == "" {
		t.Errorf("mounts %v", mounts)
	}
	// What cannot be done for one that was not named is told, and no more.
	warnings := strings.Join(w.engine.Prepared()[0].Warnings, "\n")
	if !strings.Contains(warnings, "hooks of agent qwen are not set up: /etc/qwen-code: settings.json:") ||
		strings.Contains(warnings, "agent pi") || strings.Contains(warnings, "gemini") {
		t.Errorf("warnings %q", warnings)
	}
}

func TestAgentsOfTheHost(t *testing.T) {
	w := agentWorld(t, "gemini", "", map[string]string{"etc/config.yaml": "agents: claude\n"})
	if err := w.prepare(t); err != nil {
		t.Fatal(err)
	}
	if mounts := w.mounted(t); len(mounts) != 3 {
		t.Errorf("mounts %v", mounts)
	}
	w = agentWorld(t, "gemini", "", map[string]string{"etc/config.yaml": "agents: cloude\n"})
	if err := w.prepare(t); err == nil || !strings.Contains(err.Error(), `agents: unknown agent "cloude"`) {
		t.Errorf("got %v", err)
	}
}

// The MCP server comes with the hooks where somebody who may asks for it; an agent without
// a place for it is told of.
func TestAgentsMCP(t *testing.T) {
	for _, c := range []struct {
		config, annotation, env string
		want                    bool
		says                    string
	}{
		{"", "true", "", true, ""},
		{"mcp: true", "", "", true, ""},
		{"", "", "ACTPLANE_MCP=true", true, ""},
		{"mcp: true", "false", "", false, ""},
		{"", "", "", false, ""},
		{"", "yes", "", false, `"yes" is neither`},
		{"mcp: true", "", "ACTPLANE_MCP=false", false, "only by an annotation"},
		{"mcp: 7", "", "", false, "host configuration"},
	} {
		w := agentWorld(t, "gemini,copilot", "", map[string]string{"etc/config.yaml": c.config + "\n"})
		config := string(w.config(t))
		if c.annotation != "" {
			config = strings.Replace(config, `"annotations":{`, `"annotations":{"dev.actplane.mcp":"`+c.annotation+`",`, 1)
		}
		if c.env != "" {
			config = strings.Replace(config, `"process":{`, `"process":{"env":["`+c.env+`"],`, 1)
		}
		w.write(t, "bundle/config.json", config)
		err := w.prepare(t)
		if c.says != "" {
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(w.mounted(t)["/etc/gemini-cli"].Source, "settings.json"))
		warned := strings.Contains(strings.Join(w.engine.Prepared()[0].Warnings, "\n"), "agent copilot gets its hook and no MCP server")
		if has := strings.Contains(string(text), "mcpServers"); err != nil || has != c.want || warned != c.want || !strings.Contains(string(text), "hook --agent gemini") {
			t.Errorf("%+v: %s, warned %v, %v", c, text, warned, err)
		}
	}
}

func TestAgentsRefused(t *testing.T) {
	many := map[string]string{}
	for i := range maxAgentFiles + 1 {
		many[fmt.Sprintf("rootfs/etc/codex/%d", i)] = ""
	}
	tests := []struct {
		name, agents, mounts string
		files                map[string]string
		link                 [2]string
		fifo                 string
		says                 string
	}{
		{name: "unknown", agents: "cloude", says: `unknown agent "cloude"`},
		{name: "in the home", agents: "cline", says: "actplane-guest setup --agent cline"},
		{name: "folder is a link", agents: "codex", link: [2]string{"/src", "rootfs/etc/codex"}, says: "symbolic link"},
		{name: "file is a link", agents: "codex", link: [2]string{"/etc/shadow", "rootfs/etc/codex/requirements.toml"}, says: "requirements.toml"},
		{name: "link to the host", agents: "codex", link: [2]string{"../../../secrets", "rootfs/etc/codex/more"}, says: "more"},
		{name: "no file can be changed", agents: "codex", files: map[string]string{"rootfs/etc/codex/requirements.toml": "x ="}, says: "no TOML"},
		{name: "too many", agents: "codex", files: many, says: "more than 256 files"},
		{name: "too deep", agents: "codex", files: map[string]string{"rootfs/etc/codex/1/2/3/4/5/6": ""}, says: "deep"},
		{name: "a file in its place", agents: "codex", files: map[string]string{"rootfs/etc/codex": ""}, says: "/etc/codex"},
		{name: "a FIFO in its place", agents: "codex", fifo: "rootfs/etc/codex", says: "not a directory"},
		{name: "a tmpfs in it", agents: "codex", mounts: `{"destination":"/etc/codex/x","type":"tmpfs","source":"tmpfs"},`, says: "tmpfs"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := agentWorld(t, test.agents, test.mounts, test.files)
			if test.link[0] != "" {
				name := filepath.Join(w.root, test.link[1])
				if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(test.link[0], name); err != nil {
					t.Fatal(err)
				}
			}
			if test.fifo != "" {
				if err := unix.Mkfifo(filepath.Join(w.root, test.fifo), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			before := string(w.config(t))
			if err := w.prepare(t); err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v", err)
			}
			if string(w.config(t)) != before {
				t.Error("the bundle was changed")
			}
		})
	}
}
