// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/actplane/actplane/policy"
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/replay"
)

func compiled(t *testing.T, text string) *ir.Program {
	t.Helper()
	document := policy.Document{Name: "p.yaml", Text: []byte("policy: |\n  " + strings.ReplaceAll(text, "\n", "\n  "))}
	p, err := policy.Compile([]policy.Document{document}, policy.Options{Workspace: "/w"})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return p.Program
}

// outcome is an outcome on one line.
func outcome(o replay.Outcome) string {
	text := [...]string{"alike", "differs", "depends", "itself", "unclear"}[o.Kind]
	for _, a := range o.Answers {
		text += "; " + a.Decision.String()
		if len(a.When) > 0 {
			text += " if " + strings.Join(a.When, " and ")
		}
		for _, way := range a.Or {
			text += " or " + strings.Join(way, " and ")
		}
	}
	if o.Why != "" {
		text += ": " + o.Why
	}
	return text
}

func TestReplay(t *testing.T) {
	exec := func(clause, object string, args ...string) replay.Record {
		return replay.Record{Effect: "block", Operation: "exec", Object: object, Args: args, Rule: "old", Clause: clause}
	}
	file := func(operation, clause, object string, labels ...string) replay.Record {
		return replay.Record{Effect: "block", Operation: operation, Object: object, Rule: "old", Clause: clause, Labels: labels}
	}
	cut := exec(`block exec "git" "push"`, "/bin/git", "git", "push")
	cut.ArgsCut = true
	for _, c := range []struct {
		name, policy string
		record       replay.Record
		want         string
	}{
		{"the same", `rule r: block exec "git"`, exec(`block exec "git"`, "/bin/git", "git"), "alike; block r"},
		{"allowed", `rule r: block exec "git" "push"`, exec(`block exec "git"`, "/bin/git", "git"), "differs; ok"},
		{"stricter", `rule r: kill exec "git"`, exec(`block exec "git"`, "/bin/git", "git"), "differs; kill r"},
		{"a default", "default block exec\nrule r: allow exec \"git\"", exec("default block exec", "/bin/sh", "sh"), "alike; block"},
		{"an allow", "default block exec\nrule r: allow exec \"git\"", exec("default block exec", "/bin/git", "git"), "differs; ok"},
		{"the engine", `rule r: block exec any`, replay.Record{Effect: "block", Operation: "read", Object: "/proc/1/mem"}, "itself"},

		{"a label it has", "source A = file \"/a\"\nrule r: block write any if A", file("write", "block write any if A", "/w/x", "A"), "alike; block r"},
		{"one that it has not", "source A = file \"/a\"\nrule r: block write any if A", file("write", "block write any if not A", "/w/x"), "differs; ok"},
		{"one not recorded", "source A = file \"/a\"\nrule r: block write any if A", file("write", "block write any", "/w/x"),
			"depends; ok; block r if the process carries A"},
		{"one that it brings", "source A = file \"/a\"\nrule r: block read any if A", file("read", "block read any", "/a"), "alike; block r"},
		{"one that may be cleared", "source A = file \"/a\"\ndeclassify A by exec \"redact\"\nrule r: block read any if A", file("read", "block read any", "/a"),
			"depends; block r; ok if the process runs what `declassify A by exec \"redact\"` names"},
		{"a gate that did not hold", `rule r: block exec "git" unless after exec "make"`, exec(`block exec "git" unless after exec "make"`, "/bin/git", "git"), "alike; block r"},
		{"a gate not recorded", `rule r: block exec "git" unless after exec "make"`, exec(`block exec "git"`, "/bin/git", "git"),
			"depends; block r; ok if `after exec \"make\"` holds"},
		{"a gate of which more makes stale", `rule r: block exec "git" unless after exec "make" exits 0 since write "**/*.{py,toml}" or unlink "/w/x"`,
			exec(`block exec "git" unless after exec "make" since write "**/*.py" or unlink "x"`, "/bin/git", "git"), "alike; block r"},
		{"a gate of which less makes stale", `rule r: block exec "git" unless after exec "make" since write "**/*.py"`,
			exec(`block exec "git" unless after exec "make" since write "**/*.{py,toml}"`, "/bin/git", "git"),
			"depends; block r; ok if `after exec \"make\" since write \"**/*.py\"` holds"},
		{"a gate that fewer programs open", `rule r: block exec "git" unless after exec "/usr/bin/make" "-s" "test"`,
			exec(`block exec "git" unless after exec "make" "test"`, "/bin/git", "git"), "alike; block r"},
		{"a gate that more programs open", `rule r: block exec "git" unless after exec "make"`,
			exec(`block exec "git" unless after exec "make" "test"`, "/bin/git", "git"), "depends; block r; ok if `after exec \"make\"` holds"},
		{"another status", `rule r: block exec "git" unless after exec "make" exits 1`,
			exec(`block exec "git" unless after exec "make" exits 0`, "/bin/git", "git"), "depends; block r; ok if `after exec \"make\" exits 1` holds"},
		{"several gates", "rule r: block exec \"git\" unless after exec \"a\" or after exec \"b\" or after exec \"c\"", exec(`block exec "git"`, "/bin/git", "git"),
			"depends; block r; ok if `after exec \"a\"` holds or `after exec \"b\"` holds or `after exec \"c\"` holds"},
		{"gates of which one is within another", "rule r: block exec \"git\" unless after exec \"a\"\nrule s: notify exec \"git\" unless after exec \"{a,b}\"",
			exec(`block exec "git"`, "/bin/git", "git"),
			"depends; block r; ok if `after exec \"a\"` holds and `after exec \"{a,b}\"` holds"},
		{"a lineage of fewer programs", `rule r: block exec "git" unless lineage-includes exec "/bin/make"`,
			exec(`block exec "git" unless lineage-includes exec "make"`, "/bin/git", "git"), "alike; block r"},
		{"records that were lost", `rule r: block exec "git"`, replay.Record{Effect: "block", Operation: "exec", Rule: "old", Clause: `block exec "git"`, Unrecorded: true},
			"unclear: it stands for operations of which there are no records"},
		{"what is unlinked is written", `rule r: block write "x"`, file("unlink", `block unlink "x"`, "/w/x"), "alike; block r"},
		{"a lineage", `rule r: block exec "git" unless lineage-includes exec "make"`, exec(`block exec "git" unless lineage-includes exec "make"`, "/bin/git", "git"), "alike; block r"},
		{"what was written", "rule r:\n  block exec \"x\" unless target modified", exec(`block exec "x" unless target not modified`, "/bin/x", "x"), "differs; ok"},
		{"not known", "rule r:\n  block exec \"x\" unless target modified", exec(`block exec "x"`, "/bin/x", "x"),
			"depends; block r; ok if the file was written inside the container"},

		{"read, and opened", "rule r: block open \"/w/x\"", file("read", `block read "/w/x"`, "/w/x"),
			"depends; block r; ok if it was read through a descriptor that was open"},
		{"read either way", "rule r:\n  block open \"/w/x\"\n  block read \"/w/*\"", file("read", `block read "/w/x"`, "/w/x"), "alike; block r"},
		{"written, and opened", "default block open", file("write", `block write "/w/x"`, "/w/x"),
			"depends; block; ok if it was changed without being opened for it or its name went away"},
		{"written, and a name", "rule r: block unlink \"/w/x\"", file("write", `block write "/w/x"`, "/w/x"), "depends; ok; block r if its name went away"},
		{"written, and read", "source A = file \"/a\"\nrule r: block read any if A", file("write", `block write "/a"`, "/a"),
			"depends; ok; block r if it was opened for reading as well"},
		{"appended, and opened", "rule r: kill open any", file("append", `block append "/w/x"`, "/w/x"),
			"depends; kill r; ok if it was written through a descriptor that was open"},
		{"opened, and read", "rule r: block read \"/w/x\"", file("open", `block open "/w/x"`, "/w/x"),
			"depends; block r; ok if it was opened for writing or it was opened for appending or a directory was opened"},
		{"unlinked, and written", "rule r: block write \"/w/x\"", file("unlink", `block unlink "/w/x"`, "/w/x"), "alike; block r"},
		{"unlinked, and not opened", "rule r: block open \"/w/x\"", file("unlink", `block unlink "/w/x"`, "/w/x"), "differs; ok"},
		{"nothing", "rule r: block connect any", file("write", `block write "/w/x"`, "/w/x"), "differs; ok"},

		{"invoked by argv", `rule r: block exec "vi"`, exec(`block exec "vi"`, "/bin/busybox", "vi"), "alike; block r"},
		{"perhaps invoked", `rule r: block exec "vi"`, exec(`block exec any`, "/bin/busybox", "vi"), `depends; ok; block r if it was invoked by the name "vi"`},
		{"invoked by what the clause names", `rule r: block exec "vi"`, exec(`block exec "vi"`, "/bin/busybox", "sh"),
			`alike; block r`},
		{"invoked by a name that nothing tells", `rule r: block exec "v*"`, exec(`block exec "v*"`, "/bin/busybox", "sh"),
			"unclear: the program was run by another name, which is not recorded"},
		{"braces", `rule r: block exec "{vi,ed}"`, exec(`block exec "{vi,ed}"`, "/bin/busybox", "sh"),
			"unclear: the program was run by another name, which is not recorded"},
		{"mapped", `rule r: block exec "git" "push"`, exec(`block exec "git" "push"`, "/bin/git"),
			"depends; block r; ok if it was run, without arguments, and not mapped"},
		{"cut", `rule r: block exec "git" "-f"`, cut, "unclear: the record does not hold all arguments, and `block exec \"git\" \"-f\"` asks for some"},
		{"cut, and nothing asks", `rule r: block exec "git"`, cut, "alike; block r"},

		{"no path", `rule r: block write "/w/x"`, file("write", `block write "/z"`, "(a file without a path here)"), "alike; block r"},
		{"a directory that moved", `rule r: block write "/w/d/*.py"`, file("write", `block write "/w/d/*.py"`, "/w/d"),
			"unclear: a directory was to be moved, and it is not recorded where to"},
		{"relative", `rule r: block write "d/*.py"`, file("unlink", `block unlink "d/*.py"`, "/w/d"),
			"unclear: a directory was to be moved, and it is not recorded where to"},
		{"relative file", `rule r: block write "./d/*.py"`, file("write", `block write "./d/*.py"`, "/w/d/x.py"), "alike; block r"},
		{"no pattern", `rule r: block exec "g"`, exec(`block exec "["`, "/bin/g", "g"), "alike; block r"},
		{"protected", "rule r: block read \"/z\"", replay.Record{Effect: "block", Operation: "write", Object: "/w/x", Clause: "protect x"}, "differs; ok"},
		{"protected under another name", "rule r: block read \"/z\"", replay.Record{Effect: "block", Operation: "append", Object: "/w/y", Clause: "protect x"},
			"unclear: another name of the file is protected, or a directory was to be moved; the record does not tell"},
		{"protected elsewhere", "rule r: block read \"/z\"", replay.Record{Effect: "block", Operation: "write", Object: "/v/x", Clause: "protect x"},
			`unclear: "x" of its clause was below another directory than /w: --workspace names it`},
		{"protected now", "rule r: block write \"/w/x\"", replay.Record{Effect: "block", Operation: "write", Object: "/w/x", Clause: "protect x"}, "alike; block r"},
		{"a source", "rule r: block read \"/z\"", replay.Record{Effect: "block", Operation: "write", Object: "/w/d", Clause: `source A = file "d/x"`},
			"unclear: a directory was to be moved, and it is not recorded where to"},
		{"a long path", `rule r: block read any`, file("read", `block read any`, "/"+strings.Repeat("x", 4096)), "unclear: its object or arguments are longer than any that the engine records"},
		{"long arguments", `rule r: block exec any`, exec(`block exec any`, "/bin/x", strings.Repeat("x", 16<<10)), "unclear: its object or arguments are longer than any that the engine records"},
		{"a long clause", `rule r: block read any`, file("read", `block read "`+strings.Repeat("x", 16<<10)+`"`, "/x"), "alike; block r"},
		{"bytes", `rule r: block write "/w/x"`, file("write", `block write any`, "/w/\ufffd"), "unclear: a name has bytes that are no UTF-8, and the record does not hold them"},

		{"an address", `rule r: block connect "10.0.0.0/8"`, file("connect", "block connect any", "10.1.2.3:80"), "alike; block r"},
		{"another", `rule r: block connect "10.0.0.0/8"`, file("send", "block connect any", "[fd00::1]:80/udp"), "differs; ok"},
		{"a socket", `rule r: block connect "unix:/run/*"`, file("connect", "block connect any", "/run/x.sock"), "alike; block r"},
		{"an abstract one", `rule r: block connect "unix:@x*"`, file("bind", "block bind any", "@x1"), "differs; ok"},
		{"a host", `rule r: block connect any unless target "*.org"`, file("connect", "block connect any", "10.1.2.3:80"),
			"unclear: the policy names hosts (`block connect any unless target \"*.org\"`), and the record has an address"},
		{"a host elsewhere", `rule r: block connect any unless target "*.org"`, file("bind", "block bind any", "10.1.2.3:80"), "differs; ok"},
		{"no address", `rule r: block connect any`, file("connect", "block connect any", "(an unreadable address)"),
			`unclear: "(an unreadable address)" is no endpoint: write ADDRESS:PORT, [ADDRESS]:PORT, NAME:PORT or unix:PATH`},

		{"an operation", `rule r: block exec any`, file("fly", "x", "/w/x"), `unclear: nothing is known of the operation "fly"`},
		{"an effect", `rule r: block exec any`, replay.Record{Effect: "allow", Operation: "exec", Rule: "x"}, `unclear: nothing is known of the effect "allow"`},
		{"no clause of the language", `rule r: block exec any`, exec("block block ))) \x00", "/bin/x", "x"), "alike; block r"},
	} {
		if got := outcome(replay.Replay(compiled(t, c.policy), &c.record)); got != c.want {
			t.Errorf("%s\n  got  %s\n  want %s", c.name, got, c.want)
		}
	}
}

// What depends on much is not tried for ever.
func TestBound(t *testing.T) {
	text, labels := "", []string{}
	for i := range 11 {
		text += fmt.Sprintf("source L%d = file \"/%[1]d\"\n", i)
		labels = append(labels, fmt.Sprintf("L%d", i))
	}
	text += "rule r: block write any if " + strings.Join(labels, " and ")
	got := outcome(replay.Replay(compiled(t, text), &replay.Record{Effect: "block", Operation: "write", Object: "/x", Rule: "r", Clause: "block write any"}))
	if want := "unclear: it depends on more than 10 things that are not recorded"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// However many clauses there are for a record, and however long it is, it costs no more
// than a bound.
func TestWork(t *testing.T) {
	policy := func(rules, gates int, tokens string) *ir.Program {
		text := ""
		for i := range rules {
			text += fmt.Sprintf("\nrule r%d: block exec \"git\" %s unless after exec \"g%d\"", i, tokens, i%gates)
		}
		return compiled(t, text[1:])
	}
	record := &replay.Record{Effect: "block", Operation: "exec", Object: "/usr/bin/git", Rule: "x", Clause: `block exec "git"`}
	record.Args = append([]string{"git", "push", "-f"}, strings.Split(strings.Repeat("0k,", 600)+"k1", ",")...)
	for _, c := range []struct {
		rules, gates int
		want         string
	}{
		{20, 2, "depends; block r0; ok if `after exec \"g0\"` holds and `after exec \"g1\"` holds"},
		{20, 10, "depends"},
		{100, 10, "unclear: it depends on too much that is not recorded, in too many clauses"},
		{1000, 10, "unclear: the policy asks for so many arguments of programs that this record's are too many"},
	} {
		got := outcome(replay.Replay(policy(c.rules, c.gates, `"push" "-*" "0*k" "k*"`), record))
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%d rules, %d gates: %s", c.rules, c.gates, got)
		}
	}
}
