// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"net/http"
	"strings"
	"testing"

	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/feedback"
	"github.com/actplane/actplane/policy"
	"github.com/actplane/actplane/policy/ir"
)

// What is asked is asked of the policy in force, for the process in the state that the
// kernel knows.
func TestCheck(t *testing.T) {
	m := newMachine(t)
	m.compile = policy.CompileProgram
	e, client, _ := m.start()
	i, slot, peer := m.narrowed(e, client, 100)
	m.kernel.set(func() {
		p := m.kernel.processes[100]
		p.Labels, p.Lineage, p.Cleared = 1, 2, 4
		m.kernel.processes[100] = p
		m.kernel.states[slot] = kernel.State{Fresh: []int{0, 3}}
	})
	if _, err := i.Check(t.Context(), peer, feedback.CheckRequest{Operation: "read", Object: "/x"}); err == nil {
		t.Error("answered without one who decides")
	}
	var asked Question
	e.config.Decide = func(p *ir.Program, q Question) (Verdict, error) {
		asked = q
		if q.Op == ir.Read {
			return Verdict{}, nil
		}
		return Verdict{Effect: ir.Block, Rule: "a", Because: "No.", Clause: p.Clauses[0].Text, Pos: p.Clauses[0].Pos}, nil
	}
	got, err := i.Check(t.Context(), peer, feedback.CheckRequest{Operation: "exec", Object: "/usr/bin/git", Args: []string{"push"}})
	if err != nil || got.Allowed || got.Effect != feedback.Block || got.Rule != "a" || got.Position != "p.yaml:6:5" ||
		got.Message != `ActPlane policy: exec "/usr/bin/git" ["push"] would be blocked, by rule "a": No.` {
		t.Errorf("%+v, %v", got, err)
	}
	if asked.Labels != 1 || asked.Lineage != 2 || asked.Cleared != 4 || asked.Gates != 9 || strings.Join(asked.Args, " ") != "git push" {
		t.Errorf("asked %+v", asked)
	}
	if got, err := i.Check(t.Context(), peer, feedback.CheckRequest{Operation: "read", Object: "/x"}); err != nil || !got.Allowed || !strings.Contains(got.Message, "no rule refuses it") {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []feedback.CheckRequest{
		{Operation: "look", Object: "/x"}, {Operation: "read", Object: "x"}, {Operation: "read", Object: "/a/../x"}, {Operation: "read", Object: "/x\x00"},
		{Operation: "read", Object: "/x", Args: []string{"y"}}, {Operation: "connect", Object: "example.org:80"}, {Operation: "connect", Object: "unix:"},
		{Operation: "read", Object: "/" + strings.Repeat("x", maxObject)},
	} {
		_, err := i.Check(t.Context(), peer, bad)
		wantRefusal(t, err, http.StatusBadRequest, "")
	}
	_, err = i.Check(t.Context(), feedback.Process{PID: 1, ID: 77}, feedback.CheckRequest{Operation: "read", Object: "/x"})
	wantRefusal(t, err, http.StatusConflict, "has ended")
}
