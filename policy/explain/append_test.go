// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"
	"strings"
	"testing"

	"github.com/actplane/actplane/policy/ir"
)

func TestAppends(t *testing.T) {
	clause := func(effect ir.Effect, op ir.Op, glob string) ir.Clause {
		return ir.Clause{Effect: effect, Op: op, Pattern: ir.Pattern{Any: glob == "", Text: glob}, Text: effect.String() + " " + op.String() + ` "` + glob + `"`}
	}
	const denied = ir.Block
	for _, c := range []struct {
		name    string
		clauses []ir.Clause
		program ir.Program
		noted   bool
	}{
		{"write alone", []ir.Clause{clause(denied, ir.Write, "/w/**")}, ir.Program{}, true},
		{"ask", []ir.Clause{clause(ir.Ask, ir.Write, "/w/**")}, ir.Program{}, true},
		{"kill", []ir.Clause{clause(ir.Kill, ir.Write, "")}, ir.Program{}, true},
		{"notify", []ir.Clause{clause(ir.Notify, ir.Write, "/w/**")}, ir.Program{}, false},
		{"another operation", []ir.Clause{clause(denied, ir.Read, "/w/**")}, ir.Program{}, false},
		{"with append", []ir.Clause{clause(denied, ir.Append, "/w/**"), clause(denied, ir.Write, "/w/**")}, ir.Program{}, false},
		{"append is noticed", []ir.Clause{clause(ir.Notify, ir.Append, "/w/**"), clause(denied, ir.Write, "/w/**")}, ir.Program{}, true},
		{"with open", []ir.Clause{clause(denied, ir.Write, "/w/*.db"), clause(denied, ir.Open, "/w/*.db")}, ir.Program{}, false},
		{"in a folder", []ir.Clause{clause(denied, ir.Write, "/w/a/*.go"), clause(denied, ir.Append, "/w/**")}, ir.Program{}, false},
		{"beside a folder", []ir.Clause{clause(denied, ir.Write, "/ww/*.go"), clause(denied, ir.Append, "/w/**")}, ir.Program{}, true},
		{"everything", []ir.Clause{clause(denied, ir.Write, "/**/x"), clause(denied, ir.Append, "")}, ir.Program{}, false},
		{"all but one", []ir.Clause{clause(denied, ir.Write, "/{a,b,c}"), clause(denied, ir.Append, "/{a,c}")}, ir.Program{}, true},
		{"by two", []ir.Clause{clause(denied, ir.Write, "/{a,b,c}"), clause(denied, ir.Append, "/{a,c}"), clause(denied, ir.Append, "/b")}, ir.Program{}, false},
		{"by default", []ir.Clause{clause(denied, ir.Write, "/a")}, ir.Program{Defaults: []ir.Default{{Effect: denied, Op: ir.Append}}}, false},
		{"protected", []ir.Clause{clause(denied, ir.Write, "/a")}, ir.Program{Protects: []ir.Protect{{Pattern: ir.Pattern{Text: "/a"}}}}, false},
	} {
		c.program.Clauses, c.program.Rules = c.clauses, []ir.Rule{{Name: "r"}}
		noted := false
		for _, s := range Explain(&c.program, nil, Host{}).Rules[0].Clauses {
			noted = noted || slices.ContainsFunc(s.Notes, func(n string) bool { return strings.HasPrefix(n, "Appending to what is there") })
		}
		if noted != c.noted {
			t.Errorf("%s: noted %t", c.name, noted)
		}
	}
}
