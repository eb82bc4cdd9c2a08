// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/actplane/actplane/policy/diag"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestDiagnostics compiles the documents of each archive in testdata/diag and
// compares what is said about them. Files named host*, operator* and * are of
// these layers; one named added* is added to the policy of the others. An archive whose comment says enforce is compiled to be enforced.
// One whose comment says unquote has \xff, \0, \t and \r
// in place of these bytes.
func TestDiagnostics(t *testing.T) {
	files, err := filepath.Glob("testdata/diag/*.txtar")
	if err != nil || len(files) < 150 {
		t.Fatalf("only %d golden files: %v", len(files), err)
	}
	covered := map[diag.Code]bool{}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			got := diagnose(t, archive, covered)
			want := &archive.Files[len(archive.Files)-1]
			if want.Name != "want" {
				t.Fatalf("the last file of %s must be want", name)
			}
			if *update {
				want.Data = got
				if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if d := cmp.Diff(string(want.Data), string(got)); d != "" {
				t.Errorf("diagnostics differ (-want +got):\n%s", d)
			}
		})
	}
	for _, c := range diag.Codes() {
		if !covered[c.Code] {
			t.Errorf("no golden file for %s: %s", c.Code, c.Title)
		}
	}
}

func diagnose(t *testing.T, archive *txtar.Archive, covered map[diag.Code]bool) []byte {
	t.Helper()
	unquote := strings.NewReplacer()
	if strings.Contains(string(archive.Comment), "unquote") {
		unquote = strings.NewReplacer(`\xff`, "\xff", `\0`, "\x00", `\t`, "\t", `\r`, "\r")
	}
	var docs []Document
	var added *Addition
	opts := Options{Enforce: strings.Contains(string(archive.Comment), "enforce")}
	for _, f := range archive.Files[:len(archive.Files)-1] {
		d := Document{Name: f.Name, Text: []byte(unquote.Replace(string(f.Data))), Layer: Container}
		switch {
		case strings.HasPrefix(f.Name, "host"):
			d.Layer = Host
		case strings.HasPrefix(f.Name, "operator"):
			d.Layer = Operator
		case strings.HasPrefix(f.Name, "added"):
			added = &Addition{Name: f.Name, Text: d.Text, Confine: strings.Contains(f.Name, "confined")}
			continue
		}
		if strings.Contains(string(archive.Comment), "too large") {
			d.Text = append(d.Text, bytes.Repeat([]byte("#"), MaxFileSize)...)
		}
		docs = append(docs, d)
	}
	p, err := Compile(docs, opts)
	if added != nil && err == nil {
		p, err = Extend(p.Program, *added)
	}
	var list diag.List
	switch {
	case errors.As(err, &list):
		if list.Errors() == 0 {
			t.Error("an error without errors")
		}
	case err != nil:
		t.Fatal(err)
	default:
		list = p.Warnings
	}
	for _, d := range list {
		covered[d.Code] = true
	}
	var out bytes.Buffer
	if err := list.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	if err == nil {
		out.WriteString("ok\n")
	}
	return out.Bytes()
}
