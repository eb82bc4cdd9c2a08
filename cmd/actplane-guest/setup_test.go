// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/actplane/actplane/internal/agentfiles"
)

// setup runs the command in an image that lies in root.
func setup(t *testing.T, root string, args ...string) (code int, out, errOut string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	g := guest{out: &stdout, err: &stderr, home: "/home/a", path: "/usr/bin:/usr/local/bin"}
	code = g.run(append([]string{"setup", "--root", root}, args...))
	return code, stdout.String(), stderr.String()
}

func put(t *testing.T, root, name, text string) {
	t.Helper()
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// tree is all files below root, with their contents.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, root)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestSetup(t *testing.T) {
	root := t.TempDir()
	put(t, root, "/usr/bin/claude", "")
	put(t, root, "/usr/local/bin/cline", "")
	put(t, root, "/etc/claude-code/managed-settings.json", `{"permissions": {"deny": ["Read(.env)"]}}`)
	before := tree(t, root)

	code, out, errOut := setup(t, root, "--agent", "auto", "--print")
	if code != 0 || errOut != "" || !strings.Contains(out, "# "+root+"/etc/claude-code/managed-settings.json\n{") ||
		!strings.Contains(out, "# "+root+"/home/a/.cline/hooks/PostToolUse\n#!/bin/sh\n") || len(tree(t, root)) != len(before) {
		t.Errorf("print: %d %s%s", code, out, errOut)
	}
	code, out, errOut = setup(t, root, "--agent", "auto")
	want := "wrote     " + root + "/etc/claude-code/managed-settings.json\nwrote     " + root + "/home/a/.cline/hooks/PostToolUse\n"
	if code != 0 || errOut != "" || out != want {
		t.Errorf("set: %d %s%s", code, out, errOut)
	}
	set := tree(t, root)
	if text := set["/etc/claude-code/managed-settings.json"]; !strings.Contains(text, "Read(.env)") || strings.Count(text, "hook --agent claude") != 5 {
		t.Errorf("set: %s", text)
	}
	info, err := os.Stat(root + "/home/a/.cline/hooks/PostToolUse")
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("Cline's hook: %v, %v", info, err)
	}
	if code, out, _ := setup(t, root, "--agent", "claude,cline"); code != 0 || strings.Count(out, "unchanged") != 2 {
		t.Errorf("again: %d %s", code, out)
	}
	code, out, _ = setup(t, root, "--agent", "claude,cline", "--remove")
	if code != 0 || !strings.Contains(out, "removed   "+root+"/home/a/.cline/hooks/PostToolUse\n") {
		t.Errorf("remove: %d %s", code, out)
	}
	after := tree(t, root)
	if text := after["/etc/claude-code/managed-settings.json"]; !strings.Contains(text, "Read(.env)") || strings.Contains(text, "hook") || len(after) != len(before) {
		t.Errorf("removed: %v", after)
	}
}

// With --mcp the server is registered as well, and --remove takes both out.
func TestSetupMCP(t *testing.T) {
	root := t.TempDir()
	put(t, root, "/etc/codex/config.toml", "model = \"m\"\n")
	code, out, errOut := setup(t, root, "--agent", "claude,codex,copilot", "--mcp")
	set := tree(t, root)
	if code != 0 || strings.Count(out, "wrote") != 5 || !strings.Contains(errOut, "copilot has no place for MCP servers") ||
		!strings.Contains(set["/etc/claude-code/managed-mcp.json"], "mcpServers") || !strings.Contains(set["/etc/codex/config.toml"], "[mcp_servers.actplane]") {
		t.Errorf("%d %s%s%v", code, out, errOut, set)
	}
	if code, out, _ := setup(t, root, "--agent", "claude,codex", "--mcp"); code != 0 || strings.Count(out, "unchanged") != 4 {
		t.Errorf("again: %d %s", code, out)
	}
	if code, _, errOut := setup(t, root, "--agent", "claude,codex,copilot", "--remove"); code != 0 || errOut != "" {
		t.Errorf("remove: %d %s", code, errOut)
	}
	if left := tree(t, root); len(left) != 1 || left["/etc/codex/config.toml"] != "model = 'm'\n" {
		t.Errorf("left %v", left)
	}
}

// What is set up is a hook that answers: silently, as long as nothing has happened.
func TestSetupNamesKnownAgents(t *testing.T) {
	path := socketPath(t)
	start(t, newScope(), path)
	for _, name := range agentfiles.Names() {
		if code, out, errOut := run(t, path, `{"session_id":"s"}`, "hook", "--agent", name); code != 0 || out != "" || strings.Contains(errOut, "--agent is one of") {
			t.Errorf("%s: %d %q %q", name, code, out, errOut)
		}
	}
}

// An agent whose files cannot all be written gets none.
func TestSetupRefuses(t *testing.T) {
	root := t.TempDir()
	put(t, root, "/etc/opencode/actplane.js", "theirs\n")
	put(t, root, "/etc/gemini-cli/settings.json", "// comment\n{}")
	if err := os.Mkdir(root+"/etc/claude-code", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(root+"/etc/claude-code/managed-settings.json", 0o755); err != nil {
		t.Fatal(err)
	}
	before := tree(t, root)
	tests := []struct {
		code int
		says string
		args []string
	}{
		{exitUsage, "name the agents", nil},
		{exitUsage, `unknown agent "x"`, []string{"--agent", "x"}},
		{exitUsage, "exclude each other", []string{"--agent", "claude", "--print", "--remove"}},
		{exitEnvironment, "no agent that it knows", []string{"--agent", "auto"}},
		{exitEnvironment, "there is such a file already", []string{"--agent", "opencode"}},
		{exitEnvironment, "put the hook in by hand", []string{"--agent", "gemini"}},
		{exitEnvironment, "not a regular file", []string{"--agent", "claude"}},
	}
	for _, test := range tests {
		code, out, errOut := setup(t, root, test.args...)
		if code != test.code || out != "" || !strings.Contains(errOut, test.says) {
			t.Errorf("%q: %d %q %q", test.args, code, out, errOut)
		}
	}
	if after := tree(t, root); len(after) != len(before) {
		t.Errorf("left %v", after)
	}
}
