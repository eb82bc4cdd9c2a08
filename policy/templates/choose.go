// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"regexp"
	"strings"
)

// Choice is a template for a workspace, and why it is for it.
type Choice struct {
	Name string
	Why  string
}

// Choose picks the templates for a workspace by what is in its top folder: what
// fits all that agents do, and tests before commits where it is plain which tests
// there are. Missing says, for people, what was not picked and why. What cannot be
// read counts as not there.
func Choose(workspace fs.FS) (choices []Choice, missing []string) {
	choices = []Choice{
		{"no-push", "always"},
		{"secrets-unread", "always"},
	}
	steering := present(workspace, "AGENTS.md", "CLAUDE.md", "GEMINI.md", ".claude", ".codex", ".gemini", ".cursor", ".cursorrules", ".mcp.json", ".github/workflows")
	if len(steering) > 0 {
		choices = append(choices, Choice{"steering-files", "because there is " + steering[0]})
	}
	tests := testsOf(workspace)
	makes := testTarget(workspace)
	switch {
	case len(tests) == 1:
		choices = append(choices, tests[0])
	case makes:
		choices = append(choices, Choice{"tests-make", "because the Makefile has a target test"})
	case len(tests) > 1:
		var names, why []string
		for _, t := range tests {
			names, why = append(names, t.Name), append(why, strings.TrimPrefix(t.Why, "because "))
		}
		missing = append(missing, "tests before a commit: "+strings.Join(why, ", and ")+"; take one of "+strings.Join(names, ", ")+", or several, which then all have to pass")
	default:
		missing = append(missing, "tests before a commit: it is not plain how they are run; see the templates tests-…")
	}
	return choices, missing
}

// testsOf returns what runs the workspace's tests, for each language that it has.
func testsOf(workspace fs.FS) (out []Choice) {
	add := func(name, why string) { out = append(out, Choice{name, "because " + why}) }
	if len(present(workspace, "go.mod")) > 0 {
		add("tests-go", "there is go.mod")
	}
	if len(present(workspace, "Cargo.toml")) > 0 {
		add("tests-cargo", "there is Cargo.toml")
	}
	if npmTest(workspace) {
		add("tests-npm", "package.json has a script test")
	}
	if file := usesPytest(workspace); file != "" {
		add("tests-pytest", file+" is about pytest")
	}
	return out
}

// present returns those of the names that exist.
func present(workspace fs.FS, names ...string) (found []string) {
	for _, name := range names {
		if _, err := fs.Stat(workspace, name); err == nil {
			found = append(found, name)
		}
	}
	return found
}

// npmTest tells whether package.json has a script `test`, and not the one that
// `npm init` writes and that fails always.
func npmTest(workspace fs.FS) bool {
	var p struct {
		Scripts map[string]any `json:"scripts"`
	}
	if json.Unmarshal(content(workspace, "package.json"), &p) != nil {
		return false
	}
	script, _ := p.Scripts["test"].(string)
	return script != "" && !strings.Contains(script, "no test specified")
}

// usesPytest returns a file that is only there, or speaks of pytest, where that is
// what runs the tests.
func usesPytest(workspace fs.FS) string {
	if found := present(workspace, "pytest.ini", "conftest.py", "tests/conftest.py"); len(found) > 0 {
		return found[0]
	}
	for _, name := range []string{"pyproject.toml", "setup.cfg", "tox.ini", "requirements.txt", "requirements-dev.txt"} {
		if bytes.Contains(content(workspace, name), []byte("pytest")) {
			return name
		}
	}
	return ""
}

// testTarget tells whether a Makefile has a target `test`, alone or among others.
func testTarget(workspace fs.FS) bool {
	target := regexp.MustCompile(`(?m)^(?:[\w./-]+[ \t]+)*test(?:[ \t]+[\w./-]+)*[ \t]*::?(?:[^=:]|$)`)
	for _, name := range []string{"GNUmakefile", "makefile", "Makefile"} { // as make looks
		if len(present(workspace, name)) > 0 {
			return target.Match(content(workspace, name))
		}
	}
	return false
}

// content returns up to 1 MiB of a regular file, nothing if it is none.
func content(workspace fs.FS, name string) []byte {
	text, err := readRegular(workspace, name)
	if err != nil {
		return nil
	}
	return text
}

func readRegular(workspace fs.FS, name string) ([]byte, error) {
	info, err := fs.Stat(workspace, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // to open a FIFO would wait
		return nil, errors.New("no regular file")
	}
	file, err := workspace.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, 1<<20))
}
