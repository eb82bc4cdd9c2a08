// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strings"

	"github.com/actplane/actplane/policy/dfa"
	"github.com/actplane/actplane/policy/ir"
)

// Summary returns a few lines about the size of a policy.
func (p *Policy) Summary() string {
	d := &dumper{p: p}
	d.summary()
	return d.b.String()
}

// Dump returns a text of everything that the policy became: the program and the
// rows of the automaton. Equal policies give equal texts.
func (p *Policy) Dump() string {
	d := &dumper{p: p}
	d.summary()
	d.program()
	d.rows()
	return d.b.String()
}

// dumper writes a policy for people.
type dumper struct {
	b strings.Builder
	p *Policy
}

func (d *dumper) line(format string, args ...any) { fmt.Fprintf(&d.b, format+"\n", args...) }

func (d *dumper) summary() {
	g, img := d.p.Program, d.p.Image
	d.line("workspace %s", g.Workspace)
	d.line("%d rules, %d clauses, %d labels, %d gates, %d lineages", len(g.Rules), len(g.Clauses), len(g.Labels), len(g.Gates), len(g.Lineages))
	d.line("automaton: %d states (the engine holds %d), %d KiB, %d rows, %d image clauses, %d argv words",
		len(img.RowOf), ir.MaxStates, len(img.Next)*2>>10, len(img.Rows), len(img.Clauses), img.ArgWords)
	if img.Start[dfa.Base] != dfa.Dead {
		d.line("the last names of paths are matched by themselves")
	}
	if n := len(d.p.Unenforced); n > 0 {
		d.line("not enforced by this version's engine: %d places", n)
	}
}

func (d *dumper) program() {
	g := d.p.Program
	d.line("")
	for i, l := range g.Layers {
		d.line("layer %d %s sha256:%s", i, l.Name, l.SHA256)
		if l.Domain != "" {
			d.line("  domain %s", l.Domain)
		}
	}
	for i, l := range g.Labels {
		d.line("label %d %s layer %d%s", i, l.Name, l.Layer, when(l.Integrity, " integrity")+when(l.Confines, " confines"))
	}
	for _, s := range g.Sources {
		d.line("source %s = %s %s", d.label(s.Label), s.Pattern.Kind, patternText(s.Pattern))
	}
	for _, t := range g.Transforms {
		verb := "declassify"
		if t.Endorse {
			verb = "endorse"
		}
		d.line("%s %s by %s", verb, d.label(t.Label), patternText(t.Pattern))
	}
	for i, l := range g.Lineages {
		d.line("lineage %d %s", i, patternText(l))
	}
	for i, gate := range g.Gates {
		d.line("gate %d after %s%s", i, eventText(gate.After), exitText(gate.Exit))
		for _, e := range gate.Since {
			d.line("  since %s", eventText(e))
		}
	}
	for i, def := range g.Defaults {
		d.line("default %d %s%s %s layer %d", i, def.Effect, holdText(int64(def.Hold)), def.Op, def.Layer)
	}
	for i, e := range g.Protects {
		d.line("protect %d %s%s", i, patternText(e.Pattern), d.termsText(e.If))
	}
	for i, r := range g.Rules {
		d.line("rule %d %s layer %d at %s", i, r.Name, r.Layer, r.Pos)
		if r.Because != "" {
			d.line("  because %q", r.Because)
		}
		for j := range g.Clauses {
			if g.Clauses[j].Rule == i {
				d.clause(j, &g.Clauses[j])
			}
		}
	}
	d.limits()
}

func (d *dumper) clause(i int, c *ir.Clause) {
	d.line("  clause %d %s%s %s %s%s%s", i, c.Effect, holdText(int64(c.Hold)), c.Op, patternText(c.Pattern), argsText(c.Args), d.termsText(c.If))
	for _, t := range c.Unless.Targets {
		d.line("    unless target %s%s", when(t.Not, "not "), patternText(t.Pattern))
	}
	for _, l := range c.Unless.Lineages {
		d.line("    unless lineage %d", l)
	}
	for _, g := range c.Unless.Gates {
		d.line("    unless gate %d", g)
	}
	if c.Unless.Modified {
		d.line("    unless target modified")
	}
	if c.Unless.NotModified {
		d.line("    unless target not modified")
	}
}

func (d *dumper) limits() {
	l := d.p.Program.Limits
	if l.Pids != 0 {
		d.line("limit pids %d", l.Pids)
	}
	if l.Memory != 0 {
		d.line("limit memory %d", l.Memory)
	}
	if l.CPUs != 0 {
		d.line("limit cpus %g", l.CPUs)
	}
	if c := l.Capabilities; c != nil {
		d.line("limit capabilities drop [%s] add [%s]", strings.Join(c.Drop, " "), strings.Join(c.Add, " "))
	}
	if l.NoNewPrivileges {
		d.line("limit no_new_privileges")
	}
	if d.p.Program.Feedback.Stderr {
		d.line("feedback stderr")
	}
}

// imageClause writes one alternative of a clause's condition.
func (d *dumper) imageClause(i int, c *dfa.Clause) {
	text := fmt.Sprintf("image clause %d of clause %d", i, c.Clause)
	if c.All|c.None != 0 {
		text += d.termsText([]ir.Term{{All: c.All, None: c.None}})
	}
	if c.Arg >= 0 {
		text += fmt.Sprintf(" arg %d", c.Arg)
	}
	if c.Target >= 0 {
		text += fmt.Sprintf(" target %d", c.Target)
	}
	if c.Lifts != 0 {
		text += fmt.Sprintf(" lifts %#x", c.Lifts)
	}
	d.line("%s", text)
}

// rows writes what the automaton tells apart.
func (d *dumper) rows() {
	img := d.p.Image
	d.line("")
	for i := range img.Clauses {
		d.imageClause(i, &img.Clauses[i])
	}
	for i, def := range img.Defaults {
		d.line("image default %d of default %d", i, def.Default)
	}
	for i, e := range img.Protects {
		d.line("image protect %d of protect %d%s", i, e.Protect, d.termsText([]ir.Term{{All: e.All, None: e.None}}))
	}
	for i := range img.Rows {
		r := &img.Rows[i]
		d.line("row %d", i)
		for _, set := range []struct {
			name   string
			labels uint64
		}{{"sources", r.Sources}, {"exec sources", r.ExecSources}, {"declassify", r.Declassify}, {"endorse", r.Endorse}} {
			if set.labels != 0 {
				d.line("  %s %s", set.name, d.labels(set.labels))
			}
		}
		if r.Lineage != 0 {
			d.line("  lineage %#x", r.Lineage)
		}
		if r.Targets != 0 {
			d.line("  targets %#x", r.Targets)
		}
		for op := range ir.NumOps {
			if len(r.Clauses[op]) > 0 {
				d.line("  %s clauses %v", op, r.Clauses[op])
			}
			if len(r.Allows[op]) > 0 {
				d.line("  %s allows %v", op, r.Allows[op])
			}
			for _, g := range r.Gates[op] {
				d.line("  %s %s gate %d%s", op, map[bool]string{true: "arms", false: "invalidates"}[g.Arm], g.Gate, exitText(g.Exit))
			}
		}
		if len(r.Protects) > 0 {
			d.line("  protects %v", r.Protects)
		}
		if len(r.Tokens) > 0 {
			d.line("  tokens %x", r.Tokens)
		}
	}
}

// label returns a label's name, and whose it is where several have that name.
func (d *dumper) label(i int) string {
	l := d.p.Program.Labels[i]
	for j, other := range d.p.Program.Labels {
		if j != i && other.Name == l.Name {
			return fmt.Sprintf("%s@%d", l.Name, l.Layer)
		}
	}
	return l.Name
}

func (d *dumper) labels(set uint64) string {
	var names []string
	for i := range d.p.Program.Labels {
		if set>>i&1 == 1 {
			names = append(names, d.label(i))
		}
	}
	return strings.Join(names, " ")
}

func (d *dumper) termsText(terms []ir.Term) string {
	var out []string
	for _, t := range terms {
		s := "{" + d.labels(t.All)
		if t.None != 0 {
			s += " not " + d.labels(t.None)
		}
		out = append(out, strings.Replace(s, "{ ", "{", 1)+"}")
	}
	if len(out) == 0 || len(out) == 1 && out[0] == "{}" {
		return ""
	}
	return " if " + strings.Join(out, " or ")
}
