// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/actplane/actplane/policy/diag"
)

// TestFormat formats the first file of each archive in testdata/format, which has
// ⇥ for a tab, and compares it with the second.
func TestFormat(t *testing.T) {
	names, err := filepath.Glob("testdata/format/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			in := bytes.ReplaceAll(archive.Files[0].Data, []byte("⇥"), []byte("\t"))
			got := formatted(t, in)
			if got == nil {
				t.Fatal("it has errors")
			}
			if *update {
				archive.Files[1].Data = got
				if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if d := cmp.Diff(string(archive.Files[1].Data), string(got)); d != "" {
				t.Errorf("formatted text differs (-want +got):\n%s", d)
			}
			crlf := bytes.ReplaceAll(in, []byte("\n"), []byte("\r\n"))
			if d := cmp.Diff(string(got), string(formatted(t, append([]byte("\xEF\xBB\xBF"), crlf...)))); d != "" {
				t.Errorf("formatted text differs with CR LF (-LF +CRLF):\n%s", d)
			}
		})
	}
}

// formatted formats a file, and wants of it what holds of all: the same program,
// the same comments, and nothing left to format. It is nil of a file with errors.
func formatted(t *testing.T, in []byte) []byte {
	t.Helper()
	before, err := Compile([]Document{{Name: "f", Text: in}}, Options{})
	got, list := Format("f", in)
	if (err != nil) != (list.Errors() > 0) {
		t.Fatalf("Compile says %v, Format %v", err, list)
	}
	if err != nil {
		return nil
	}
	after, err := Compile([]Document{{Name: "f", Text: got}}, Options{})
	if err != nil {
		t.Fatalf("%v in\n%s\nof\n%s", err, got, in)
	}
	if d := cmp.Diff(meaning(before.Program), meaning(after.Program)); d != "" {
		t.Fatalf("the program differs (-before +after):\n%s", d)
	}
	if a, b := bytes.Count(in, []byte("#")), bytes.Count(got, []byte("#")); a != b {
		t.Fatalf("%d # became %d:\n%s\n%s", a, b, in, got)
	}
	if form, _ := canonical("f", in); !bytes.Equal(form, got) {
		t.Fatalf("the form would change the program:\n%s\nof\n%s", form, in)
	}
	again, list := Format("f", got)
	if list.Errors() > 0 || !bytes.Equal(got, again) {
		t.Fatalf("formatting again changes it (%v):\n%s\nof\n%s", list, cmp.Diff(string(got), string(again)), in)
	}
	return got
}

// TestFormatAll formats all documents of the tests and the examples.
func TestFormatAll(t *testing.T) {
	var docs [][]byte
	for _, glob := range []string{"testdata/*/*.txtar", "../cmd/actplane/testdata/script/*.txtar"} {
		names, err := filepath.Glob(glob)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range archive.Files {
				docs = append(docs, f.Data)
			}
		}
	}
	names, err := filepath.Glob("../examples/*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, text)
	}
	valid := 0
	for _, text := range docs {
		if formatted(t, text) != nil {
			valid++
		}
	}
	t.Logf("%d documents, %d of them valid", len(docs), valid)
	if valid < 50 {
		t.Errorf("only %d valid documents", valid)
	}
}

func TestFormatRefuses(t *testing.T) {
	out, list := Format("f", []byte("policy: |\n  rule a:\n    blok exec \"git\"\n"))
	if out != nil || list.First().Code != diag.UnknownWord {
		t.Errorf("Format = %q, %v", out, list)
	}
}

// FuzzFormat wants of any file that compiles what formatted wants.
func FuzzFormat(f *testing.F) {
	for _, text := range goldenDocuments(f) {
		f.Add(text)
	}
	names, _ := filepath.Glob("testdata/format/*.txtar")
	for _, name := range names {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(bytes.ReplaceAll(archive.Files[0].Data, []byte("⇥"), []byte("\t")))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) <= 4000 {
			formatted(t, text)
		}
	})
}
