// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// hostile is what no terminal may be given, and a line that is none.
const hostile = "x\x1b[31m\u009b2J\u202eY\u2066\u2028\x07\r\nFORGED"

// TestNothingRaw gives every command names, flags, contents and records that are hostile:
// no terminal is given anything that it obeys, no name makes a line, and JSON stays JSON.
func TestNothingRaw(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("PATH", dir) // no engine is started
	write := func(name, text string) string {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	nowhere := filepath.Join(dir, "nowhere")
	good := write("good.yaml", "workspace: /w\npolicy: |\n  rule a:\n    block exec \"git\" \"push\"\n")
	policies := []string{
		write(hostile+"\xff.yaml", "workspace: /w\npolicy: |\n  rule a:\n    block exec \"git\"\n"),
		write("raw\x1b.yaml", "policy: |\n  rule \x1b[31m:\n    block exec \"\u009b\" because \"\u202e\"\n\xff"),
		"none" + hostile,
	}
	record, err := json.Marshal(map[string]any{
		"scope": hostile, "container": hostile, "sequence": 1, "time": "2026-11-30T08:00:00Z", "effect": "block", "operation": "exec",
		"object": "/bin/" + hostile, "args": []string{"git", hostile}, "rule": hostile, "because": hostile, "clause": `block exec "git"`,
		"clause_position": hostile, "pid": 1, "comm": hostile, "labels": []string{hostile},
	})
	if err != nil {
		t.Fatal(err)
	}
	log, notLog := write("log"+hostile, string(record)+"\n"), write("not a log\x1b", "{\"scope\":\"\x1b\xff\"}\n"+hostile+"\n")
	tests := write("tests\u009b.txt", "policy: good.yaml\n== a\ntrace:\n  p exec git push ok\n== b\u009b\ntrace:\n  p\x1b[31m exec git \"\\x1b[31m\\xff\" block\n  p write \"/w/\\u009b\\u202e\" block\n")
	bad := write("tests\x1b\xff.txt", hostile)

	var commands [][]string
	for _, command := range newApp().Commands {
		name := command.Name
		commands = append(commands, []string{name, "--none" + hostile}, []string{"help", hostile})
		if name == "install" || name == "uninstall" || name == "run" {
			continue // they change the host
		}
		commands = append(commands, []string{name, "--format", hostile, good}, []string{name, "--run-dir", hostile})
		for _, p := range policies {
			commands = append(commands, []string{name, p}, []string{name, p, p}, []string{name, "--format", "json", p}, []string{name, "--format", "json", good, p})
		}
	}
	for _, p := range policies {
		commands = append(commands, []string{"fmt", "--stdout", p}, []string{"compile", "--dump", p}, []string{"run", "--policy", p, "--", "true"})
	}
	commands = append(commands, [][]string{
		{hostile}, {"test", tests}, {"test", "-v", bad}, {"test", "--run", "(" + hostile, tests}, {"test", "--junit", hostile + "/x", tests},
		{"replay", log, good}, {"replay", "--format", "json", log, good}, {"replay", notLog, good}, {"replay", "--scope", hostile, log, good},
		{"explain", good, "--event", "p\x1b exec git \u009b" + hostile}, {"explain", good, "--event", `p exec git "\x1b[31m\u009b\xff"`},
		{"explain", "--format", "json", good, "--event", `p write "/w/\x1b\u202e\xff"`}, {"explain", good, "--with", hostile, "--event", "write /x"},
		{"init", "--template", hostile}, {"sign", "--key", hostile, good}, {"verify", "--allowed-signers", hostile, good}, {"verify", "--signature", hostile, good},
		{"approve", hostile, "--run-dir", nowhere}, {"approve", "--for", hostile, "x"}, {"deny", hostile, "--because", hostile, "--run-dir", nowhere},
		{"state", hostile}, {"state", "reset", hostile, "--run-dir", nowhere}, {"completion", hostile}, {completeHelper, "actplane", "check", hostile},
	}...)
	services := write("services.yaml", "services:\n  \"a\": {image: x, runtime: \"r\\e[31m\", volumes_from: [\"container:\\e[31m\"], volumes: [\"/run/docker.sock:/\\e[31m\\u202e\\nFORGED\", \"/x\\e/run/docker.sock:/y\"]}\n")
	commands = append(commands, [][]string{
		{"lint", "-f", services}, {"lint", "--format", "json", "-f", services}, {"lint", "-f", hostile}, {"lint", "--bundle", hostile}, {"lint", "-f", services, "--service", hostile},
		{"lint", "--config", hostile, "-f", services}, {"compose", services}, {"compose", "--set", hostile, services}, {"compose", "--policy-file", hostile, services},
		{"compose", "--service", hostile, services}, {"compose", "-o", hostile + "/x", services},
	}...)
	for _, args := range commands {
		var out, errs bytes.Buffer
		run(append([]string{"actplane"}, args...), strings.NewReader(""), &out, &errs)
		for _, text := range []string{out.String(), errs.String()} {
			if string(harmless([]byte(text))) != text || !utf8.ValidString(text) || strings.Contains(text, "\nFORGED") {
				t.Errorf("%q writes %q", args, text)
			}
		}
		if len(args) > 2 && args[1] == "--format" && args[2] == "json" && out.Len() > 0 && !json.Valid(out.Bytes()) {
			t.Errorf("%q writes %q", args, out.String())
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "good.yaml")); err != nil || len(commands) < 200 {
		t.Errorf("%d commands, %v", len(commands), err)
	}
}

// What is written in pieces is the same as what is written at once.
func TestHarmlessWriter(t *testing.T) {
	text := []byte("a\x1b[0m é\u009b漢\u202e\U0001F469\u200d\U0001F4BB\xff\xe6\xbc\tb\n\u2028\xf0\x9f")
	const want = "a\\x1b[0m é\\u009b漢\\u202e\U0001F469\u200d\U0001F4BB\\xff\\xe6\\xbc\tb\n\\u2028\\xf0\\x9f"
	for size := 1; size <= len(text); size++ {
		var out bytes.Buffer
		w := &harmlessWriter{out: &out}
		for i := 0; i < len(text); i += size {
			if n, err := w.Write(text[i:min(i+size, len(text))]); err != nil || n != min(size, len(text)-i) {
				t.Fatalf("%d, %v", n, err)
			}
		}
		if err := w.flush(); err != nil || out.String() != want {
			t.Errorf("by %d: %q, %v", size, out.String(), err)
		}
	}
	failed := &harmlessWriter{out: brokenWriter{}}
	if _, err := failed.Write([]byte("a")); err == nil {
		t.Error("a failure is not told")
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken") }

func TestErrorText(t *testing.T) {
	_, err := os.Open("no\nne")
	wrapped := fmt.Errorf("read: %w", errors.Join(err, os.Rename("no\nne", "an\nother")))
	if got := errorText(wrapped); strings.Contains(got, "no\nne") || strings.Contains(got, "an\nother") || !strings.Contains(got, `open no\x0ane: `) {
		t.Errorf("%q", got)
	}
}
