// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/containerd/ttrpc"

	"github.com/actplane/actplane/engine/api"
)

// asking is an engine with one request.
type asking struct {
	api.EngineService
	request  *api.Request
	answered *api.AnswerRequest
}

func (a *asking) Status(context.Context, *api.StatusRequest) (*api.StatusResponse, error) {
	return &api.StatusResponse{Version: "test", Tier: "lsm"}, nil
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

// newAsking serves one whose texts are what a hostile container would choose.
func newAsking(t *testing.T) (a *asking, dir string) {
	t.Helper()
	a = &asking{request: &api.Request{
		Id: "k3m9p", Scope: "0123", ScopeName: "web", State: "open", Rule: "push", Because: "Ask first.", ClausePos: "p.yaml:3:5",
		Operation: "exec", Object: []byte("/w/\x1b[2J\n  argv      ls"),
		Args: [][]byte{[]byte("git"), []byte("push\r\x1b]0;x\a"), []byte("a b"), []byte("\u202egpj"), []byte("--\""), nil}, ArgsCut: true,
		Uid: 1000, Pid: 7, Comm: []byte("sh\x00\x9b"), OpenedUnixMs: time.Now().UnixMilli(),
	}}
	dir = t.TempDir()
	listener, err := net.Listen("unix", filepath.Join(dir, "engine.sock"))
	if err != nil {
		t.Fatal(err)
	}
	server, err := ttrpc.NewServer()
	if err != nil {
		t.Fatal(err)
	}
	api.RegisterEngineService(server, a)
	go server.Serve(context.Background(), listener)
	t.Cleanup(func() { server.Close() })
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
  asked by  rule push (p.yaml:3:5)
  because   Ask first.
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

func TestAnswers(t *testing.T) {
	a, dir := newAsking(t)
	t.Setenv("SUDO_UID", "4242")
	for line, want := range map[string]*api.AnswerRequest{
		"approve k3m9p":                     {ForMs: 600_000},
		"approve k3m9p --once":              {Count: 1},
		"approve --for 2h k3m9p":            {ForMs: 7_200_000},
		"approve k3m9p --scope-lifetime":    {ScopeLifetime: true},
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
		"approve", "approve a b", "approve x --once --for 1m", "approve x --for 10", "approve x --for 0s", "deny x --for -1m", "deny x --for 1ms",
		"approve x --format xml", "requests a b", "requests --format xml", "deny", "approve x --because y",
	} {
		var out, errs strings.Builder
		if code := run(append([]string{"actplane"}, append(strings.Fields(line), "--run-dir", dir)...), nil, &out, &errs); code != exitUsage || errs.Len() == 0 {
			t.Errorf("%s: status %d, %q", line, code, &errs)
		}
	}
}
