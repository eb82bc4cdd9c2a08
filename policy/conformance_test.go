// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/actplane/actplane/policy/diag"
)

// later lists the conformance cases that need what the engine does not enforce
// yet. Each must be refused by name where it is to be enforced; one that is not
// has to leave the list.
var later = map[string]string{
	"protected-inputs":         "protect",
	"ask-retry":                "the effect ask",
	"ask-is-weaker-than-block": "the effect ask",
}

// conformanceCase is one case of cases.txt.
type conformanceCase struct {
	name, policy, yaml, workspace string
	trace                         []string
}

// document returns the case as a policy file.
func (c conformanceCase) document() Document {
	text := c.yaml
	if text == "" {
		text = "version: 1\n"
		if c.workspace != "" {
			text += "workspace: " + c.workspace + "\n"
		}
		text += "policy: |\n" + c.policy
	}
	return Document{Name: c.name, Text: []byte(text), Layer: Container}
}

func parseCases(t *testing.T, text string) []conformanceCase {
	t.Helper()
	var out []conformanceCase
	section := ""
	for _, line := range strings.Split(text, "\n") {
		key, rest, _ := strings.Cut(line, ":")
		switch {
		case strings.HasPrefix(line, "== "):
			out = append(out, conformanceCase{name: strings.Fields(line)[1]})
			section = ""
		case len(out) == 0 || strings.TrimSpace(line) == "":
		case line[0] != ' ':
			section = key
			if key == "workspace" {
				out[len(out)-1].workspace = strings.TrimSpace(rest)
			}
		default:
			c := &out[len(out)-1]
			switch section {
			case "policy":
				c.policy += line + "\n"
			case "yaml":
				c.yaml += strings.TrimPrefix(line, "  ") + "\n"
			case "trace":
				c.trace = append(c.trace, strings.TrimSpace(line))
			default:
				t.Fatalf("line %q in section %q", line, section)
			}
		}
	}
	return out
}

// TestConformance acts out the cases on the compiled image.
func TestConformance(t *testing.T) {
	var cases []conformanceCase
	for _, name := range []string{"cases.txt", "dialect.txt"} {
		text, err := os.ReadFile("testdata/conformance/" + name)
		if err != nil {
			t.Fatal(err)
		}
		cases = append(cases, parseCases(t, string(text))...)
	}
	known := map[string]bool{}
	for _, c := range cases {
		known[c.name] = true
		t.Run(c.name, func(t *testing.T) {
			p, err := Compile([]Document{c.document()}, Options{Workspace: "/"})
			if err != nil {
				t.Fatal(err)
			}
			_, err = Compile([]Document{c.document()}, Options{Workspace: "/", Enforce: true})
			if feature, ok := later[c.name]; ok {
				refusedByName(t, err, feature)
			} else if err != nil {
				t.Error(err)
			}
			world := newWorld(p)
			for _, line := range c.trace {
				step, want := parseStep(t, line)
				if got := world.do(t, step); got != want {
					t.Fatalf("%s\n\tgot %q, want %q", line, got, want)
				}
			}
		})
	}
	for name := range later {
		if !known[name] {
			t.Errorf("no case %q", name)
		}
	}
	if len(cases) < 43 {
		t.Errorf("only %d cases", len(cases))
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

// parseStep splits a line of a trace in the step and its verdict with the rule.
func parseStep(t *testing.T, line string) (step []string, verdict string) {
	t.Helper()
	words := strings.Fields(line)
	for n := len(words) - 1; n >= 2 && n >= len(words)-2; n-- {
		switch words[n] {
		case "ok", "notify", "ask", "block", "kill":
			return words[:n], strings.Join(words[n:], " ")
		}
	}
	return words, "ok" // exits have no verdict
}
