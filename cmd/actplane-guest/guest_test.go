// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/actplane/actplane/feedback"
	"github.com/actplane/actplane/internal/testenv"
)

type scope struct {
	*feedback.Log
	status feedback.Status
	policy []feedback.PolicyDocument
	narrow func(feedback.NarrowRequest) (feedback.Narrowed, error)
}

func (s *scope) Check(_ context.Context, _ feedback.Process, request feedback.CheckRequest) (feedback.Checked, error) {
	item := feedback.Item{Effect: feedback.Allow, Operation: request.Operation, Object: request.Object, Args: append([]string{"x"}, request.Args...)}
	if request.Operation == "write" {
		item.Effect, item.Rule, item.Because = feedback.Block, "no-write", "Not here."
	}
	return feedback.NewChecked(request, item), nil
}

func (s *scope) Narrow(_ context.Context, _ feedback.Process, request feedback.NarrowRequest) (feedback.Narrowed, error) {
	return s.narrow(request)
}

func (s *scope) Status() feedback.Status           { return s.status }
func (s *scope) Policy() []feedback.PolicyDocument { return s.policy }
func (s *scope) Peer(int) (feedback.Process, bool) {
	return feedback.Process{ID: 3, Ancestors: []uint64{2, 1}}, true
}

func newScope() *scope {
	return &scope{
		Log: feedback.NewLog(feedback.LogSize, 0),
		status: feedback.Status{
			ID: "c0ffee", Enforcing: true, Tier: "lsm", Mode: "enforce", Since: time.Date(2026, 11, 30, 2, 0, 0, 0, time.UTC),
			Layers: []feedback.PolicyLayer{{Name: "/etc/actplane/policy.d/floor.yaml", SHA256: "00ff"}}, Denied: 3, Notified: 1,
		},
		policy: []feedback.PolicyDocument{{PolicyLayer: feedback.PolicyLayer{Name: "a.yaml", SHA256: "00ff"}, Text: "version: 1\n"}},
	}
}

// start serves the scope until the test ends, or stop is called.
func start(t *testing.T, s *scope, path string) (stop func()) {
	t.Helper()
	listener := testenv.ListenUnix(t, path)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- feedback.NewServer(s, feedback.Options{}).Serve(ctx, listener) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func push(sequenceArg string) feedback.Item {
	return feedback.Item{
		Time: time.Now(), Effect: feedback.Block, Operation: "exec", Object: "/usr/bin/git",
		Args: []string{"git", "push", sequenceArg}, Rule: "no-push", Because: "No.",
		Process: feedback.Process{ID: 3, Ancestors: []uint64{2, 1}},
	}
}

// run runs the program in a proc without parents, and returns what it printed.
func run(t *testing.T, socket, in string, args ...string) (code int, out, errOut string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	g := guest{in: strings.NewReader(in), out: &stdout, err: &stderr, socket: socket, proc: t.TempDir(), pid: 1, retry: time.Millisecond}
	code = g.run(args)
	return code, stdout.String(), stderr.String()
}

func socketPath(t *testing.T) string { return filepath.Join(t.TempDir(), "feedback.sock") }

func TestFeedback(t *testing.T) {
	s, path := newScope(), socketPath(t)
	start(t, s, path)
	if code, out, _ := run(t, path, "", "feedback"); code != 0 || out != "ActPlane has blocked and noted nothing in this process tree.\n" {
		t.Errorf("%d %q", code, out)
	}
	if code, out, _ := run(t, path, "", "feedback", "--all"); code != 0 || out != "ActPlane has blocked and noted nothing in this container.\n" {
		t.Errorf("%d %q", code, out)
	}
	// Docker's exec starts a tree of its own.
	for i := range 150 {
		other := push("z")
		other.Process = feedback.Process{ID: uint64(100 + i), Ancestors: []uint64{8}}
		s.Append(other)
	}
	if code, out, _ := run(t, path, "", "feedback"); code != 0 || out != "ActPlane has blocked and noted nothing in this process tree.\n"+
		"(150 more of other processes in this container; `actplane-guest feedback --all` prints them)\n" {
		t.Errorf("%d %q", code, out)
	}
	for range 150 {
		s.Append(push("a"))
	}
	lossy := push("b")
	lossy.Lost = 5
	s.Append(lossy)
	other := push("c")
	other.Process = feedback.Process{ID: 9, Ancestors: []uint64{8}}
	s.Append(other)
	_, out, _ := run(t, path, "", "feedback")
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	want := []string{
		`  ActPlane policy: exec "/usr/bin/git" ["push" "a"] was blocked before it ran, by rule "no-push": No.`,
		`  (and 149 more like it)`,
		`(the records of 5 events before the next one are lost)`,
		`  ActPlane policy: exec "/usr/bin/git" ["push" "b"] was blocked before it ran, by rule "no-push": No.`,
		"(151 more of other processes in this container; `actplane-guest feedback --all` prints them)",
	}
	if len(lines) != len(want) {
		t.Fatalf("got %s", out)
	}
	for i := range want {
		if !strings.HasSuffix(lines[i], want[i]) {
			t.Errorf("got  %s\nwant %s", lines[i], want[i])
		}
	}
	if _, out, _ := run(t, path, "", "feedback", "--all"); !strings.Contains(out, `"c"`) {
		t.Errorf("got %s", out)
	}
	if _, out, _ := run(t, path, "", "feedback", "--json"); strings.Count(out, "\n") != 151 || !strings.HasPrefix(out, `{"sequence":151,`) {
		t.Errorf("%d lines: %.200s", strings.Count(out, "\n"), out)
	}
}

func TestStatus(t *testing.T) {
	s, path := newScope(), socketPath(t)
	s.status.Degraded = []string{"clause 7:3 is not enforced\x1b[2J"}
	s.status.Warnings = []string{"p.yaml:3:5: careful\x1b"}
	stop := start(t, s, path)
	code, out, _ := run(t, path, "", "status")
	const want = "ActPlane enforces a policy here (mode enforce, tier lsm), since 2026-11-30T02:00:00Z.\n" +
		"scope    c0ffee\n" +
		"policy   /etc/actplane/policy.d/floor.yaml  sha256 00ff\n" +
		"so far   3 denied, 1 allowed and noted, 0 records lost\n" +
		"degraded clause 7:3 is not enforced\\x1b[2J\n" +
		"warning  p.yaml:3:5: careful\\x1b\n"
	if code != 0 || out != want {
		t.Errorf("%d\ngot  %s\nwant %s", code, out, want)
	}
	if code, out, _ := run(t, path, "", "status", "--json"); code != 0 || !strings.HasPrefix(out, `{"id":"c0ffee","enforcing":true,`) {
		t.Errorf("%d %s", code, out)
	}
	stop()
	s.status.Enforcing = false
	start(t, s, path)
	if code, out, _ := run(t, path, "", "status"); code != exitNotEnforcing || !strings.Contains(out, "does NOT enforce") {
		t.Errorf("%d %s", code, out)
	}
}

func TestPolicy(t *testing.T) {
	s, path := newScope(), socketPath(t)
	s.policy = append(s.policy, feedback.PolicyDocument{Text: "\tb\x1b[2J\n"})
	start(t, s, path)
	if code, out, _ := run(t, path, "", "policy"); code != 0 || out != "# a.yaml (sha256 00ff)\nversion: 1\n\n\n#  (sha256 )\n\tb\\x1b[2J\n\n" {
		t.Errorf("%d %q", code, out)
	}
	if code, out, _ := run(t, path, "", "policy", "--json"); code != 0 || !strings.HasPrefix(out, `{"documents":[{"name":"a.yaml"`) {
		t.Errorf("%d %s", code, out)
	}
}

func TestNoScope(t *testing.T) {
	path := socketPath(t)
	for _, command := range []string{"feedback", "status", "policy"} {
		code, out, errOut := run(t, path, "", command)
		if want := "actplane-guest: not in an ActPlane scope, or in one without feedback (no " + path + ")\n"; code != exitEnvironment || out != "" || errOut != want {
			t.Errorf("%s: %d %q %q", command, code, out, errOut)
		}
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{}, {"nope"}, {"feedback", "--nope"}, {"status", "extra"}} {
		if code, out, errOut := run(t, "/nonexistent", "", args...); code != exitUsage || out != "" || !strings.Contains(errOut, "usage:") {
			t.Errorf("%q: %d %q %q", args, code, out, errOut)
		}
	}
	for _, args := range [][]string{{"help"}, {"--help"}, {"feedback", "--help"}} {
		if code, out, _ := run(t, "/nonexistent", "", args...); code != 0 || !strings.Contains(out, "usage:") {
			t.Errorf("%q: %d %q", args, code, out)
		}
	}
}

const toolEvent = `{"session_id":"s","hook_event_name":"PostToolUse","tool_use_id":"t"}`

func TestHook(t *testing.T) {
	s, path := newScope(), socketPath(t)
	start(t, s, path)
	s.Append(push("a"))
	code, out, errOut := run(t, path, toolEvent, "hook", "--agent", "claude")
	if code != 0 || errOut != "" || !strings.HasPrefix(out, `{"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"ActPlane policy: exec`) {
		t.Errorf("%d %q %q", code, out, errOut)
	}
	if code, out, errOut := run(t, path, toolEvent, "hook", "--agent", "claude"); code != 0 || out != "" || errOut != "" {
		t.Errorf("again: %d %q %q", code, out, errOut)
	}
}

func TestHookNeverFails(t *testing.T) {
	s, path := newScope(), socketPath(t)
	start(t, s, path)
	s.Append(push("a"))
	tests := []struct {
		socket, in string
		args       []string
		says       string
	}{
		{"/nonexistent/s", toolEvent, []string{"--agent", "claude"}, ""},
		{path, "garbage", []string{"--agent", "claude"}, "read hook event"},
		{path, toolEvent, []string{"--agent", "nope"}, "--agent is one of: auto, claude, cline,"},
		{path, toolEvent, nil, "--agent is one of: auto, claude, cline,"},
		{path, toolEvent, []string{"--nope"}, "--agent is one of: auto, claude, cline,"},
		{path, `{"x":1}`, []string{"--agent", "auto"}, "no known agent"},
		{path, toolEvent, []string{"--help"}, "--agent is one of: auto, claude, cline,"},
	}
	for _, test := range tests {
		code, out, errOut := run(t, test.socket, test.in, append([]string{"hook"}, test.args...)...)
		if code != 0 || out != "" || !strings.Contains(errOut, test.says) || (test.says == "") != (errOut == "") {
			t.Errorf("%q: %d %q %q", test.args, code, out, errOut)
		}
	}
}

// An agent that never ends its input, and an engine that never answers.
func TestHookHasADeadline(t *testing.T) {
	in, writer := io.Pipe()
	defer writer.Close()
	var out, errOut bytes.Buffer
	g := guest{in: in, out: &out, err: &errOut, socket: "/nonexistent/s", proc: t.TempDir(), pid: 1}
	start := time.Now()
	if code := g.run([]string{"hook", "--agent", "claude"}); code != 0 || time.Since(start) > 2*time.Second {
		t.Errorf("%d after %s", code, time.Since(start))
	}
}

// Following goes on when the engine is back.
func TestFollow(t *testing.T) {
	s, path := newScope(), socketPath(t)
	stop := start(t, s, path)
	s.Append(push("first"))
	lines := make(chan string)
	closed := make(chan struct{})
	g := guest{out: stopWriter{lines, closed}, err: io.Discard, socket: path, proc: t.TempDir(), pid: 1, retry: time.Millisecond}
	ended := make(chan int)
	go func() { ended <- g.run([]string{"feedback", "--follow"}) }()
	expect := func(what string) {
		t.Helper()
		select {
		case line := <-lines:
			if !strings.Contains(line, what) {
				t.Fatalf("got %q, want %q", line, what)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("no %q", what)
		}
	}
	expect(`"first"`)
	s.Append(push("second"))
	expect(`"second"`)
	stop()
	start(t, s, path)
	s.Append(push("third"))
	expect(`"third"`)
	close(closed)
	s.Append(push("fourth"))
	if code := <-ended; code != exitEnvironment {
		t.Errorf("exit code %d", code)
	}
}

// stopWriter hands what is written to a reader that can go away.
type stopWriter struct {
	lines  chan string
	closed chan struct{}
}

func (s stopWriter) Write(text []byte) (int, error) {
	select {
	case <-s.closed:
		return 0, io.ErrClosedPipe
	case s.lines <- string(text):
		return len(text), nil
	}
}
