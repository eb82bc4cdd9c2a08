// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/actplane/actplane/engine"
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/model"
)

// decide answers a question by the reference model.
func decide(p *ir.Program, q engine.Question) (engine.Verdict, error) {
	query := model.Query{Op: q.Op, Object: q.Object, Argv: q.Args, Labels: q.Labels, Cleared: q.Cleared, Lineage: q.Lineage, Gates: q.Gates}
	if q.Op == ir.Read || q.Op == ir.Write || q.Op == ir.Append {
		query.With = []ir.Op{ir.Open} // by its path
	}
	d, err := query.Decision(p)
	v := engine.Verdict{Effect: d.Effect, Rule: d.Rule, Because: d.Because}
	switch {
	case d.Clause != nil:
		v.Clause, v.Pos, v.RuleAdded = d.Clause.Text, d.Clause.Pos, p.AddedAt(p.Rules[d.Clause.Rule].Layer)
	case d.Default != nil:
		v.Clause, v.Pos, v.RuleAdded = d.Default.Text, d.Default.Pos, p.AddedAt(d.Default.Layer)
		v.Because = "no allow clause of the policy matches, and without one `" + v.Clause + "` holds"
	case d.Protect != nil:
		v.Clause, v.Pos, v.RuleAdded = "protect "+d.Protect.Text, d.Protect.Pos, p.AddedAt(d.Protect.Layer)
		v.Because = "`protect` lists it"
	case d.Denied():
		v.Because = d.Why
	}
	return v, err
}
