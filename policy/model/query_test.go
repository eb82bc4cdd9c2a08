// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"testing"

	"github.com/actplane/actplane/policy"
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/model"
)

const queried = `workspace: /w
protect: [AGENTS.md]
policy: |
  source SECRET = file "**/.env"
  source AGENT = exec "claude"
  default block bind
  rule net:
    block connect any if SECRET unless target "10.0.0.0/8"
    allow bind "127.0.0.1"
  rule no-secrets:
    notify read any if SECRET
    kill exec "git" "push" if AGENT unless lineage-includes exec "make" or after exec "pytest" since write "src/**"
    block exec any if not AGENT unless target not modified
    block unlink "keep/**"
`

func TestQuery(t *testing.T) {
	p, err := policy.Compile([]policy.Document{{Name: "q.yaml", Text: []byte(queried)}}, policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const secret, agent = 1, 2
	if p.Program.Labels[0].Name != "SECRET" || p.Program.Labels[1].Name != "AGENT" {
		t.Fatal(p.Program.Labels)
	}
	push := []string{"git", "-C", "/w", "push"}
	for _, test := range []struct {
		query model.Query
		want  string
	}{
		{model.Query{Op: ir.Connect, Object: "93.184.216.34:443"}, "ok"},
		{model.Query{Op: ir.Connect, Object: "93.184.216.34:443", Labels: secret}, "block net"},
		{model.Query{Op: ir.Send, Object: "93.184.216.34:443/udp", Labels: secret | agent}, "block net"},
		{model.Query{Op: ir.Connect, Object: "10.1.2.3:443", Labels: secret}, "ok"},
		{model.Query{Op: ir.Connect, Object: "unix:/run/actplane/feedback.sock", Labels: secret}, "ok"},
		{model.Query{Op: ir.Bind, Object: "127.0.0.1:80"}, "ok"},
		{model.Query{Op: ir.Bind, Object: "0.0.0.0:80"}, "block"},
		{model.Query{Op: ir.Read, Object: "/w/.env"}, "notify no-secrets"},
		{model.Query{Op: ir.Read, Object: "/w/x"}, "ok"},
		{model.Query{Op: ir.Open, Object: "/w/.env"}, "ok"},
		{model.Query{Op: ir.Read, Object: "/run/actplane/bin/actplane-guest", Labels: secret}, "ok"},
		{model.Query{Op: ir.Write, Object: "/w/AGENTS.md"}, "block"},
		{model.Query{Op: ir.Exec, Object: "/usr/bin/git", Argv: push, Labels: agent}, "kill no-secrets"},
		{model.Query{Op: ir.Exec, Object: "/usr/bin/git", Argv: push[:3], Labels: agent}, "ok"},
		{model.Query{Op: ir.Exec, Object: "/bin/busybox", Invoked: "git", Argv: push, Labels: agent}, "kill no-secrets"},
		{model.Query{Op: ir.Exec, Object: "/usr/bin/git", Argv: push, Labels: agent, Lineage: 1}, "ok"},
		{model.Query{Op: ir.Exec, Object: "/usr/bin/git", Argv: push, Labels: agent, Gates: 1}, "ok"},
		{model.Query{Op: ir.Exec, Object: "/usr/bin/claude", Modified: true}, "ok"},
		{model.Query{Op: ir.Exec, Object: "/usr/bin/git", Modified: true}, "block no-secrets"},
		{model.Query{Op: ir.Exec, Object: "/usr/bin/git", Mapped: true, Labels: agent}, "kill no-secrets"},
		{model.Query{Op: ir.Unlink, Object: "/w/keep/x"}, "block no-secrets"},
		{model.Query{Op: ir.Unlink, Object: "/w/x"}, "ok"},
		{model.Query{Op: ir.Unlink, Unresolved: true}, "block no-secrets"},
	} {
		trace, err := test.query.Decide(p.Program)
		if err != nil || trace.Decision.String() != test.want {
			t.Errorf("%+v: got %q (%v), want %q", test.query, trace.Decision, err, test.want)
		}
		checkTrace(t, test.want, &trace)
	}
	for _, q := range []model.Query{{Op: ir.Read, Object: "x"}, {Op: ir.Connect, Object: "/x"}, {Op: ir.Read, Object: "/a\x00"}} {
		if _, err := q.Decide(p.Program); err == nil {
			t.Errorf("%+v is answered", q)
		}
	}
}
