// SPDX-License-Identifier: Apache-2.0

// Package templates holds policies for situations that people who run coding agents
// have, each with its tests, and makes the first policy of a workspace from them.
//
// A template is a folder with a policy file and tests of it, as they are read here
// and written there; Make joins several into one file. What it returns was compiled,
// and its tests were acted out.
package templates

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/actplane/actplane/policy/diag"
)

//go:embed */actplane.yaml */actplane_test.txt
var folders embed.FS

// PolicyFile is the name of a template's policy, as its tests name it.
const PolicyFile = "actplane.yaml"

const testFile = "actplane_test.txt"

// Workspace is the one that templates name; it stands nowhere else in a policy.
const Workspace = "/workspace"

// Template is one of the policies.
type Template struct {
	Name    string
	Summary string // one line: what it keeps

	file   string   // the policy file
	text   string   // of its policy, indented as in the file
	limits []string // the lines below `limits:`
	cases  []testCase
}

// rules returns the names of its rules.
func (t *Template) rules() (names []string) {
	for line := range strings.Lines(t.text) {
		if rest, is := strings.CutPrefix(line, "  rule "); is {
			name, _, _ := strings.Cut(rest, ":")
			names = append(names, name)
		}
	}
	return names
}

// testCase is a case of a template's tests as it is written, from its == on.
type testCase struct{ name, text string }

// All returns the templates by name.
func All() []Template {
	names, err := fs.Glob(folders, "*/"+PolicyFile)
	if err != nil {
		panic(err) // the pattern is a constant
	}
	var all []Template
	for _, name := range names {
		all = append(all, read(strings.TrimSuffix(name, "/"+PolicyFile)))
	}
	return all
}

// Find returns the templates of these names, in this order and each once.
func Find(names []string) ([]Template, error) {
	all := All()
	var found []Template
	for _, name := range names {
		i := slices.IndexFunc(all, func(t Template) bool { return t.Name == name })
		if i < 0 {
			return nil, unknown(name, all)
		}
		if !slices.ContainsFunc(found, func(t Template) bool { return t.Name == name }) {
			found = append(found, all[i])
		}
	}
	return found, nil
}

func unknown(name string, all []Template) error {
	var names []string
	for _, t := range all {
		names = append(names, t.Name)
	}
	if near := diag.Suggest(name, names); near != "" {
		return fmt.Errorf("there is no template %q; did you mean %q?", name, near)
	}
	return fmt.Errorf("there is no template %q", name)
}

// read takes a template apart. It relies on what the tests of this package check.
func read(name string) Template {
	t := Template{Name: name, file: embedded(name + "/" + PolicyFile)}
	head, body, _ := strings.Cut(t.file, "\npolicy: |\n")
	first, _, _ := strings.Cut(head, "\n")
	_, t.Summary, _ = strings.Cut(first, ": ")
	text, limits, _ := strings.Cut(body, "\nlimits:\n")
	t.text = strings.TrimSuffix(text, "\n") + "\n"
	for line := range strings.Lines(limits) {
		t.limits = append(t.limits, line)
	}
	for _, text := range strings.Split(embedded(name+"/"+testFile), "\n== ")[1:] {
		name, _, _ := strings.Cut(text, "\n")
		t.cases = append(t.cases, testCase{name, "== " + strings.TrimSuffix(text, "\n") + "\n"})
	}
	return t
}

func embedded(name string) string {
	text, err := folders.ReadFile(name)
	if err != nil {
		panic(err) // it was found there when the program was built
	}
	return string(text)
}
