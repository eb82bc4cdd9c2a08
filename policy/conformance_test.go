// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/actplane/actplane/policy/diag"
	"github.com/actplane/actplane/policy/model"
)

// later lists the conformance cases that need what the engine does not enforce
// yet. Each must be refused by name where it is to be enforced; one that is not
// has to leave the list.
var later = map[string]string{}

// caseFiles are all that are acted out on an image, with how many cases they have
// at least.
var caseFiles = map[string]int{
	"testdata/conformance/cases.txt": 28, "testdata/conformance/dialect.txt": 19, "model/testdata/cases.txt": 40,
	"model/testdata/found.txt": 13,
}

func readCases(t testing.TB, file string) []model.Case {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cases, err := model.ParseCases(file, string(text))
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

// TestConformance acts out the cases on the compiled image.
func TestConformance(t *testing.T) {
	known := map[string]bool{}
	for file, atLeast := range caseFiles {
		cases := readCases(t, file)
		if len(cases) < atLeast {
			t.Errorf("%s: only %d cases", file, len(cases))
		}
		for _, c := range cases {
			known[c.Name] = true
			t.Run(c.Name, func(t *testing.T) {
				docs := []Document{{Name: file, Text: c.Document(), Layer: Container}}
				p, err := Compile(docs, Options{Workspace: "/"})
				if err != nil {
					t.Fatal(err)
				}
				if strings.HasPrefix(file, "testdata/conformance/") {
					enforced(t, c.Name, docs)
				}
				w := newWorld(p)
				for _, step := range c.Steps {
					if got := w.do(step.Words); got != step.Want() {
						t.Fatalf("%s:%d: %s\n\tgot %q, want %q", file, step.Line, step.Text, got, step.Want())
					}
				}
			})
		}
	}
	for name := range later {
		if !known[name] {
			t.Errorf("no case %q", name)
		}
	}
}

// enforced wants of a case that it can be enforced, or is refused by name.
func enforced(t *testing.T, name string, docs []Document) {
	t.Helper()
	_, err := Compile(docs, Options{Workspace: "/", Enforce: true})
	if feature, ok := later[name]; ok {
		refusedByName(t, err, feature)
	} else if err != nil {
		t.Error(err)
	}
}

func refusedByName(t *testing.T, err error, feature string) {
	t.Helper()
	var list diag.List
	if !errors.As(err, &list) {
		t.Fatalf("the case needs %s, and compiles: err = %v", feature, err)
	}
	for _, d := range list {
		if d.Code == diag.NotSupported && strings.HasSuffix(d.Message, feature) {
			return
		}
	}
	t.Fatalf("%s is not refused by name: %v", feature, list)
}
