// SPDX-License-Identifier: Apache-2.0

// Package approvals_test runs the example as the engine would.
package approvals_test

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/engine/approver"
	"github.com/actplane/actplane/engine/notify"
	"github.com/actplane/actplane/internal/approval"
	"github.com/actplane/actplane/internal/testenv"
	"github.com/actplane/actplane/shim/prepare"
)

// The receiver prints what is signed with its secret, and nothing else.
func TestReceiver(t *testing.T) {
	python := testenv.RequireProgram(t, "python3", "python3")
	dir := t.TempDir()
	secret, other := filepath.Join(dir, "secret"), filepath.Join(dir, "other")
	for path, text := range map[string]string{secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n", other: "012345678901234567890123\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	receiver := exec.Command(python, "receiver", secret)
	out, err := receiver.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := receiver.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = receiver.Process.Kill()
		_ = receiver.Wait()
	})
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("it does not start")
	}
	url := lines.Text()
	log := logrus.New()
	log.SetOutput(io.Discard)
	tell := func(file, id string) *notify.Notifier {
		t.Helper()
		notifications := []approval.Notification{{Target: approval.Target{Name: "receiver", URL: url}, SecretFile: file}}
		if err := approval.CheckAll(nil, notifications); err != nil {
			t.Fatal(err)
		}
		notifier, err := notify.New(notifications, nil, logrus.NewEntry(log))
		if err != nil {
			t.Fatal(err)
		}
		go notifier.Run(t.Context())
		r := (&api.Request{Id: id, ScopeName: "web", State: "open", Operation: "exec", Object: []byte("/usr/bin/git"), Rule: "push"}).Document()
		notifier.Tell(notify.Event{Kind: approval.EventRequest, Type: "request.opened", Request: &r})
		return notifier
	}
	forged := tell(other, "fffff")
	for end := time.Now().Add(20 * time.Second); len(forged.Problems()) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("what is signed with another secret is taken")
		}
	}
	tell(secret, "k3m9p")
	if !lines.Scan() || lines.Text() != "web: request k3m9p wants to exec /usr/bin/git, by rule push" {
		t.Errorf("it prints %q", lines.Text())
	}
}

func TestPushRules(t *testing.T) {
	testenv.RequireProgram(t, "python3", "python3")
	config, err := prepare.LoadConfig("config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rules := config.Approvers[0]
	program, err := filepath.Abs(filepath.Base(rules.Command[0]))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Fatal(err)
	}
	// The folder may be one that "nobody" cannot look into.
	rules.Command, rules.User, rules.Timeout = []string{program}, "", time.Minute
	config.Approvers[0] = rules
	log := logrus.New()
	log.SetOutput(io.Discard)
	chain, err := approver.New(config.Approvers[:1], nil, logrus.NewEntry(log))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		object string
		args   []string
		labels []string
		want   approver.Decision
		warns  bool
	}{
		{"/usr/bin/git", []string{"git", "push", "origin", "agent/fix"}, nil, approver.Grant, false},
		{"/usr/bin/git", []string{"git", "push", "origin", "agent/fix"}, []string{"SECRET"}, approver.Pass, true},
		{"/usr/bin/git", []string{"git", "push", "origin", "agent/fix:main"}, nil, approver.Pass, false},
		{"/usr/bin/git", []string{"git", "push", "origin", "main"}, nil, approver.Pass, false},
		{"/usr/bin/git", []string{"git", "push", "--force", "origin", "agent/fix"}, nil, approver.Deny, false},
		{"/usr/bin/git", []string{"git", "push", "origin", "+agent/fix"}, nil, approver.Deny, false},
		{"/usr/bin/git", []string{"git", "push", "--receive-pack=/tmp/x", "agent/fix"}, nil, approver.Pass, false},
		{"/usr/bin/git", []string{"git"}, nil, approver.Pass, false},
		{"/tmp/git", []string{"git", "push", "origin", "agent/fix"}, nil, approver.Pass, false},
		{"/usr/bin/git", []string{"git", "push", "origin", "agent/\xff"}, nil, approver.Pass, true},
	} {
		r := &api.Request{Id: "k3m9p", Rule: "push", Operation: "exec", Object: []byte(c.object), Labels: c.labels}
		for _, arg := range c.args {
			r.Args = append(r.Args, []byte(arg))
		}
		document := r.Document()
		got, err := chain.Ask(context.Background(), &document)
		if err != nil || got.Decision != c.want || (len(got.Warnings) > 0) != c.warns {
			t.Errorf("%s %q: %+v, %v; want %s", c.object, c.args, got, err, c.want)
		}
	}
}
