// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/actplane/actplane/policy"
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/model"
)

func program(t *testing.T, c *model.Case) *ir.Program {
	t.Helper()
	p, err := policy.Compile([]policy.Document{{Name: c.Name, Text: c.Document(), Layer: policy.Container}}, policy.Options{Workspace: "/", DocumentFirst: true})
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
		"../testdata/conformance/cases.txt": 28, "../testdata/conformance/dialect.txt": 19, "testdata/cases.txt": 40,
		"testdata/found.txt": 13,
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
	const trace = head + "trace:\n"
	for text, want := range map[string]string{
		"":                                       "f:1: no case",
		"== \n":                                  "f:1: a case begins with",
		"== a b":                                 "f:1: a case begins with",
		head:                                     "f:1: case x has no trace",
		"== x\ntrace:\n  a exec /x ok\n":         "f:1: case x has no policy",
		head + "tracs:\n":                        "f:4: \"tracs\" is no part",
		head + "\x1b: x\n":                       "f:4: \"\\x1b\" is no part",
		head + "workspace: w\n":                  "f:4: a workspace is an absolute path",
		head + "workspace: /w: {}\n":             "f:4: a workspace is an absolute path",
		"== x\n  a exec /x ok\n":                 "f:2: this line belongs to nothing",
		"== x\nyaml:\n  version: 1\n" + head[5:]: "f:4: case x has a second policy",
		"== x\nyaml: p.yaml\n":                   "f:2: what belongs to yaml:",
		"policy:\n== x\n":                        "f:1: before the first case write policy: PATH",
		"workspace: /w\n== x\nyaml:\n  version: 1\nworkspace: /w\ntrace:\n  a read /x ok\n": "f:2: case x: the workspace belongs in the yaml",
		trace + "  a exec /x ok\n" + trace:                                                  "f:6: there is a case x already, at line 1",
		trace + "  a exec /x\n":                                                             "f:5: the step \"a exec /x\" has no verdict",
		trace + "  a exec /x \"ok\"\n":                                                      "f:5: the step \"a exec /x \\\"ok\\\"\" has no verdict",
		trace + "  a exec \"\" ok\n":                                                        "f:5: \"\" is no path",
		trace + "  a read x blocked\n":                                                      "f:5: \"blocked\" is no verdict: those are ok, notify, ask, block and kill; did you mean \"block\"?",
		trace + "  a read x allow\n":                                                        "did you mean \"ok\"?",
		trace + "  a exec git push allowed\n":                                               "did you mean \"ok\"?",
		trace + "  a read x denied r\n":                                                     "did you mean \"block\"?",
		trace + "  a read x blcok\n":                                                        "f:5: \"blcok\" is no verdict: those are ok, notify, ask, block and kill; did you mean \"block\"?",
		trace + "  a exec git push Kil r\n":                                                 "did you mean \"kill\"?",
		trace + "  a rename a notfy\n":                                                      "f:5: the step \"a rename a notfy\" has no verdict",
		trace + "  a exec git lock\n":                                                       "f:5: the step \"a exec git lock\" has no verdict",
		trace + "  a read x OK\n":                                                           "did you mean \"ok\"?",
		trace + "  git push block\n":                                                        "f:5: \"push\" is no operation of a trace; to run the program git, write `a exec git push`; if git is the process that runs push, write `git exec push`",
		trace + "  exec git push block\n":                                                   "f:5: \"git\" is no operation of a trace; a step of a test begins with its subject, such as `a exec git push`",
		trace + "  a wirte x ok\n":                                                          "did you mean \"write\"?",
		trace + "  a exec /x ok r\n":                                                        "f:5: \"r\": ok names no rule",
		trace + "  a exit 256\n":                                                            "f:5: \"256\" is no exit status",
		trace + "  a exit 1 block\n":                                                        "f:5: \"a exit 1\" is no operation that a policy decides",
		trace + "  a eat /x ok\n":                                                           "f:5: \"eat\" is no operation of a trace",
		trace + "  a read /x /y ok\n":                                                       "f:5: read takes 1 after it, and has 2",
		trace + "  a connect x ok\n":                                                        "f:5: \"x\" is no endpoint",
		trace + "  human\n":                                                                 "f:5: a step is",
		trace + "  human approve 1\n":                                                       "f:5: write `human approve`",
		trace + "  human deny because\n":                                                    "f:5: write `human approve`",
		trace + "  time -1s\n":                                                              "f:5: write `time 10m`",
		trace + "  scope ends\n":                                                            "f:5: write `scope restart`",
		trace + "  a fdopen f x /x ok\n":                                                    "f:5: \"x\" is no way to open a file",
		trace + "  a truncate /x y ok\n":                                                    "f:5: \"y\" is no number",
		trace + "  a read \"/x ok\n":                                                        "does not end",
		trace + "  a read \"/x\"ok\n":                                                       "f:5: a blank is missing after \"/x\"",
		trace + "  a read /\xff ok\n":                                                       "f:5: this line is not UTF-8",
	} {
		if _, err := model.ParseCases("f", text); err == nil || !strings.HasPrefix(err.Error(), "f:") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	_, err := model.ParseCases("f", strings.Repeat("== \n", 1000))
	if n := strings.Count(err.Error(), "\n"); n != 19 {
		t.Errorf("%d errors", n+1)
	}
}

// A mistake is one of its case; the others can be acted out. What stands before the
// first case is common to all.
func TestParseErrorsOfCases(t *testing.T) {
	const head = "policy:\n  rule r: block exec \"x\"\ntrace:\n"
	text := "== a\n" + head + "  a exec x block\n== b\n" + head + "  a exec x blocked\n== c d\n" + head + "== e\n== f\n" + head + "  a exec y ok\n"
	cases, err := model.ParseCases("f", text)
	if err == nil || strings.Count(err.Error(), "\n") != 2 || len(cases) != 5 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	for i, want := range []string{"", "f:10: ", "f:11: ", "f:15: case e has no policy", ""} {
		got := cases[i].Err
		if want == "" {
			if f := model.Run(program(t, &cases[i]), &cases[i]); got != nil || f != nil {
				t.Errorf("case %s: %v, %+v", cases[i].Name, got, f)
			}
		} else if got == nil || !strings.HasPrefix(got.Error(), want) {
			t.Errorf("case %s: %v, want %s", cases[i].Name, got, want)
		}
	}
	cases, err = model.ParseCases("f", strings.Repeat("== \n", 1000))
	for _, c := range cases {
		if c.Err == nil {
			t.Fatalf("the case at line %d is as if it had no mistake", c.Line)
		}
	}
	if err == nil || len(cases) != 1000 {
		t.Errorf("%d cases, %v", len(cases), err)
	}
	if cases, err = model.ParseCases("f", "workspace: w\n"+text); err == nil || cases != nil {
		t.Errorf("%d cases, %v", len(cases), err)
	}
}

// Relative paths are below the workspace of the policy, and programs in /usr/bin.
func TestRelativePaths(t *testing.T) {
	const text = "== a\npolicy:\n  rule r:\n    block write \"src/**\"\n    block exec \"/usr/bin/git\" \"push\"\nworkspace: /w\ntrace:\n" +
		"  a write src/x block r\n  a write ../src/x ok\n  a rename y src/y block r\n  a exec git push block r\n  a exec ./git push ok\n"
	cases, err := model.ParseCases("f", text)
	if err != nil {
		t.Fatal(err)
	}
	if f := model.Run(program(t, &cases[0]), &cases[0]); f != nil {
		t.Errorf("%+v", f)
	}
	if got := cases[0].Steps[0].Text; got != "a write src/x" {
		t.Errorf("%q", got)
	}
}

// A shell's command is no program that the shell's step runs.
func TestShellNote(t *testing.T) {
	const head = "== a\npolicy:\n  rule r: block exec \"git\" \"push\"\ntrace:\n"
	for step, noted := range map[string]bool{
		`a exec sh -c "git push"`: true, `a exec /bin/bash -lc "git push"`: true, `a exec sh x.sh`: false, `a exec git fetch -c x`: false, `a read sh`: false,
	} {
		cases, err := model.ParseCases("f", head+"  "+step+" block\n")
		if err != nil {
			t.Fatal(err)
		}
		f := model.Run(program(t, &cases[0]), &cases[0])
		if f == nil || strings.Contains(strings.Join(f.Notes, "\n"), "a step of its own") != noted {
			t.Errorf("%s: %+v", step, f)
		}
	}
}

// TestParseCases: quotes, comments, what is common to all cases; and lines that
// stay what they are.
func TestParseCases(t *testing.T) {
	const text = "\uFEFFpolicy: common.yaml\r\nworkspace: /common\n\nA comment: of one line.\n" +
		"== one\n# no policy of its own\ntrace:\n# a comment\n  a exec /bin/sh -c \"a  b\\n#\" \"ok\" ok # why\n\n  a exit 0\n  human deny\n" +
		"== two\npolicy: |\n    rule r:\n\n      block exec \"x\"\nworkspace: /w\ntrace:\n\ta exec /x block \"ok\"\n" +
		"== three\nworkspace: /v\npolicy:\n  rule r:\n#\n    block open \"f\"\ntrace:\n  a open /v/f block r\n" +
		"== four\nyaml:\n  version: 1\n\n  policy: |\n    rule r:\n      block open \"f\"\ntrace:\n  a open /f block r\n"
	cases, err := model.ParseCases("f", text)
	if err != nil {
		t.Fatal(err)
	}
	one, two := cases[0], cases[1]
	if one.Path != "common.yaml" || one.Workspace != "/common" || one.Document() != nil || len(one.Steps) != 3 {
		t.Errorf("%+v", one)
	}
	if s := one.Steps[0]; !slices.Equal(s.Words, []string{"a", "exec", "/bin/sh", "-c", "a  b\n#", "ok"}) || s.Line != 9 ||
		s.Text != `a exec /bin/sh -c "a  b\n#" "ok"` || s.Want() != "ok" {
		t.Errorf("%+v", s)
	}
	if s := two.Steps[0]; s.Want() != "block ok" {
		t.Errorf("%+v", s)
	}
	lines := strings.Split(text, "\n")
	for _, c := range cases[1:] {
		p, err := policy.Compile([]policy.Document{{Name: "f", Text: c.Document()}}, policy.Options{Workspace: "/"})
		if err != nil {
			t.Errorf("%s: %v\n%s", c.Name, err, c.Document())
			continue
		}
		_, place, _ := strings.Cut(p.Program.Clauses[0].Pos, ":")
		var line, col int
		if _, err := fmt.Sscanf(place, "%d:%d", &line, &col); err != nil {
			t.Fatal(err)
		}
		if got := lines[line-1][col-1:]; !strings.HasPrefix(got, "block ") {
			t.Errorf("%s: the clause is at %s: %q", c.Name, p.Program.Clauses[0].Pos, got)
		}
		if c.Workspace != "" && p.Program.Clauses[0].Pattern.Text != c.Workspace+"/f" && c.Name != "two" {
			t.Errorf("%s: %+v", c.Name, p.Program.Clauses[0])
		}
	}
}

// TestDocs runs the cases that the documentation shows.
func TestDocs(t *testing.T) {
	const file = "../../docs/policy-tests.md"
	const yaml = "version: 1\npolicy: |\n  source SECRET = file \"**/.env\"\n  rule secrets-stay:\n    block connect any if SECRET\n"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for i, block := range strings.Split(string(text), "```") {
		if i%2 == 0 || !strings.Contains(block, "\n== ") {
			continue
		}
		_, body, _ := strings.Cut(block, "\n")
		cases, err := model.ParseCases(file, body)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cases {
			n++
			p, err := policy.Compile([]policy.Document{{Name: c.Path, Text: []byte(yaml)}}, policy.Options{Workspace: c.Workspace})
			if err != nil {
				t.Fatal(err)
			}
			if f := model.Run(p.Program, &c); f != nil {
				t.Errorf("%s: %s: %+v", file, c.Name, f)
			}
		}
	}
	if n != 2 {
		t.Errorf("%s: %d cases", file, n)
	}
}
