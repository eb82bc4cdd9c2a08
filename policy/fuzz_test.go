// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/actplane/actplane/policy/dfa"
	"github.com/actplane/actplane/policy/diag"
	"github.com/actplane/actplane/policy/ir"
)

// goldenDocuments are the documents of the golden files that are not large.
func goldenDocuments(f *testing.F) [][]byte {
	var out [][]byte
	names, _ := filepath.Glob("testdata/diag/*.txtar")
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range txtar.Parse(text).Files {
			if file.Name != "want" && len(file.Data) < 2000 {
				out = append(out, file.Data)
			}
		}
	}
	return out
}

// FuzzProgram wants of any program, which may come over the engine's socket, that
// compiling it ends, that what cannot be enforced is refused, and that what is
// compiled can be printed.
func FuzzProgram(f *testing.F) {
	for _, text := range goldenDocuments(f) {
		p, err := Compile([]Document{{Name: "f", Text: text}}, Options{Workspace: "/w"})
		if err != nil {
			continue
		}
		seed, err := json.Marshal(p.Program)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var p ir.Program
		if len(text) > 8000 || json.Unmarshal(text, &p) != nil {
			return
		}
		refused := Unenforced(&p)
		_, err := CompileProgram(&p)
		if len(refused) > 0 && err == nil {
			t.Fatalf("enforced in spite of %v", refused)
		}
		if err := refused.WriteText(&strings.Builder{}); err != nil {
			t.Fatal(err)
		}
		image, err := dfa.Compile(&p)
		if err != nil {
			return
		}
		if len(image.RowOf) == 0 || len(image.Next) != 256*len(image.RowOf) {
			t.Fatalf("%d transitions of %d states", len(image.Next), len(image.RowOf))
		}
		_ = (&Policy{Program: &p, Image: image}).Dump()
	})
}

// FuzzLayers wants of two documents, the outer one of the host, that the inner one
// takes nothing from what the outer one says: its clauses, defaults, transforms
// and sources are those that it has alone.
func FuzzLayers(f *testing.F) {
	docs := goldenDocuments(f)
	for i, text := range docs {
		f.Add(text, docs[(i+7)%len(docs)])
	}
	f.Fuzz(func(t *testing.T, outer, inner []byte) {
		if len(outer)+len(inner) > 4000 {
			return
		}
		host := Document{Name: "host", Text: outer, Layer: Host}
		alone, err := Compile([]Document{host}, Options{Workspace: "/w"})
		if err != nil {
			return
		}
		both, err := Compile([]Document{{Name: "inner", Text: inner, Layer: Container}, host}, Options{Workspace: "/w"})
		if err != nil {
			return
		}
		if a, b := outermost(t, alone.Program), outermost(t, both.Program); a != b {
			t.Fatalf("the inner document changes the outer one:\n%s\n%s", a, b)
		}
		for _, d := range both.Program.Transforms {
			if both.Program.Labels[d.Label].Layer != d.Layer {
				t.Fatalf("%q transforms a label of another layer", d.Text)
			}
		}
	})
}

// outermost returns what a program has of its first layer.
func outermost(t *testing.T, p *ir.Program) string {
	t.Helper()
	out := ir.Program{Workspace: "/w"}
	for _, l := range p.Labels {
		if l.Layer == 0 {
			out.Labels = append(out.Labels, l)
		}
	}
	for _, s := range p.Sources {
		if p.Labels[s.Label].Layer == 0 {
			out.Sources = append(out.Sources, s)
		}
	}
	for _, d := range p.Defaults {
		if d.Layer == 0 {
			out.Defaults = append(out.Defaults, d)
		}
	}
	for _, x := range p.Transforms {
		if x.Layer == 0 {
			out.Transforms = append(out.Transforms, x)
		}
	}
	for _, e := range p.Protects {
		if e.Layer == 0 {
			out.Protects = append(out.Protects, e)
		}
	}
	for i, c := range p.Clauses {
		if p.LayerOf(i) == 0 {
			out.Clauses = append(out.Clauses, c)
		}
	}
	text, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// FuzzCompile wants of any file that compiling it ends, that positions lie in
// the file, and that what compiles also compiles from its program.
func FuzzCompile(f *testing.F) {
	for _, text := range goldenDocuments(f) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 4000 {
			return
		}
		list := compileAny(t, text)
		whole := diag.NewText("f", text)
		for _, d := range list {
			if d.Line < 1 || d.Line > whole.Lines() || d.Col < 1 || d.Col > len(whole.Line(d.Line))+1 || d.Length < 1 {
				t.Fatalf("%v lies outside the file", d)
			}
		}
		if err := list.WriteText(&strings.Builder{}); err != nil {
			t.Fatal(err)
		}
	})
}
