// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The policy language is the same wherever it is read.
func TestPolicyBuildsAnywhere(t *testing.T) {
	if _, err := os.Stat(filepath.Join(root(t), "policy")); err != nil {
		t.Fatal(err)
	}
	for _, system := range []string{"darwin", "windows"} {
		vet := exec.Command("go", "vet", "./policy/...")
		vet.Dir = root(t)
		vet.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
		if out, err := vet.CombinedOutput(); err != nil {
			t.Errorf("on %s: %v\n%s", system, err, out)
		}
	}
}

func TestPackages(t *testing.T) {
	shunned := []string{"util", "utils", "common", "helper", "helpers", "pkg", "misc", "lib", "base"}
	for _, p := range packages(t) {
		if p.Doc == "" {
			t.Errorf("package %s has no package comment", p.name)
		}
		if want := "Package " + p.Name + " "; p.Name != "main" && p.Doc != "" && !strings.HasPrefix(p.Doc, want) {
			t.Errorf("the comment of package %s begins %q, not %q", p.name, firstWords(p.Doc), want)
		}
		for _, element := range strings.Split(p.name, "/") {
			if slices.Contains(shunned, element) {
				t.Errorf("package %s: a name that says nothing", p.name)
			}
		}
	}
}

func firstWords(s string) string {
	if len(s) > 30 {
		return s[:30] + "…"
	}
	return s
}

// What runs before main, or registers itself, hides what depends on what.
func TestNoInit(t *testing.T) {
	for _, p := range packages(t) {
		for _, name := range p.GoFiles {
			path := filepath.Join(p.Dir, name)
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
			if err != nil {
				t.Error(err)
				continue
			}
			if ast.IsGenerated(file) {
				continue
			}
			for _, decl := range file.Decls {
				if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
					t.Errorf("%s/%s has an init function", p.name, name)
				}
			}
		}
	}
}

var (
	generated = regexp.MustCompile(`(?m)^(//|#|/\*) ?Code generated .* DO NOT EDIT\.`)
	spdxGo    = regexp.MustCompile(`\A(?:/\*|//) SPDX-License-Identifier: Apache-2\.0\n\n`)
	spdxC     = regexp.MustCompile(`\A(?://|/\*) SPDX-License-Identifier: GPL-2\.0-only OR BSD-2-Clause(?: \*/)?\n`)
	spdxShell = regexp.MustCompile(`\A(?:#!.*\n)?# SPDX-License-Identifier: Apache-2\.0\n`)
)

// Each file says first under which license it is. In Go a blank line follows, or
// the line would be part of the package comment.
func TestLicenseLines(t *testing.T) {
	top := root(t)
	checked := 0
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(top, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			// Headers in bpf/headers are others' and keep their own line; testdata is input.
			if name == ".git" || name == "bin" || name == filepath.Join("bpf", "headers") || d.Name() == "testdata" {
				return filepath.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || filepath.Ext(name) == ".o" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		want := license(name, text)
		if want == nil || generated.Match(text) {
			return nil
		}
		checked++
		if !want.Match(text) {
			t.Errorf("%s: want at its head: %s", name, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if checked == 0 {
		t.Error("found no file to check")
	}
}

// license tells which head a file must have; nil if none.
func license(name string, text []byte) *regexp.Regexp {
	switch filepath.Ext(name) {
	case ".go":
		return spdxGo
	case ".c", ".h":
		if strings.HasPrefix(name, "bpf"+string(filepath.Separator)) {
			return spdxC
		}
		return nil
	case ".sh":
		return spdxShell
	}
	if bytes.HasPrefix(text, []byte("#!")) {
		return spdxShell
	}
	return nil
}
