// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/feedback"
)

// Who answers is known also where the client does not say, or says another name than who
// had logged in.
func TestWhoAnswers(t *testing.T) {
	b := newAskBench(t)
	loginuid := fmt.Sprintf("proc/%d/loginuid", os.Getpid())
	for i, c := range []struct {
		login string
		by    *api.Operator
		want  string
	}{
		{"", nil, fmt.Sprintf("(uid %d) by api", os.Geteuid())},
		{"4294967295", nil, fmt.Sprintf("(uid %d) by api", os.Geteuid())},
		{"54321", nil, "uid 54321 by api"},
		{"54321", &api.Operator{Uid: 54321, Name: "ann", Via: "cli", Login: "root"}, "ann (uid 54321) by cli"},
		{"0", &api.Operator{Uid: 54321, Name: "ann", Via: "cli"}, "ann (uid 54321) by cli, logged in as root (uid 0)"},
		{"54322\n", &api.Operator{Uid: 54321, Via: "cli"}, "uid 54321 by cli, logged in as uid 54322"},
	} {
		if c.login != "" {
			b.write(loginuid, c.login)
		}
		client, connection, err := api.Dial(b.path("run/engine.sock"))
		if err != nil {
			t.Fatal(err)
		}
		b.ask(kernel.Opened, kernel.AskKey{uint64(i + 1)}, 200)
		id := b.last(feedback.Opened).Request
		r, err := client.Answer(context.Background(), &api.AnswerRequest{Id: id, Count: 1, By: c.by})
		if err != nil {
			t.Fatal(err)
		}
		if by := b.last(feedback.Grant).By; !strings.HasSuffix(by, c.want) || c.by != nil && by != c.want {
			t.Errorf("%+v: %q, want %q; %v", c, by, c.want, r.Answered.By)
		}
		connection.Close()
	}
}

// A container's process is nobody to ask, also where it listens at an approver's address.
func TestOutside(t *testing.T) {
	m := newMachine(t)
	e, client, _ := m.start()
	m.prepare(client, "c")
	m.container("c", 100)
	m.attach(client, "c", 100)
	for where, inside := range map[string]bool{"/c": true, "/c/below/it": true, "/cc": false, "/": false, "/system.slice/opa.service": false} {
		if err := e.outside(where); (err != nil) != inside {
			t.Errorf("%s: %v", where, err)
		}
	}
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	if err := e.Outside(near); err == nil {
		t.Error("where the other end is cannot be told, and it is taken")
	}
}
