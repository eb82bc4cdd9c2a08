// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"
)

// With --wide each clause is listed with what it really does on this host; what is
// inside of a policy cannot spoil the terminal.
func TestWidePs(t *testing.T) {
	started := time.Unix(1_700_000_000, 0)
	scopes := []scopeLine{{
		ID: strings.Repeat("0123456789abcdef", 4), Name: "agent", State: "enforcing", Feedback: "none", Started: &started, Rules: 1, Layers: []string{"p.yaml"},
		Degraded: []string{"one"}, Warnings: []string{"two", "three", "four", "five"},
		Clauses: []clauseLine{
			{"", "default block exec", "p.yaml:3:3", "block or kill"},
			{"no-push", "block connect \"\x1b[2J\"", "p.yaml:5:5", "block"},
		}, ClausesLeft: 7,
	}}
	var wide, plain strings.Builder
	if err := writeScopes(&wide, scopes, true, started.Add(90*time.Second)); err != nil {
		t.Fatal(err)
	}
	if err := writeScopes(&plain, scopes, false, started); err != nil {
		t.Fatal(err)
	}
	const want = `
ON THIS HOST   RULE     CLAUSE OF agent
block or kill  -        default block exec (p.yaml:3:3)
block          no-push  block connect "\x1b[2J" (p.yaml:5:5)
7 more                  
`
	if _, got, _ := strings.Cut(wide.String(), "five\n"); got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if head, _, _ := strings.Cut(wide.String(), "warning"); !strings.Contains(head, "FEEDBACK  POLICY\n") || !strings.Contains(head, "none      p.yaml\n") {
		t.Errorf("got %s", wide.String())
	}
	if strings.Contains(plain.String(), "ON THIS HOST") || strings.Contains(plain.String(), "FEEDBACK") || !strings.Contains(plain.String(), "2 more; \"actplane ps --wide\" shows them") {
		t.Errorf("got %s", plain.String())
	}
}

func TestStates(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	var out strings.Builder
	err := writeStates(&out, []stateLine{
		{ID: "c", Name: "agent", Saved: now.Add(-time.Hour), Expires: now.Add(23 * time.Hour), Files: 3, Gates: 1, Bytes: 900},
		{ID: "d", Saved: now, Expires: now.Add(24 * time.Hour), Lost: "its saved state is spoilt: \x1b"},
	}, false, now)
	const want = `CONTAINER  NAME   STOPPED     KEPT FOR  FILES  OPEN GATES  BYTES
c          agent  1h0m0s ago  23h0m0s   3      1           900
d                 0s ago      24h0m0s   0      0           0
warning: d: not all is known (its saved state is spoilt: \x1b): when it starts, files of which nothing is known count as modified and labelled
`
	if got := out.String(); err != nil || got != want {
		t.Errorf("got %q\nwant %q, %v", got, want, err)
	}
}
