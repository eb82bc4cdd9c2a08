// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// TestDump compares what becomes of the documents of each archive in testdata/dump.
// Files named host* are of the host's layer.
func TestDump(t *testing.T) {
	files, err := filepath.Glob("testdata/dump/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			want := &archive.Files[len(archive.Files)-1]
			if want.Name != "want" {
				t.Fatalf("the last file of %s must be want", name)
			}
			var docs []Document
			for _, f := range archive.Files[:len(archive.Files)-1] {
				d := Document{Name: f.Name, Text: f.Data, Layer: Container}
				if strings.HasPrefix(f.Name, "host") {
					d.Layer = Host
				}
				docs = append(docs, d)
			}
			got := mustCompile(t, docs...).Dump()
			if *update {
				want.Data = []byte(got)
				if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if d := cmp.Diff(string(want.Data), got); d != "" {
				t.Errorf("the policy became something else (-want +got):\n%s", d)
			}
		})
	}
}
