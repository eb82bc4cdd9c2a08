// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"

	"github.com/actplane/actplane/policy/dfa"
	"github.com/actplane/actplane/policy/ir"
)

func TestPolicyFilesAreProtected(t *testing.T) {
	compiled, err := Compile([]Document{{Name: "x", Text: []byte("version: 1\npolicy: |\n  rule r:\n    block exec \"git\"\n")}},
		Options{Workspace: "/ws/deep", Protect: []string{"/w[1]/actplane.yaml", "/w/.actplane/policy.yaml"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := CompileProgram(compiled.Program); err != nil {
		t.Errorf("the program does not compile again: %v", err)
	}
	for path, protected := range map[string]bool{
		"/w[1]/actplane.yaml":      true,
		"/w1/actplane.yaml":        false,
		"/w/.actplane/policy.yaml": true,
		"/w/.actplane":             true,
		"/w":                       false,
		"/w[1]":                    false,
		"/w/.actplane/other":       false,
	} {
		row := compiled.Image.Rows[compiled.Image.Row(dfa.Path, []byte(path))]
		if got := len(row.Clauses[ir.Write]) == 1; got != protected {
			t.Errorf("%q: protected %t, want %t", path, got, protected)
		}
		if got := len(row.Clauses[ir.Append]) == 1; got != (protected && strings.HasSuffix(path, ".yaml")) {
			t.Errorf("%q: protected from appending %t", path, got)
		}
	}
	// Whoever moves a folder above takes everything in it away from the patterns.
	for path, kept := range map[string]bool{
		"/ws/deep": true, "/ws": true, "/w": true, "/w[1]": true, "/w/.actplane": true,
		"/": false, "/w1": false, "/ws/deep/x": false, "/ws/other": false, "/w/actplane.yaml": false,
	} {
		row := compiled.Image.Rows[compiled.Image.Row(dfa.Path, []byte(path))]
		if got := len(row.Clauses[ir.Unlink]) == 1; got != kept {
			t.Errorf("%q: cannot be moved %t, want %t", path, got, kept)
		}
	}
}
