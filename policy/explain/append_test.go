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

// notes are those of a statement, as one text.
func notes(s Statement) string { return strings.Join(s.Notes, " ") }

func TestUnread(t *testing.T) {
	file := func(glob string) ir.Pattern { return ir.Pattern{Text: glob} }
	block := ir.Clause{Effect: ir.Block, Op: ir.Read, Pattern: file("/**/.env")}
	sometimes, excused, notified := block, block, block
	sometimes.If, excused.Unless, notified.Effect = []ir.Term{{All: 1}}, ir.Unless{Lineages: []int{0}}, ir.Notify
	for _, c := range []struct {
		name   string
		clause ir.Clause
		source ir.Pattern
		noted  bool
	}{
		{"the same", block, file("/**/.env"), true},
		{"some of it", block, file("/**/{.env,*.pem}"), false},
		{"in a folder", ir.Clause{Effect: ir.Kill, Op: ir.Open, Pattern: file("/s/**")}, file("/s/*.pem"), true},
		{"by a label", sometimes, file("/**/.env"), false},
		{"but for some", excused, file("/**/.env"), false},
		{"noticed", notified, file("/**/.env"), false},
		{"written", ir.Clause{Effect: ir.Block, Op: ir.Write, Pattern: file("/**/.env")}, file("/**/.env"), false},
		{"an address", block, ir.Pattern{Kind: ir.Endpoint, Text: "10.0.0.0/8"}, false},
		{"everything", ir.Clause{Effect: ir.Block, Op: ir.Read, Pattern: ir.Pattern{Any: true}}, file("/x"), true},
	} {
		p := &ir.Program{
			Labels: []ir.Label{{Name: "S"}}, Sources: []ir.Source{{Pattern: c.source}}, Rules: []ir.Rule{{Name: "r"}},
			Clauses: []ir.Clause{c.clause}, Lineages: []ir.Pattern{{Kind: ir.ExecProgram, Text: "git"}},
		}
		if got := notes(Explain(p, nil, Host{}).Labels[0]); strings.Contains(got, "no rule about S comes to bear") != c.noted {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

func TestSpoils(t *testing.T) {
	program := ir.Pattern{Kind: ir.ExecProgram, Text: "make"}
	for _, c := range []struct {
		gate  ir.Gate
		noted bool
	}{
		{ir.Gate{After: ir.Event{Op: ir.Exec, Pattern: program}, Since: []ir.Event{{Op: ir.Write, Pattern: ir.Pattern{Text: "/w/{src,tests}/**"}}}}, true},
		{ir.Gate{After: ir.Event{Op: ir.Exec, Pattern: program}, Since: []ir.Event{{Op: ir.Write, Pattern: ir.Pattern{Text: "/w/src/**/*"}}}}, true},
		{ir.Gate{After: ir.Event{Op: ir.Exec, Pattern: program}, Since: []ir.Event{{Op: ir.Write, Pattern: ir.Pattern{Text: "/w/src/**/*.c"}}}}, false},
		{ir.Gate{After: ir.Event{Op: ir.Exec, Pattern: program}, Since: []ir.Event{{Op: ir.Read, Pattern: ir.Pattern{Text: "/w/src/**"}}}}, false},
		{ir.Gate{After: ir.Event{Op: ir.Write, Pattern: ir.Pattern{Text: "/w/x"}}, Since: []ir.Event{{Op: ir.Write, Pattern: ir.Pattern{Text: "/w/src/**"}}}}, false},
	} {
		p := &ir.Program{Rules: []ir.Rule{{Name: "r"}}, Gates: []ir.Gate{c.gate}, Clauses: []ir.Clause{{Effect: ir.Block, Op: ir.Exec, Pattern: program, Unless: ir.Unless{Gates: []int{0}}}}}
		if got := notes(Explain(p, nil, Host{}).Rules[0].Clauses[0]); strings.Contains(got, "makes it count no more") != c.noted {
			t.Errorf("%+v: %q", c.gate, got)
		}
	}
}
