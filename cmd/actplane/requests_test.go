// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/actplane/actplane/engine/api"
)

// asking is an engine with one request.
type asking struct {
	standing
	request  *api.Request
	answered *api.AnswerRequest
}

func (a *asking) Requests(_ context.Context, _ *api.RequestsRequest, stream api.Engine_RequestsServer) error {
	return stream.Send(a.request)
}

func (a *asking) Answer(_ context.Context, req *api.AnswerRequest) (*api.Request, error) {
	a.answered = req
	a.request.State = "granted"
	a.request.Answered = &api.Answered{Denied: req.Denied, Count: req.Count, ScopeLifetime: req.ScopeLifetime, Because: req.Because, By: req.By,
		UntilUnixMs: 1_700_000_600_000}
	return a.request, nil
}

func (a *asking) ListGrants(context.Context, *api.ListGrantsRequest) (*api.ListGrantsResponse, error) {
	counted, timed := proto.Clone(a.request).(*api.Request), proto.Clone(a.request).(*api.Request)
	counted.Answered = &api.Answered{Count: 3, By: &api.Operator{Uid: 1001, Name: "ann", Via: "cli"}}
	timed.Id, timed.Answered = "zzzzz", &api.Answered{Denied: true, By: &api.Operator{Name: "rules", Via: "approver"}}
	return &api.ListGrantsResponse{Grants: []*api.Grant{{Request: counted, Left: 2, Used: 1}, {Request: timed, LeftMs: 59_900, Used: 4}}}, nil
}

func (a *asking) Revoke(_ context.Context, req *api.RevokeRequest) (*api.Request, error) {
	a.request.State = "revoked"
	a.request.Answered = &api.Answered{Count: 1, Over: "revoked", OverBy: req.By, By: &api.Operator{Uid: 1}}
	return a.request, nil
}

// newAsking serves one whose texts are what a hostile container would choose.
func newAsking(t *testing.T) (a *asking, dir string) {
	t.Helper()
	a = &asking{request: &api.Request{
		Id: "k3m9p", Scope: "0123", ScopeName: "web", State: "open", Rule: "push", Because: "Ask first.", ClausePos: "p.yaml:3:5",
		Operation: "exec", Object: []byte("/w/\x1b[2J\n  argv      ls"),
		Args: [][]byte{[]byte("git"), []byte("push\r\x1b]0;x\a"), []byte("a b"), []byte("\u202egpj"), []byte("--\""), nil}, ArgsCut: true,
		Uid: 1000, Pid: 7, Comm: []byte("sh\x00\x9b"), OpenedUnixMs: time.Now().UnixMilli(),
		Cwd: []byte("/w\n"), Ancestors: []*api.Ancestor{{Pid: 6, Comm: []byte("node")}, {Pid: 5, Comm: []byte("\x1b[1m")}}, Image: "agent:1",
		Layer: "p.yaml", Warnings: []*api.Warning{{Approver: "rules", Text: "at night\x1b[2J"}},
	}}
	dir = serveEngine(t, a)
	return a, dir
}

// Nothing from inside a container reaches a terminal as it is, nor makes a line.
func TestRequestsAreShownSafely(t *testing.T) {
	_, dir := newAsking(t)
	var out, errs strings.Builder
	if code := run([]string{"actplane", "requests", "--run-dir", dir}, nil, &out, &errs); code != 0 {
		t.Fatalf("status %d: %s", code, &errs)
	}
	want := `k3m9p  web  open, asked 0s ago; was refused, and succeeds when it is tried again after an approval
  wants to  exec "/w/\x1b[2J\x0a  argv      ls"
  argv      git "push\x0d\x1b]0;x\x07" "a b" "\u202egpj" "--\"" "" … and more that is not shown here; it is granted with the rest
  who       "sh\x00\x9b"[7], uid 1000
  in        "/w\x0a"
  below     node[6] < "\x1b[1m"[5]
  image     agent:1
  asked by  rule push (p.yaml:3:5)
  because   Ask first.
  warning   approver rules: at night\x1b[2J
`
	if got := strings.ReplaceAll(out.String(), "asked 1s", "asked 0s"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	out.Reset()
	if code := run([]string{"actplane", "requests", "--run-dir", dir, "--format", "json"}, nil, &out, &errs); code != 0 {
		t.Fatalf("status %d: %s", code, &errs)
	}
	if text := out.String(); strings.Count(text, "\n") != 1 || strings.ContainsFunc(strings.TrimSpace(text), func(r rune) bool { return r < 0x20 || r > 0x7e }) {
		t.Errorf("JSON %q", text)
	}
}

func TestGrantsAreListedAndRevoked(t *testing.T) {
	_, dir := newAsking(t)
	t.Setenv("SUDO_UID", "4242")
	command := commands(t, dir)
	want := `REQUEST  SCOPE  ANSWER    LEFT                         USED  BY              OPERATION
k3m9p    web    approved  2 uses                       1     ann (uid 1001)  exec "/w/\x1b[2J\x0a  argv      ls" "push\x0d\x1b]0;x\x07" "a b" "\u202egpj" "--\"" "" …
zzzzz    web    denied    1m0s                         4     approver rules  exec "/w/\x1b[2J\x0a  argv      ls" "push\x0d\x1b]0;x\x07" "a b" "\u202egpj" "--\"" "" …
`
	if got := command("grants"); strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(want), " ") {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	lines := strings.Split(strings.TrimSpace(command("grants", "--format", "json")), "\n")
	var first grantLine
	if err := json.Unmarshal([]byte(lines[0]), &first); err != nil || len(lines) != 2 || first.Request.ID != "k3m9p" || *first.Left != 2 || first.Seconds != nil {
		t.Errorf("%v: %q", err, lines)
	}
	if got := command("revoke", "k3m9p"); !strings.Contains(got, "revoked by uid 4242") && !strings.Contains(got, "(uid 4242)") {
		t.Errorf("revoke prints\n%s", got)
	}
}

func TestAnswers(t *testing.T) {
	a, dir := newAsking(t)
	t.Setenv("SUDO_UID", "4242")
	for line, want := range map[string]*api.AnswerRequest{
		"approve k3m9p":                     {ForMs: 600_000},
		"approve k3m9p --once":              {Count: 1},
		"approve --for 2h k3m9p":            {ForMs: 7_200_000},
		"approve k3m9p --scope-lifetime":    {ScopeLifetime: true},
		"approve k3m9p --once --for 1m":     {Count: 1, ForMs: 60_000},
		"deny k3m9p":                        {Denied: true, ScopeLifetime: true},
		"deny k3m9p --for 1m --because why": {Denied: true, ForMs: 60_000, Because: "why"},
	} {
		var out, errs strings.Builder
		if code := run(append([]string{"actplane"}, append(strings.Fields(line), "--run-dir", dir)...), nil, &out, &errs); code != 0 {
			t.Errorf("%s: status %d: %s", line, code, &errs)
			continue
		}
		got := a.answered
		if got.Id != "k3m9p" || got.ForMs != want.ForMs || got.Count != want.Count || got.ScopeLifetime != want.ScopeLifetime ||
			got.Denied != want.Denied || got.Because != want.Because || got.By.Uid != 4242 || got.By.Via != "cli" {
			t.Errorf("%s: %v", line, got)
		}
		if !strings.Contains(out.String(), "answer    ") || !strings.Contains(out.String(), "uid 4242") {
			t.Errorf("%s prints\n%s", line, &out)
		}
	}
	for _, line := range []string{
		"approve", "approve a b", "approve x --once --scope-lifetime", "approve x --for 1m --scope-lifetime", "approve x --for 10", "approve x --for 0s", "deny x --for -1m", "deny x --for 1ms",
		"approve x --format xml", "requests a b", "requests --format xml", "grants a b", "grants --format xml", "revoke", "revoke a b", "deny", "approve x --because y",
		"lockdown", "lockdown a b", "lockdown a --all", "lockdown a --format xml", "unlock", "unlock a --all", "unlock a b", "unlock a --because x",
	} {
		var out, errs strings.Builder
		if code := run(append([]string{"actplane"}, append(strings.Fields(line), "--run-dir", dir)...), nil, &out, &errs); code != exitUsage || errs.Len() == 0 {
			t.Errorf("%s: status %d, %q", line, code, &errs)
		}
	}
}
