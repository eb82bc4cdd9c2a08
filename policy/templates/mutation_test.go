// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/actplane/actplane/policy/ir"
)

// A mutation is a program that lacks something, or says less precisely what it is
// about.
type mutation struct {
	what    string
	program *ir.Program
}

// TestMutations takes each template's policy apart, a piece at a time: its tests
// have to notice each.
func TestMutations(t *testing.T) {
	total := 0
	for _, template := range All() {
		t.Run(template.Name, func(t *testing.T) {
			program := compile(t, []byte(template.file)).Program
			cases := parse(t, []byte(embedded(template.Name+"/"+testFile)))
			all := mutations(t, program)
			for _, m := range all {
				if failing(m.program, cases) == "" {
					t.Errorf("all cases pass without %s", m.what)
				}
			}
			total += len(all)
		})
	}
	t.Logf("%d mutations", total)
}

func mutations(t *testing.T, p *ir.Program) (out []mutation) {
	add := func(what string, change func(*ir.Program)) {
		m := clone(t, p)
		change(m)
		out = append(out, mutation{what, m})
	}
	for i, r := range p.Rules {
		add("rule "+r.Name, func(p *ir.Program) {
			p.Clauses = slices.DeleteFunc(p.Clauses, func(c ir.Clause) bool { return c.Rule == i })
		})
	}
	for i := range p.Sources {
		add(p.Sources[i].Text, func(p *ir.Program) { p.Sources = slices.Delete(p.Sources, i, i+1) })
	}
	for i := range p.Transforms {
		add(p.Transforms[i].Text, func(p *ir.Program) { p.Transforms = slices.Delete(p.Transforms, i, i+1) })
	}
	for i := range p.Defaults {
		add(p.Defaults[i].Text, func(p *ir.Program) { p.Defaults = slices.Delete(p.Defaults, i, i+1) })
	}
	for i, g := range p.Gates {
		if g.Exit >= 0 {
			add(fmt.Sprintf("exits in `%s`", g.Text), func(p *ir.Program) { p.Gates[i].Exit = -1 })
		}
		for j := range g.Since {
			add(fmt.Sprintf("since %d of `%s`", j+1, g.Text), func(p *ir.Program) {
				p.Gates[i].Since = slices.Delete(p.Gates[i].Since, j, j+1)
			})
		}
		if len(g.After.Args) > 0 {
			add(fmt.Sprintf("the tokens of `%s`", g.Text), func(p *ir.Program) { p.Gates[i].After.Args = nil })
		}
	}
	for i := range p.Clauses {
		mutateClause(p, i, add)
	}
	return out
}

// mutateClause takes away a clause, and each of its parts.
func mutateClause(p *ir.Program, i int, add func(string, func(*ir.Program))) {
	c := &p.Clauses[i]
	of := " of `" + c.Text + "`"
	add("`"+c.Text+"`", func(p *ir.Program) { p.Clauses = slices.Delete(p.Clauses, i, i+1) })
	part := func(what string, change func(*ir.Clause)) {
		add(what+of, func(p *ir.Program) { change(&p.Clauses[i]) })
	}
	if len(c.Args) > 0 {
		part("the tokens", func(c *ir.Clause) { c.Args = nil })
	}
	for j, term := range c.If {
		for bits := term.All | term.None; bits != 0; bits &= bits - 1 {
			bit := bits & -bits
			part(fmt.Sprintf("label %d", bit), func(c *ir.Clause) {
				c.If[j].All &^= bit
				c.If[j].None &^= bit
			})
		}
	}
	for j, target := range c.Unless.Targets {
		part("target "+target.Pattern.Text, func(c *ir.Clause) { c.Unless.Targets = slices.Delete(c.Unless.Targets, j, j+1) })
	}
	for j := range c.Unless.Lineages {
		part("lineage-includes", func(c *ir.Clause) { c.Unless.Lineages = slices.Delete(c.Unless.Lineages, j, j+1) })
	}
	for j := range c.Unless.Gates {
		part("after", func(c *ir.Clause) { c.Unless.Gates = slices.Delete(c.Unless.Gates, j, j+1) })
	}
	if c.Unless.Modified {
		part("target modified", func(c *ir.Clause) { c.Unless.Modified = false })
	}
}

// clone copies a program, which is plain data.
func clone(t *testing.T, p *ir.Program) *ir.Program {
	t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	out := &ir.Program{}
	if err := json.Unmarshal(text, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// The tests of a joined policy are tests of each of its rules as well, but where a
// template's case was left out or another template has the same rule in other words.
func TestJoinedRulesAreTested(t *testing.T) {
	list, err := Find([]string{"no-push", "secrets-unread", "steering-files", "tests-go", "workspace-only"})
	if err != nil {
		t.Fatal(err)
	}
	made, err := Make(list, Options{})
	if err != nil {
		t.Fatal(err)
	}
	program, cases := compile(t, made.Policy).Program, parse(t, made.Tests)
	for _, m := range mutations(t, program) {
		if strings.HasPrefix(m.what, "rule ") && failing(m.program, cases) == "" {
			t.Errorf("all cases pass without %s", m.what)
		}
	}
}
