// SPDX-License-Identifier: Apache-2.0

// Package approvals_test runs the example as the engine would.
package approvals_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/engine/approver"
	"github.com/actplane/actplane/internal/testenv"
	"github.com/actplane/actplane/shim/prepare"
)

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
	chain, err := approver.New(config.Approvers[:1], logrus.NewEntry(log))
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
