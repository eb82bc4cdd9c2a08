// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"

	"github.com/actplane/actplane/policy/ir"
)

func TestObject(t *testing.T) {
	for _, c := range []struct {
		kind ir.Kind
		text string
		want string
	}{
		{ir.File, "", "any file"},
		{ir.File, "/etc/passwd", "/etc/passwd"},
		{ir.File, `/w/a\*b`, "/w/a*b"},
		{ir.File, "/w/**", "/w and whatever is in it"},
		{ir.File, "/**", "any file in / or below it"},
		{ir.File, "/**/.env", "any file named .env in any directory"},
		{ir.File, "/**/*.py", "any file named *.py in any directory"},
		{ir.File, "/w/**/*.py", "any file named *.py in /w or below it"},
		{ir.File, "/w/*.md", "any file named *.md directly in /w"},
		{ir.File, "/w/*", "any file directly in /w"},
		{ir.File, "/*", "any file directly in /"},
		{ir.File, "/w/**/*", "any file in /w or below it"},
		{ir.File, "/a/*/b", "any file whose path matches /a/*/b"},
		{ir.File, "/a/**/b/**", "any file whose path matches /a/**/b/**"},
		{ir.File, "/src/**.py", "any file whose path matches /src/**.py"},
		{ir.File, "{/etc/passwd,/etc/shadow}", "/etc/passwd or /etc/shadow"},
		{ir.File, "/x{1,2,3}", "/x1, /x2 or /x3"},
		{ir.File, "{/w/**/*.c,/w/**/*.h,/a,/**/x}", "any file named *.c or *.h in /w or below it, /a or any file named x in any directory"},
		{ir.File, "{/a/**,/b/**}", "/a or /b and whatever is in it"},
		{ir.ExecProgram, "{/a/**,/b/**}", "any program in /a or /b or below it"},
		{ir.ExecProgram, "{sh,python*,pypy*}", "sh or any program named python* or pypy*"},
		{ir.ExecProgram, "", "any program"},
		{ir.ExecProgram, "git", "git"},
		{ir.ExecProgram, "git-*", "any program named git-*"},
		{ir.ExecProgram, "/usr/bin/git", "/usr/bin/git"},
		{ir.ExecProgram, "/opt/**", "any program in /opt or below it"},
		{ir.Endpoint, "", "any address or Unix socket"},
		{ir.Endpoint, "10.0.0.0/8", "any address in 10.0.0.0/8"},
		{ir.Endpoint, "*:443", "any address on port 443"},
		{ir.Endpoint, "@public:8000-8080", "any public address (@public) on ports 8000-8080"},
		{ir.Endpoint, "[fd00::1]:80", "fd00::1 on port 80"},
		{ir.Endpoint, "[fd00::/8]", "any address in fd00::/8"},
		{ir.Endpoint, "1.2.3.4", "1.2.3.4"},
		{ir.Endpoint, "*.example.com:443", "any host named *.example.com on port 443"},
		{ir.Endpoint, "unix:*", "any Unix socket"},
		{ir.Endpoint, "unix:@x", "the abstract Unix socket x"},
		{ir.Endpoint, "unix:/run/a.sock", "the Unix socket /run/a.sock"},
		{ir.Endpoint, "unix:/run/*.sock", "any Unix socket whose path matches /run/*.sock"},
	} {
		if got := object(ir.Pattern{Kind: c.kind, Any: c.text == "", Text: c.text}); got != c.want {
			t.Errorf("%s %q: got %q, want %q", c.kind, c.text, got, c.want)
		}
	}
}

func TestWho(t *testing.T) {
	p := &ir.Program{Labels: []ir.Label{{Name: "A"}, {Name: "B"}, {Name: "C"}}}
	for _, c := range []struct {
		terms []ir.Term
		want  string
	}{
		{nil, ""},
		{[]ir.Term{{}}, ""},
		{[]ir.Term{{All: 1}, {}}, ""},
		{[]ir.Term{{All: 1}}, "carries A"},
		{[]ir.Term{{All: 7}}, "carries A, B and C"},
		{[]ir.Term{{None: 2}}, "does not carry B"},
		{[]ir.Term{{None: 6}}, "carries none of B and C"},
		{[]ir.Term{{All: 1, None: 2}}, "carries A and not B"},
		{[]ir.Term{{All: 1, None: 6}, {All: 2}}, "carries A and none of B and C, or carries B"},
	} {
		if got := who(p, c.terms); got != c.want {
			t.Errorf("%v: got %q, want %q", c.terms, got, c.want)
		}
	}
}

func TestGateInWords(t *testing.T) {
	name := func(text string) ir.Pattern { return ir.Pattern{Kind: ir.ExecProgram, Text: text} }
	g := ir.Gate{After: ir.Event{Op: ir.Exec, Pattern: name("py*")}, Exit: 0, Since: []ir.Event{
		{Op: ir.Write, Pattern: ir.Pattern{Text: "/**/*.py"}}, {Op: ir.Unlink, Pattern: ir.Pattern{Text: "/x"}},
	}}
	const want = "a program named py* has been run and has ended with exit status 0, and since its start " +
		"no file named *.py in any directory has been changed and /x has not been removed or moved away"
	if got := gate(g); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	g.Exit, g.Since = -1, nil
	if got := gate(g); got != "a program named py* has been run" {
		t.Errorf("got %q", got)
	}
}

// TestHugePattern: of a pattern with many alternatives the text is as long as the
// pattern, whatever it expands to.
func TestHugePattern(t *testing.T) {
	text := "/{" + strings.Repeat("a,", 500) + "b}/{c,d,e}/{" + strings.Repeat("x,", 500) + "y}"
	if got := object(ir.Pattern{Text: text}); len(got) > 2*len(text) {
		t.Errorf("%d bytes for a pattern of %d", len(got), len(text))
	}
}

// What a host does to a clause is its mode there: a refused exec may be a kill, and all
// else is what it says.
func TestHost(t *testing.T) {
	p := &ir.Program{Rules: []ir.Rule{{Name: "r"}}, Clauses: []ir.Clause{
		{Op: ir.Exec, Effect: ir.Block, Pattern: ir.Pattern{Kind: ir.ExecProgram, Text: "git"}},
		{Op: ir.Exec, Effect: ir.Notify, Pattern: ir.Pattern{Kind: ir.ExecProgram, Text: "git"}},
		{Op: ir.Exec, Effect: ir.Kill, Pattern: ir.Pattern{Kind: ir.ExecProgram, Text: "git"}},
		{Op: ir.Write, Effect: ir.Block, Pattern: ir.Pattern{Text: "/a"}},
	}}
	for host, want := range map[Host][]string{
		{}:                 {"block", "notify", "kill", "block"},
		{KilledExec: true}: {"block or kill", "notify", "kill", "block"},
	} {
		for i, s := range Explain(p, nil, host).Rules[0].Clauses {
			noted := strings.Contains(strings.Join(s.Notes, "\n"), "may be killed")
			if s.Mode != want[i] || noted != strings.Contains(s.Mode, "or") {
				t.Errorf("%+v, clause %d: mode %q, notes %q; want %q", host, i, s.Mode, s.Notes, want[i])
			}
		}
	}
}
