// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/feedback"
	"github.com/actplane/actplane/policy"
	"github.com/actplane/actplane/policy/ir"
)

// Bounds of what is told of clauses: an answer to the command line must fit into a
// ttrpc message of 4 MiB, and a container's status be read by an agent.
const (
	maxListed = 2 << 20
	maxStatus = 48 << 10
)

// modes tells of each clause and default that a document of the scope's wrote what it
// really does on this host, in file order, as many as fit into so many bytes, and how
// many are left.
func (e *Engine) modes(s *scope, limit int) (list []feedback.ClauseMode, left int) {
	program := s.rules()
	killed := e.config.Kernel.Tier() == kernel.FmodRet
	add := func(m feedback.ClauseMode) {
		const overhead = 64
		if limit -= len(m.Rule) + len(m.Clause) + len(m.Position) + len(m.Mode) + overhead; limit < 0 {
			left++
			return
		}
		list = append(list, m)
	}
	for _, d := range program.Defaults {
		add(feedback.ClauseMode{Clause: d.Text, Position: d.Pos, Mode: ir.Mode(d.Op, d.Effect, killed)})
	}
	for i := range program.Clauses {
		if c := &program.Clauses[i]; c.Pos != policy.BuiltIn {
			add(feedback.ClauseMode{
				Rule: program.Rules[c.Rule].Name, Clause: c.Text, Position: c.Pos, Mode: ir.Mode(c.Op, c.Effect, killed),
			})
		}
	}
	return list, left
}

// listClauses puts modes into an answer, and returns how many bytes are left in it.
func (e *Engine) listClauses(s *scope, out *api.Scope, room int) int {
	list, left := e.modes(s, room)
	out.ClausesLeft = uint32(left)
	for _, m := range list {
		out.Clauses = append(out.Clauses, &api.Clause{Rule: m.Rule, Text: m.Clause, Position: m.Position, Mode: m.Mode})
		room -= len(m.Rule) + len(m.Clause) + len(m.Position) + len(m.Mode)
	}
	return room
}
