// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

func TestChoose(t *testing.T) {
	tests := []struct {
		name    string
		files   string // names, or names=content
		want    string // besides no-push and secrets-unread
		missing string
	}{
		{"nothing", "", "", "not plain"},
		{"go", "go.mod", "tests-go", ""},
		{"go with a Makefile", "go.mod|Makefile=test:\n\tgo test ./...\n", "tests-go", ""},
		{"cargo", "Cargo.toml", "tests-cargo", ""},
		{"npm", `package.json={"scripts": {"test": "vitest"}}`, "tests-npm", ""},
		{"npm init", `package.json={"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}`, "", "not plain"},
		{"npm without tests", `package.json={"scripts": {"build": "tsc"}}`, "", "not plain"},
		{"broken package.json", `package.json={"scripts`, "", "not plain"},
		{"scripts of another type", `package.json={"scripts": [1]}`, "", "not plain"},
		{"pytest in pyproject", "pyproject.toml=[tool.pytest.ini_options]\n", "tests-pytest", ""},
		{"python without pytest", "pyproject.toml=[project]\n", "", "not plain"},
		{"conftest", "conftest.py", "tests-pytest", ""},
		{"make", "Makefile=.PHONY: test\nall:\n\tcc x.c\ntest: all\n\t./x\n", "tests-make", ""},
		{"make with several targets", "makefile=all test lint:\n\ttrue\n", "tests-make", ""},
		{"make without tests", "Makefile=.PHONY: test\ntest := x\ntest ::= y\ntests:\n\ttrue\n\ttest: x\n", "", "not plain"},
		{"make as make looks", "GNUmakefile=all:\n|Makefile=test:\n", "", "not plain"},
		{"two languages", "go.mod|Cargo.toml", "", "take one of tests-go, tests-cargo"},
		{"two languages and make", "go.mod|Cargo.toml|Makefile=test:\n", "tests-make", ""},
		{"steering", "AGENTS.md|go.mod", "steering-files tests-go", ""},
		{"workflows", ".github/workflows/ci.yml|.claude/settings.json", "steering-files", "not plain"},
		{"issue templates", ".github/ISSUE_TEMPLATE/bug.md", "", "not plain"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			folder := fstest.MapFS{}
			for _, file := range strings.Split(test.files, "|") {
				if name, content, _ := strings.Cut(file, "="); name != "" {
					folder[name] = &fstest.MapFile{Data: []byte(content)}
				}
			}
			choices, missing := Choose(folder)
			var got []string
			for _, c := range choices {
				got = append(got, c.Name)
				if c.Why == "" {
					t.Errorf("no reason for %s", c.Name)
				}
			}
			if want := strings.TrimSpace("no-push secrets-unread " + test.want); strings.Join(got, " ") != want {
				t.Errorf("chose %v, want %s", got, want)
			}
			if text := strings.Join(missing, "\n"); (text == "") != (test.missing == "") || !strings.Contains(text, test.missing) {
				t.Errorf("missing: %q, want %q", text, test.missing)
			}
			checkChosen(t, got)
		})
	}
}

// checkChosen makes what was chosen: nothing that comes unasked may be refused by
// the engine or contradict itself.
func checkChosen(t *testing.T, names []string) {
	t.Helper()
	made, err := Make(find(t, names...), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(made.Unenforced) > 0 || len(made.LeftOut) > 0 {
		t.Errorf("%v: not enforced are %v, left out %v", names, made.Unenforced, made.LeftOut)
	}
}

// What is no regular file is not read, and nothing of a file beyond a bound.
func TestChooseHostile(t *testing.T) {
	folder := fstest.MapFS{
		"package.json": {Mode: fs.ModeNamedPipe, Data: []byte(`{"scripts": {"test": "x"}}`)},
		"Makefile":     {Data: []byte(strings.Repeat("#\n", 1<<20) + "test:\n")},
		"tox.ini/x":    {Data: []byte("pytest")},
	}
	if choices, _ := Choose(folder); len(choices) != 2 {
		t.Errorf("chose %v", choices)
	}
}
