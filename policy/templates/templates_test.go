// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/actplane/actplane/policy"
	"github.com/actplane/actplane/policy/diag"
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/model"
)

// notEnforced begins what a template says of itself when it says more than the
// engine enforces.
const notEnforced = "# Not enforced by this version: "

// compile compiles a policy file and fails on warnings.
func compile(t *testing.T, text []byte) *policy.Policy {
	t.Helper()
	p, err := policy.Compile([]policy.Document{{Name: PolicyFile, Text: text, Layer: policy.Container}}, policy.Options{})
	var list diag.List
	switch {
	case errors.As(err, &list):
		var b strings.Builder
		_ = list.WriteText(&b)
		t.Fatalf("the policy has errors:\n%s\n%s", b.String(), text)
	case err != nil:
		t.Fatal(err)
	case len(p.Warnings) > 0:
		t.Errorf("warning: %v", p.Warnings.First())
	}
	return p
}

// parse reads the tests.
func parse(t *testing.T, text []byte) []model.Case {
	t.Helper()
	cases, err := model.ParseCases(testFile, string(text))
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

// failing returns the name of a case that fails, or "".
func failing(p *ir.Program, cases []model.Case) string {
	for i := range cases {
		if f := model.Run(p, &cases[i]); f != nil {
			return cases[i].Name
		}
	}
	return ""
}

func TestTemplates(t *testing.T) {
	all := All()
	if len(all) < 12 {
		t.Fatalf("only %d templates", len(all))
	}
	owner := map[string]string{} // of rules and cases
	own := func(t *testing.T, template, what string) {
		if other, taken := owner[what]; taken {
			t.Errorf("%s is in the template %s as well", what, other)
		}
		owner[what] = template
	}
	for _, template := range all {
		t.Run(template.Name, func(t *testing.T) {
			looks(t, &template)
			p := compile(t, []byte(template.file))
			says := strings.Contains(template.text, notEnforced)
			if says != (len(p.Unenforced) > 0) {
				t.Errorf("says that it is not enforced: %v; is not: %v", says, p.Unenforced)
			}
			if says && !strings.HasPrefix(template.text, "  "+notEnforced) {
				t.Error("does not begin with it")
			}
			for _, r := range p.Program.Rules {
				own(t, template.Name, "rule "+r.Name)
				if n := len(r.Because); n == 0 && r.Name != "allowed-programs" && r.Name != "egress-list" || n > 300 {
					t.Errorf("rule %s has a reason of %d bytes", r.Name, n)
				}
			}
			if len(p.Program.Rules) != len(template.rules()) {
				t.Errorf("rules %q were found", template.rules())
			}
			cases := parse(t, []byte(embedded(template.Name+"/"+testFile)))
			if len(cases) != len(template.cases) {
				t.Errorf("%d cases were found of %d", len(template.cases), len(cases))
			}
			for i, c := range cases {
				own(t, template.Name, "case "+c.Name)
				if c.Path != PolicyFile || c.Name != template.cases[i].name {
					t.Errorf("case %s is about %q", c.Name, c.Path)
				}
			}
			if name := failing(p.Program, cases); name != "" {
				t.Errorf("case %s fails", name)
			}
		})
	}
}

// looks checks what read relies on, and how a template is written.
func looks(t *testing.T, template *Template) {
	t.Helper()
	if !strings.HasPrefix(template.file, "# "+template.Name+": "+template.Summary+"\nversion: 1\nworkspace: "+Workspace+"\npolicy: |\n") {
		t.Error("begins otherwise")
	}
	if n := strings.Count(template.file, Workspace); n != 1 {
		t.Errorf("names the workspace %d times", n)
	}
	if n := utf8.RuneCountInString(template.Summary); n == 0 || n > 100 || strings.HasSuffix(template.Summary, ".") {
		t.Errorf("the summary has %d characters: %s", n, template.Summary)
	}
	if !regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`).MatchString(template.Name) {
		t.Error("a name of other characters")
	}
	out, list := policy.Format(PolicyFile, []byte(template.file))
	if list.Errors() == 0 && string(out) != template.file {
		t.Errorf("is not in canonical form, which is:\n%s", out)
	}
}

// The documentation lists the templates with their summaries.
func TestDocumentation(t *testing.T) {
	text, err := os.ReadFile("../../docs/templates.md")
	if err != nil {
		t.Fatal(err)
	}
	all := All()
	for _, template := range all {
		name := "`" + template.Name + "`"
		if strings.Contains(template.text, notEnforced) {
			name += " \\*"
		}
		if row := "| " + name + " | " + template.Summary + " |\n"; !strings.Contains(string(text), row) {
			t.Errorf("this line is missing:\n%s", row)
		}
	}
	_, table, _ := strings.Cut(string(text), "\n## The templates\n")
	if n := len(regexp.MustCompile("(?m)^\\| `[a-z-]+`[ *\\\\]* \\|").FindAllString(table, -1)); n != len(all) {
		t.Errorf("%d templates are listed, and there are %d", n, len(all))
	}
}
