// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/actplane/actplane/engine/api"
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
	var out strings.Builder
	started := time.Unix(1_700_000_000, 0)
	err := writeScopes(&out, []scopeLine{
		{ID: "run-1", Name: "evil\x1b", State: "enforcing", Started: &started, Layers: []string{"a", "b"}, Denied: 3, Degraded: []string{"not so well"}},
		{ID: "c", State: "staged"},
	}, started.Add(90*time.Second))
	want := "SCOPE  NAME      STATE      AGE    PROCESSES  RULES  DENIED  NOTIFIED  LOST  POLICY\n" +
		"run-1  evil\\x1b  enforcing  1m30s  0          0      3       0         0     a, b\n" +
		"c                staged     -      0          0      0       0         0     \n" +
		"warning: run-1: not so well\n"
	if err != nil || out.String() != want {
		t.Errorf("%v\n%s", err, out.String())
	}
}
