// SPDX-License-Identifier: Apache-2.0

package syntax

import (
	"strings"
	"testing"

	"github.com/actplane/actplane/policy/diag"
)

// grammar uses every form of the grammar, also those that are refused later.
const grammar = `
source A = exec "a" # one
source B = file any
source C = endpoint "10.0.0.0/8"
declassify A by exec "x"
endorse R by exec any
default block exec
rule no-push_2.x:
  exec "git" "push" "-f"
  ask hold 5m exec "a"
  allow exec any if (A or not B) and true
  kill write file "x" unless target not "y" or target modified or target not signed
  notify open any unless contract Q or run unsteered or lineage-includes exec "m"
  block connect endpoint any unless after exec "t" "u" exits 0 since write file "x" or exec "y" "z" or target "@private"
  block bind any block recv any block send any block append any block unlink any block read any
  because "a \"quoted\"\treason\n\\ \*"
`

func TestGrammar(t *testing.T) {
	f, errs := Parse(diag.NewText("f", []byte(grammar)))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if len(f.Sources) != 3 || len(f.Transforms) != 2 || len(f.Defaults) != 1 || len(f.Rules) != 1 || len(f.Comments) != 1 {
		t.Fatalf("%d sources, %d transforms, %d defaults, %d rules, %d comments",
			len(f.Sources), len(f.Transforms), len(f.Defaults), len(f.Rules), len(f.Comments))
	}
	r := f.Rules[0]
	if r.Name.Text != "no-push_2.x" || len(r.Clauses) != 12 || r.Because.Text != "a \"quoted\"\treason\n\\ \\*" {
		t.Fatalf("rule %q with %d clauses because %q", r.Name.Text, len(r.Clauses), r.Because.Text)
	}
	if c := r.Clauses[0]; c.Effect != nil || c.Pattern.Text != "git" || len(c.Args) != 2 {
		t.Errorf("first clause: %+v", c)
	}
	if c := r.Clauses[1]; c.Hold == nil || c.Hold.Text != "5m" {
		t.Errorf("hold: %+v", c)
	}
	after := r.Clauses[5].Unless
	if len(after) != 2 || len(after[0].Since) != 2 || after[0].Exits.Text != "0" || after[1].Kind != CondTarget {
		t.Errorf("after: %+v", after)
	}
	if c := r.Clauses[3].Unless; len(c) != 3 || !c[0].Not || c[1].Property.Text != "modified" || !c[2].Not {
		t.Errorf("targets: %+v", c)
	}
}

// FuzzParse wants of any text that reading it ends, that errors have places in
// it, and that nodes lie where they were read.
// Line breaks mean nothing between words: a policy on one line is the same, and so is
// one with a line for each word.
func TestLineBreaks(t *testing.T) {
	text := strings.Replace(grammar, " # one", "", 1) + grammar[strings.Index(grammar, "source B"):]
	want, errs := Format(diag.NewText("f", []byte(text)))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	quoted := false
	lines := func(c rune) rune { // no string of it has an escaped quote beside a blank
		if c == '"' {
			quoted = !quoted
		}
		if c == ' ' && !quoted {
			return '\n'
		}
		return c
	}
	for name, text := range map[string]string{
		"one line": strings.ReplaceAll(text, "\n", " "), "a line for each word": strings.Map(lines, strings.ReplaceAll(text, `\"quoted\"`, "quoted")),
	} {
		got, errs := Format(diag.NewText("f", []byte(text)))
		if len(errs) > 0 {
			t.Errorf("%s: %v", name, errs)
			continue
		}
		// What the printer keeps are breaks before some words.
		same := func(s string) string {
			return strings.Join(strings.Fields(strings.ReplaceAll(s, `\"quoted\"`, "quoted")), " ")
		}
		if same(got) != same(want) {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(grammar)
	for _, seed := range []string{"rule", "rule a", "rule a:", "block", "because", `"`, "rule a: exec \"x\" if ((", "rule a: exec \"x\" unless after", "a\nb\nc", "\"\n\"", "rule a:\n because because\n exec", "=:()"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		text := diag.NewText("f", []byte(s))
		file, errs := Parse(text)
		for _, d := range errs {
			if d.Line < 1 || d.Line > text.Lines() || d.Col < 1 || d.Severity != diag.Error {
				t.Fatalf("%+v", d)
			}
		}
		if e, errs := ParseExpr(text); (e == nil) != (len(errs) > 0) {
			t.Fatalf("an expression %v, and %d errors", e, len(errs))
		}
		for _, r := range file.Rules {
			for _, c := range r.Clauses {
				if c.Span.Start < 0 || c.Span.Start >= c.Span.End || c.Span.End > len(s) || c.Op.Text != s[c.Op.Span.Start:c.Op.Span.End] {
					t.Fatalf("clause %+v", c)
				}
			}
		}
	})
}
