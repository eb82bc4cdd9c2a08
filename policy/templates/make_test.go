// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/actplane/actplane/policy"
)

func find(t *testing.T, names ...string) []Template {
	t.Helper()
	list, err := Find(names)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestFind(t *testing.T) {
	if list := find(t, "tests-go", "no-push", "tests-go"); len(list) != 2 || list[0].Name != "tests-go" {
		t.Errorf("found %v", list)
	}
	for name, want := range map[string]string{
		"no-psuh":       `there is no template "no-psuh"; did you mean "no-push"?`,
		"":              `there is no template ""`,
		"../no-push":    `there is no template "../no-push"; did you mean "no-push"?`,
		"zzzzzzzzzzzzz": `there is no template "zzzzzzzzzzzzz"`,
	} {
		if _, err := Find([]string{name}); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", name, err, want)
		}
	}
}

// One template is written as it stands.
func TestMakeOne(t *testing.T) {
	for _, template := range All() {
		made, err := Make([]Template{template}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if string(made.Policy) != template.file || len(made.LeftOut) > 0 || made.Cases != len(template.cases) {
			t.Errorf("%s became %d cases, without %v:\n%s", template.Name, made.Cases, made.LeftOut, made.Policy)
		}
	}
}

// Any two templates make a policy in canonical form, without warnings, that the
// engine takes unless it cannot enforce one of them, and whose tests pass.
func TestMakeTwo(t *testing.T) {
	all := All()
	left := 0
	for i, a := range all {
		for _, b := range all[i+1:] {
			made, err := Make([]Template{b, a}, Options{})
			if err != nil {
				t.Fatalf("%s, %s: %v", b.Name, a.Name, err)
			}
			p := compile(t, made.Policy)
			says := strings.Contains(a.text+b.text, notEnforced)
			if says != (len(p.Unenforced) > 0) || len(p.Unenforced) != len(made.Unenforced) {
				t.Errorf("%s, %s: says that it is not enforced: %v; is not: %v", b.Name, a.Name, says, p.Unenforced.First())
			}
			if n := len(a.rules()) + len(b.rules()); made.Rules != n || len(p.Program.Rules) != n {
				t.Errorf("%s, %s: %d rules", b.Name, a.Name, made.Rules)
			}
			if out, list := policy.Format(PolicyFile, made.Policy); list.Errors() > 0 || string(out) != string(made.Policy) {
				t.Errorf("%s, %s: not in canonical form", b.Name, a.Name)
			}
			cases := parse(t, made.Tests)
			if name := failing(p.Program, cases); name != "" {
				t.Errorf("%s, %s: case %s fails", b.Name, a.Name, name)
			}
			joint := 0
			if made.Together != nil {
				joint = 1
			}
			if len(cases) != made.Cases || made.Cases+len(made.LeftOut) != len(a.cases)+len(b.cases)+joint {
				t.Errorf("%s, %s: %d cases and %d left out", b.Name, a.Name, len(cases), len(made.LeftOut))
			}
			left += len(made.LeftOut)
		}
	}
	t.Logf("%d cases were left out", left)
}

// A stricter rule of another template takes over: a case whose step it refuses as
// well names it, and one that it contradicts is left out.
func TestMakeContradicting(t *testing.T) {
	made, err := Make(find(t, "no-push", "no-destructive-git"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []LeftOut{{
		Template: "no-destructive-git", Case: "history-is-pushed",
		Step: "a exec /usr/bin/git push origin topic", Want: "ok", Got: "block no-push",
	}}
	if d := cmp.Diff(want, made.LeftOut); d != "" {
		t.Errorf("left out (-want +got):\n%s", d)
	}
	const line = "  a exec /usr/bin/git push --force origin main    block no-push\n"
	if !strings.Contains(string(made.Tests), line) {
		t.Errorf("the tests lack\n%s", line)
	}
}

// Of several templates that want tests all tests have to pass, and a case says when a
// commit is let through.
func TestMakeTogether(t *testing.T) {
	names := []string{"tests-pytest", "tests-npm", "tests-go"}
	made, err := Make(find(t, append(names, "secrets-unread")...), Options{Workspace: "/srv/w"})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(names, made.Together); d != "" {
		t.Errorf("together (-want +got)\n%s", d)
	}
	const name = "tests-pytest-and-tests-npm-and-tests-go-come-before-a-commit"
	_, text, ok := strings.Cut(string(made.Tests), "\n== "+name+"\n")
	if !ok || strings.Count(text, "git commit -m x") != 5 || strings.Count(text, " block ") != 4 {
		t.Errorf("the case is\n%s", text)
	}
	cases := parse(t, made.Tests)
	for _, rule := range names { // with one left out, its refusal is missed
		p := compile(t, made.Policy).Program
		p.Gates = nil
		for i := range p.Clauses {
			if p.Rules[p.Clauses[i].Rule].Name == rule {
				p.Clauses[i].Effect = 0
			}
			p.Clauses[i].Unless.Gates = nil
		}
		if failing(p, cases[len(cases)-1:]) == "" {
			t.Errorf("the case holds without %s", rule)
		}
	}
	for _, list := range [][]string{{"tests-pytest", "no-push"}, {"tests-pytest", "tests-npm", "review-only"}} {
		if made, err := Make(find(t, list...), Options{}); err != nil || made.Together != nil && list[2] != "review-only" {
			t.Errorf("%q: together %q, %v", list, made.Together, err)
		}
	}
}

// Limits are there once each.
func TestMakeLimits(t *testing.T) {
	made, err := Make(find(t, "cloud-metadata", "private-networks", "container-stays"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, limits, _ := strings.Cut(string(made.Policy), "\nlimits:\n")
	if n := strings.Count(limits, "\n"); n != 2 {
		t.Errorf("the limits have %d lines:\n%s", n, limits)
	}
	if l := compile(t, made.Policy).Program.Limits; !l.NoNewPrivileges || l.Capabilities == nil {
		t.Errorf("limits are %+v", l)
	}
}

func TestMakeElsewhere(t *testing.T) {
	for _, template := range All() {
		made, err := Make([]Template{template}, Options{Workspace: "/srv/jörg/x-1", Name: "my policy.yaml"})
		if err != nil {
			t.Fatal(err)
		}
		if p := compile(t, made.Policy); p.Program.Workspace != "/srv/jörg/x-1" {
			t.Errorf("%s: workspace %q", template.Name, p.Program.Workspace)
		}
		if strings.Contains(string(made.Tests), Workspace) || len(made.LeftOut) > 0 {
			t.Errorf("%s: without %v, with tests\n%s", template.Name, made.LeftOut, made.Tests)
		}
		if path := parse(t, made.Tests)[0].Path; path != "my policy.yaml" {
			t.Errorf("%s: the policy is %q", template.Name, path)
		}
	}
	// In /tmp a workspace is no more confined than its neighbours.
	made, err := Make(find(t, "workspace-only"), Options{Workspace: "/tmp/w"})
	if err != nil || len(made.LeftOut) != 1 || made.LeftOut[0].Step != "a write /tmp/w2/x" {
		t.Errorf("without %v: %v", made.LeftOut, err)
	}
}

func TestMakeRefuses(t *testing.T) {
	for _, o := range []Options{
		{Workspace: "w"}, {Workspace: "/"}, {Workspace: "/w/"}, {Workspace: "/w/../x"}, {Workspace: "/a b"},
		{Workspace: "/w#"}, {Workspace: "/w\nprotect: []"}, {Workspace: "/{a,b}"}, {Workspace: "/w*"}, {Workspace: "/w\x1b"},
		{Workspace: "/\u0085w"}, {Workspace: "/\u202ew"}, {Workspace: "/\xffw"},
		{Name: " x.yaml"}, {Name: "|"}, {Name: "a\nb"}, {Name: "x\t"}, {Name: "\xff.yaml"},
	} {
		if made, err := Make(find(t, "no-push"), o); err == nil {
			t.Errorf("%q: made\n%s%s", o, made.Policy, made.Tests)
		}
	}
	if _, err := Make(nil, Options{}); err == nil {
		t.Error("made a policy of nothing")
	}
}
