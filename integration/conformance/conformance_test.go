// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/policy/ir"
)

// TestPack: the project's own cases make a plan; what is wrong with a file is said
// with its position.
func TestPack(t *testing.T) {
	var out bytes.Buffer
	err := pack([]string{
		"../../policy/testdata/conformance/cases.txt", "../../policy/testdata/conformance/dialect.txt", "../../policy/model/testdata/cases.txt",
	}, &out)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "plan")
	if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := readPlan(file)
	if err != nil || len(p.Cases) < 80 {
		t.Fatalf("%v", err)
	}
	expected, err := readExpected("expected")
	if err != nil {
		t.Fatal(err)
	}
	for i := range p.Cases {
		c := &p.Cases[i]
		no := impossible(c)
		if line := (&result{name: c.Name, no: no}).line(); no != "" && !contains(expected[c.Name], line) {
			t.Errorf("not in the list of what is expected: %s", line)
		}
	}
	for text, want := range map[string]string{
		"== x\ntrace:\n  a read /x ok\n":                                                             ":1: case x has no policy",
		"== x\npolicy:\n  rule r: block read \"/x\"\ntrace:\n  a read /x ok\n":                       "the case says ok, and the model block r",
		"== x\npolicy: none.yaml\ntrace:\n  a read /x ok\n":                                          "read policy",
		"== x\npolicy:\n  rule r: blok read \"/x\"\ntrace:\n  a read /x ok\n":                        "blok",
		"== x\npolicy:\n  rule r: block read \"/x\"\ntrace:\n  a fork b\n  a fork b\n  a read /x ok": "there is a process",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := pack([]string{file}, &out)
		if !errors.As(err, new(usageError)) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func contains(list []string, line string) bool {
	for _, l := range list {
		if l == line {
			return true
		}
	}
	return false
}

// TestJudge: a verdict is what became of the process and what the engine told of it;
// where the two do not go together it is none.
func TestJudge(t *testing.T) {
	program := &ir.Program{Rules: []ir.Rule{{Name: "one"}, {Name: "two"}}}
	event := func(effect, rule string) *api.Event { return &api.Event{Effect: effect, Rule: rule, Operation: "exec"} }
	eperm, dead := outcome{errno: unix.EPERM}, outcome{gone: true}
	for name, test := range map[string]struct {
		out      outcome
		events   []*api.Event
		degraded bool
		want     string
	}{
		"nothing":       {want: "ok"},
		"notice":        {events: []*api.Event{event("notify", "two"), event("notify", "one")}, want: "notify one"},
		"denial":        {out: eperm, events: []*api.Event{event("notify", "one"), event("block", "two")}, want: "block two"},
		"default too":   {events: []*api.Event{event("notify", ""), event("notify", "two")}, want: "notify two"},
		"without rule":  {out: eperm, events: []*api.Event{event("block", "")}, want: "block"},
		"kill":          {out: dead, events: []*api.Event{event("kill", "one")}, want: "kill one"},
		"second look":   {out: dead, events: []*api.Event{event("block", "one")}, degraded: true, want: "block one"},
		"killed":        {out: dead, events: []*api.Event{event("block", "one")}, want: "a killed process (recorded: block one)"},
		"died":          {out: dead, want: "a killed process (recorded: ok)"},
		"lives":         {out: eperm, events: []*api.Event{event("kill", "one")}, want: "a process that lives on (recorded: kill one)"},
		"silent":        {out: eperm, want: "EPERM (recorded: ok)"},
		"not stopped":   {events: []*api.Event{event("block", "one")}, want: "success (recorded: block one)"},
		"other errno":   {out: outcome{errno: syscall.ENOENT}, want: "ENOENT"},
		"other, denied": {out: outcome{errno: syscall.EROFS}, events: []*api.Event{event("block", "one")}, want: "EROFS (recorded: block one)"},
	} {
		if got := judge(test.out, test.events, program, test.degraded); got.String() != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
	if v := (verdict{"block", "one"}); !v.meets("block", "") || !v.meets("block", "one") || v.meets("block", "two") || v.meets("kill", "one") {
		t.Error("meets")
	}
}

// TestReport: what is other than expected fails, be it better or worse.
func TestReport(t *testing.T) {
	file := filepath.Join(t.TempDir(), "expected")
	if err := os.WriteFile(file, []byte("# known\nno a: why\n\nFAIL b: a read /x: expected ok, got ENOENT\nno c: x\nno gone: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	expected, err := readExpected(file)
	if err != nil {
		t.Fatal(err)
	}
	results := []result{
		{name: "a", no: "why"}, {name: "b", failed: "a read /x: expected ok, got ENOENT", place: "f:1"}, {name: "c"},
		{name: "d", no: "some\x1b"}, {name: "e", failed: "bad", place: "f:2"}, {name: "f"},
	}
	tell := func(r *report) (string, error) {
		var out bytes.Buffer
		r.out = &out
		for _, one := range results {
			r.tell(one)
		}
		err := r.end("here")
		return out.String(), err
	}
	text, err := tell(&report{expected: expected, scenario: true})
	want := `skip case a: not acted out: why
skip case b: the engine differs from the model: a read /x: expected ok, got ENOENT
not ok case c: it holds; take "no c: x" out of what is expected
not ok case d: no d: some  (f)
not ok case e: FAIL e: bad (f:2)
ok case f
not ok case gone: it is expected to fail or not to be acted out, and there is no such case
`
	want = strings.Replace(want, "some  (f)", "some  ()", 1)
	if text != want || !errors.Is(err, errFailed) {
		t.Errorf("%v\n%s", err, text)
	}
	text, err = tell(&report{})
	if !errors.Is(err, errFailed) || !strings.Contains(text, "\nFAIL b: f:1: a read /x: expected") || !strings.Contains(text, "\nok c\nno d: some \n") ||
		!strings.HasSuffix(text, "\n6 cases: 2 hold, 2 failed, 2 not acted out (here)\n") {
		t.Errorf("%v\n%s", err, text)
	}
	results = results[:1]
	if text, err := tell(&report{}); err != nil || !strings.HasPrefix(text, "no a: why\n1 cases: 0 hold") {
		t.Errorf("%v\n%s", err, text)
	}
	for _, line := range []string{"ok a", "no a", "skip a: x"} {
		if err := os.WriteFile(file, []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readExpected(file); err == nil {
			t.Errorf("%q is read", line)
		}
	}
}

// TestReachable: what the kernel does not find is not the policy's to decide.
func TestReachable(t *testing.T) {
	root := t.TempDir()
	for _, err := range []error{
		os.Mkdir(filepath.Join(root, "w"), 0o755), os.Symlink("/w", filepath.Join(root, "link")), os.Symlink("loop", filepath.Join(root, "loop")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	s := &stage{root: root}
	for text, want := range map[string]string{
		"a read /w/x": "", "a read /link/x": "", "a write /new": "", "a read /dev/pts/0": "", "a symlink no/where /w/x": "",
		"a read /none/x": "there is no directory /none any more", "a rename /w/x /none/x": "there is no directory /none any more",
		"a open /loop": "the kernel follows no such symbolic links", "a open /loop/x": "the kernel follows no such symbolic links",
	} {
		err := s.reachable(strings.Fields(text))
		if want == "" && err != nil || want != "" && (!errors.As(err, new(*unreachableError)) || err.Error() != want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
