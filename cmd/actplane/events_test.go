// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/feedback"
)

func TestDescribeEvent(t *testing.T) {
	event := &api.Event{
		Scope: strings.Repeat("a", 64), Sequence: 1, TimeUnixMs: 1_700_000_000_000,
		Effect: "block", Operation: "exec", Object: "/usr/bin/git\x1b[2J", Args: []string{"git", "push now", "\u202eabc", "\xff"},
		Rule: "no-push", Because: "ask\nfirst", ClausePos: "p.yaml:3:5", Pid: 7, Comm: "sh", Labels: []string{"AGENT"}, Lost: 2,
	}
	want := `2023-11-14 22:13:20  aaaaaaaaaaaa  blocked  exec "/usr/bin/git\x1b[2J" (git "push now" "\u202eabc" "\xff")` +
		` by sh[7] carrying AGENT; rule no-push (p.yaml:3:5): ask\x0afirst [2 earlier events were lost]`
	if got := describeEvent(event, time.UTC); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Of an answer the record tells who gave it, why, and what was warned of.
func TestDescribeAnswer(t *testing.T) {
	event := &api.Event{
		Scope: "c", Effect: "ask", Operation: "read", Object: "/x", Outcome: "denied", Request: "k3m9p", By: "approver rules", Rule: "r", ClausePos: "p.yaml:1:1",
		Reason: "No\x1b[2J.", Warnings: []string{"approver night: it is\nlate"}, Comm: "sh", Pid: 7,
	}
	want := `denied:  read /x by sh[7]; request k3m9p, answered by approver rules (No\x1b[2J.), warning of approver night: it is\x0alate; rule r (p.yaml:1:1)`
	if got := describeEvent(event, time.UTC); !strings.HasSuffix(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// What a program in a container is called must not look like a part of the line,
// nor reach the terminal as it is.
func TestHostileEvent(t *testing.T) {
	event := &api.Event{Effect: "block", Operation: "exec", Object: `/a\" by root[1]`, Args: []string{"a", `\x1b`}, Comm: `b\`}
	want := `exec "/a\\\" by root[1]" (a "\\x1b") by "b\\"[0]`
	if got := describeEvent(event, time.UTC); !strings.Contains(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	var out strings.Builder
	p := &eventPrinter{out: &out, json: true, seen: map[string]*api.Event{}}
	if err := p.print(&api.Event{Object: "\u009b2J\u202e\x7f\x1b"}); err != nil || !strings.Contains(out.String(), `"\u009b2J\u202e\u007f\u001b"`) {
		t.Errorf("%v\n%q", err, out.String())
	}
}

func TestPrintOnce(t *testing.T) {
	var out strings.Builder
	p := &eventPrinter{out: &out, json: true, seen: map[string]*api.Event{}}
	for _, event := range []*api.Event{
		{Scope: "a", Sequence: 1, TimeUnixMs: 10}, {Scope: "a", Sequence: 2, TimeUnixMs: 11},
		{Scope: "a", Sequence: 1, TimeUnixMs: 10}, {Scope: "a", Sequence: 2, TimeUnixMs: 11}, // a reconnection
		{Scope: "a", Sequence: 1, TimeUnixMs: 99}, // forgotten and started again
	} {
		if err := p.print(event); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(out.String(), "\n"); n != 3 {
		t.Errorf("printed %d lines:\n%s", n, out.String())
	}
}

func TestWriteScopes(t *testing.T) {
	started := time.Unix(1_700_000_000, 0)
	id := strings.Repeat("c", 64)
	scopes := []scopeLine{
		{ID: "run-1", Name: "evil\x1b", State: "enforcing", Feedback: "none", Started: &started, Layers: []string{"a", "b"}, Denied: 3,
			Degraded: []string{"not so well"}, Warnings: []string{"one\x1b", "two", "three"}},
		{ID: id, State: "staged", Feedback: "socket,stderr", Warnings: []string{"1", "2", "3", "4", "5"}},
	}
	table := func(id, pad, title, one, other string) string {
		return "SCOPE" + pad + "  NAME      STATE      AGE    PROCESSES  RULES  DENIED  NOTIFIED  LOST  WARNINGS  " + title + "POLICY\n" +
			"run-1" + pad + "  evil\\x1b  enforcing  1m30s  0          0      3       0         0     4         " + one + "a, b\n" +
			id + "            staged     -      0          0      0       0         0     5         " + other + "\n"
	}
	shared := "warning: run-1: not so well\nwarning: run-1: one\\x1b\nwarning: run-1: two\nwarning: run-1: three\n"
	for wide, want := range map[bool]string{
		false: table(id[:12], "       ", "", "", "") + shared + "warning: cccccccccccc: 1\nwarning: cccccccccccc: 2\nwarning: cccccccccccc: 3\n" +
			"warning: cccccccccccc: 2 more; \"actplane ps --wide\" shows them\n",
		true: table(id, strings.Repeat(" ", 59), "FEEDBACK       ", "none           ", "socket,stderr  ") + shared + strings.ReplaceAll("warning: ID: 1\nwarning: ID: 2\nwarning: ID: 3\nwarning: ID: 4\nwarning: ID: 5\n", "ID", id),
	} {
		var out strings.Builder
		if err := writeScopes(&out, scopes, wide, started.Add(90*time.Second)); err != nil || out.String() != want {
			t.Errorf("wide %v: %v\n%s\nwant\n%s", wide, err, out.String(), want)
		}
	}
}

// What events --json prints is documented, field by field, and so is what the socket in
// the container gives.
func TestFieldsAreDocumented(t *testing.T) {
	for file, value := range map[string]any{"operations.md": eventLine{}, "feedback.md": feedback.Entry{}} {
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", file))
		if err != nil {
			t.Fatal(err)
		}
		fields := reflect.VisibleFields(reflect.TypeOf(value))
		for _, part := range []any{feedback.Origin{}, feedback.Step{}} {
			if file == "feedback.md" {
				fields = append(fields, reflect.VisibleFields(reflect.TypeOf(part))...)
			}
		}
		for _, f := range fields {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if !strings.Contains(string(text), "`"+name+"`") {
				t.Errorf("docs/%s does not tell of the field %s", file, name)
			}
		}
	}
}
