// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"os"
	"strings"
	"testing"

	"github.com/actplane/actplane/policy"
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/model"
)

func program(t *testing.T, c *model.Case) *ir.Program {
	t.Helper()
	p, err := policy.Compile([]policy.Document{{Name: c.Name, Text: c.Document(), Layer: policy.Container}}, policy.Options{Workspace: "/"})
	if err != nil {
		t.Fatal(err)
	}
	return p.Program
}

// exact is Run where a verdict without a rule is one that no rule gave.
func exact(t *testing.T, c *model.Case) {
	t.Helper()
	s := model.New(program(t, c))
	for _, step := range c.Steps {
		d, err := s.Do(step.Words)
		if err != nil {
			t.Fatalf("line %d: %s\n\t%v", step.Line, step.Text, err)
		}
		if d.String() != step.Want() {
			t.Fatalf("line %d: %s\n\tgot %q, want %q\n\t%s", step.Line, step.Text, d, step.Want(), d.Why)
		}
	}
}

// TestConformance acts out the required cases, those of the public project's
// dialect and the model's own.
func TestConformance(t *testing.T) {
	for file, atLeast := range map[string]int{
		"../testdata/conformance/cases.txt": 28, "../testdata/conformance/dialect.txt": 15, "testdata/cases.txt": 1,
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		cases, err := model.ParseCases(file, string(text))
		if err != nil {
			t.Fatal(err)
		}
		if len(cases) < atLeast {
			t.Errorf("%s: only %d cases", file, len(cases))
		}
		for i := range cases {
			t.Run(cases[i].Name, func(t *testing.T) {
				exact(t, &cases[i])
				if f := model.Run(program(t, &cases[i]), &cases[i]); f != nil {
					t.Errorf("%+v", f)
				}
			})
		}
	}
}

func TestParseErrors(t *testing.T) {
	const head = "== x\npolicy:\n  rule r: block exec \"x\"\n"
	for text, want := range map[string]string{
		"":                                       "f: no case",
		"== \n":                                  "f:1: a case begins with",
		head:                                     "f:1: case x has no trace",
		"== x\ntrace:\n  a exec /x ok\n":         "f:1: case x has no policy",
		head + "trace:\n  a exec /x\n":           "f:5: the step \"a exec /x\" has no verdict",
		head + "tracs:\n":                        "f:4: \"tracs:\" is no part",
		"== x\n  a exec /x ok\n":                 "f:2: this line belongs to nothing",
		"== x\nyaml:\n  version: 1\n" + head[5:]: "or more than one",
	} {
		_, err := model.ParseCases("f", text+"")
		if err == nil && strings.HasSuffix(want, "more than one") {
			_, err = model.ParseCases("f", text+"trace:\n  a exec /x ok\n")
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
