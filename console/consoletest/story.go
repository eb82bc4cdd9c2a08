// SPDX-License-Identifier: Apache-2.0

package consoletest

import (
	"strings"
	"time"

	"github.com/actplane/actplane/engine/api"
)

// Now is when stories are told.
var Now = time.Date(2026, 11, 30, 18, 20, 30, 0, time.UTC)

// Tell fills an engine with what two containers did, at a fixed time.
func (e *Engine) Tell() { e.TellAt(Now) }

// TellAt is Tell for another time.
func (e *Engine) TellAt(now time.Time) {
	at := func(ago time.Duration) int64 { return now.Add(-ago).UnixMilli() }
	web, docs := strings.Repeat("4f1c09aa", 8), strings.Repeat("b20d7e31", 8)
	e.SetScopes(
		&api.Scope{Id: web, Cgroup: "/system.slice/docker-" + web + ".scope", Name: "web-agent", State: "enforcing", Mode: "enforce", StartedUnixMs: at(42 * time.Minute), Layers: []string{"/etc/actplane/policy.d/floor.yaml", "actplane.yaml"},
			Rules: 5, Denied: 14, Notified: 3, Processes: 11, Warnings: []string{"the container has NET_RAW, with which it can send what it likes to the addresses that a rule sees"}},
		&api.Scope{Id: docs, Cgroup: "/system.slice/docker-" + docs + ".scope", Name: "docs-bot", State: "enforcing", Mode: "enforce", StartedUnixMs: at(9 * time.Minute), Layers: []string{"actplane.yaml"}, Rules: 2, Denied: 1, Processes: 4},
	)
	e.Happen(
		&api.Event{Scope: web, ScopeName: "web-agent", Sequence: 1, TimeUnixMs: at(31 * time.Minute), Effect: "notify", Operation: "write", Object: "/workspace/package-lock.json",
			Rule: "lockfiles", Because: "Lock files change with their manifest.", Clause: `notify write "**/package-lock.json"`, ClausePos: "actplane.yaml:21:5", Pid: 4620, Comm: "npm"},
		&api.Event{Scope: web, ScopeName: "web-agent", Sequence: 2, TimeUnixMs: at(24 * time.Minute), Effect: "block", Operation: "exec", Object: "/usr/bin/git", Args: []string{"git", "commit", "-qam", "Greet everyone"},
			Rule: "test-first", Because: "Commit only what was tested. Run `make test`: it has to pass after the last change of a .py file.",
			Clause: `block exec "git" "commit" unless after exec "make" "test" exits 0 since write "**/*.py"`, ClausePos: "actplane.yaml:11:5", Pid: 4655, Comm: "bash"},
	)
	for i := range 12 {
		e.Happen(&api.Event{Scope: web, ScopeName: "web-agent", Sequence: uint64(3 + i), TimeUnixMs: at(9*time.Minute - time.Duration(i)*7*time.Second), Effect: "block", Operation: "connect", Object: "203.0.113.9:443",
			Rule: "secrets-stay", Because: "This process has read .env, and what is in there stays here. Use the network in a process that has not read it.",
			Clause: "block connect any if SECRET", ClausePos: "actplane.yaml:16:5", Pid: int64(4702 + i), Comm: "python3", Labels: []string{"SECRET"}, Also: []string{"no-new-hosts"}})
	}
	e.Happen(
		&api.Event{Scope: docs, ScopeName: "docs-bot", Sequence: 1, TimeUnixMs: at(5 * time.Minute), Effect: "kill", Operation: "write", Object: "/workspace/CNAME",
			Rule: "domain", Because: "The site's domain is not the bot's to change.", Clause: `kill write "CNAME"`, ClausePos: "actplane.yaml:7:5", Pid: 5101, Comm: "sed"},
		&api.Event{Scope: web, ScopeName: "web-agent", Sequence: 15, TimeUnixMs: at(3 * time.Minute), Effect: "ask", Outcome: "held", Request: "k3m9p", Operation: "exec", Object: "/usr/bin/git", Args: []string{"git", "push", "origin", "main"},
			Rule: "push", Because: "A person approves each push.", Clause: `ask hold 5m exec "git" "push"`, ClausePos: "actplane.yaml:5:5", Pid: 4711, Comm: "bash"},
		&api.Event{Scope: docs, ScopeName: "docs-bot", Sequence: 2, TimeUnixMs: at(50 * time.Second), Effect: "ask", Outcome: "opened", Request: "b7q2x", Operation: "write", Object: "/workspace/deploy/site.yaml",
			Rule: "deploy", Because: "What is deployed is looked at first.", Clause: `ask write "deploy/**"`, ClausePos: "actplane.yaml:4:5", Pid: 5133, Comm: "node"},
	)
	for i := range 12 {
		pid := int64(4702 + i)
		e.Explain(web, uint64(3+i), &api.ProvenanceResponse{
			Event: e.events[2+i],
			Nodes: []*api.Node{
				{Id: "event", Kind: "event", Name: "203.0.113.9:443"}, {Id: "file:1", Kind: "file", Name: "/workspace/.env", Source: true}, {Id: "process:1", Kind: "process", Name: "bash", Pid: 4690},
				{Id: "file:2", Kind: "file", Name: "/tmp/report.json"}, {Id: "process:2", Kind: "process", Name: "python3", Pid: pid},
			},
			Edges: []*api.Edge{
				{From: "file:1", To: "process:1", Label: "SECRET", Way: "read", TimeUnixMs: at(11 * time.Minute)}, {From: "process:1", To: "file:2", Label: "SECRET", Way: "wrote", TimeUnixMs: at(10 * time.Minute)},
				{From: "file:2", To: "process:2", Label: "SECRET", Way: "read", TimeUnixMs: at(9*time.Minute + 2*time.Second)}, {From: "process:2", To: "event", Label: "SECRET"},
			},
		})
	}
	e.Ask(
		&api.Request{Id: "k3m9p", Scope: web, ScopeName: "web-agent", State: "open", Rule: "push", Because: "A person approves each push.", Clause: `ask hold 5m exec "git" "push"`, ClausePos: "actplane.yaml:5:5",
			Operation: "exec", Object: []byte("/usr/bin/git"), Args: [][]byte{[]byte("git"), []byte("push"), []byte("origin"), []byte("main")}, Uid: 100000, Pid: 4711, Comm: []byte("bash"), Held: true, Cwd: []byte("/workspace"),
			Ancestors: []*api.Ancestor{{Pid: 4410, Comm: []byte("node")}, {Pid: 4388, Comm: []byte("claude")}}, Warnings: []*api.Warning{{Approver: "ci", Text: "The pipeline of this commit has not ended yet."}},
			OpenedUnixMs: at(3 * time.Minute), UntilUnixMs: at(-2 * time.Minute)},
		&api.Request{Id: "b7q2x", Scope: docs, ScopeName: "docs-bot", State: "open", Rule: "deploy", Because: "What is deployed is looked at first.", Clause: `ask write "deploy/**"`, ClausePos: "actplane.yaml:4:5",
			Operation: "write", Object: []byte("/workspace/deploy/site.yaml"), Uid: 100000, Pid: 5133, Comm: []byte("node"), Labels: []string{"TICKET"}, OpenedUnixMs: at(50 * time.Second)},
		&api.Request{Id: "t4d8c", Scope: web, ScopeName: "web-agent", State: "granted", Rule: "push", Because: "A person approves each push.", Clause: `ask hold 5m exec "git" "push"`, ClausePos: "actplane.yaml:5:5",
			Operation: "exec", Object: []byte("/usr/bin/git"), Args: [][]byte{[]byte("git"), []byte("push"), []byte("origin"), []byte("greetings")}, Uid: 100000, Pid: 4598, Comm: []byte("bash"), OpenedUnixMs: at(26 * time.Minute),
			Answered: &api.Answered{By: &api.Operator{Uid: 1000, Name: "ada", Via: "cli"}, TimeUnixMs: at(25 * time.Minute), UntilUnixMs: at(-95 * time.Minute), Used: 1}},
	)
}
