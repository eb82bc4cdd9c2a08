// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"

	"github.com/actplane/actplane/policy/dfa"
	"github.com/actplane/actplane/policy/ir"
)

// Of a folder that is mounted only the way to it is kept.
func TestFoldersKeepTheirNames(t *testing.T) {
	compiled, err := Compile([]Document{{Name: "x", Text: []byte("version: 1\npolicy: |\n  rule r:\n    block exec \"git\"\n")}},
		Options{Workspace: "/", Protect: []string{"/data/mount/", "/"}})
	if err != nil {
		t.Fatal(err)
	}
	for path, kept := range map[string]bool{"/data/mount": true, "/data": true, "/": false, "/data/mount/x": false, "/data/x": false} {
		row := compiled.Image.Rows[compiled.Image.Row(dfa.Path, []byte(path))]
		if got := len(row.Clauses[ir.Unlink]) == 1; got != kept || len(row.Clauses[ir.Write]) != 0 {
			t.Errorf("%q: cannot be moved %t, want %t; %d clauses on writes", path, got, kept, len(row.Clauses[ir.Write]))
		}
	}
}
