// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/actplane/actplane/policy/diag"
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/syntax"
)

func (c *checker) lowerSources() {
	type key struct {
		label   int
		pattern ir.Pattern
	}
	seen := map[key]bool{}
	for _, l := range c.layers {
		for _, s := range l.Tree.Sources {
			p, ok := c.pattern(l, kindOfWord(s.Kind.Text), s.Pattern)
			if !ok {
				continue
			}
			bit := l.labels[s.Label.Text].bit
			if seen[key{bit, p}] {
				continue
			}
			seen[key{bit, p}] = true
			c.program.Sources = append(c.program.Sources, ir.Source{
				Label: bit, Pattern: p, Pos: l.Text.Where(s.Span.Start), Text: oneLine(l, s.Span),
			})
		}
	}
}

func (c *checker) lowerRules() {
	for _, l := range c.layers {
		for _, r := range l.Tree.Rules {
			rule := ir.Rule{Name: r.Name.Text, Layer: l.index, Pos: l.Text.Where(r.Name.Span.Start)}
			if r.Because != nil {
				rule.Because = r.Because.Text
			}
			c.program.Rules = append(c.program.Rules, rule)
			for _, clause := range r.Clauses {
				c.lowerClause(l, len(c.program.Rules)-1, clause)
			}
		}
	}
}

func (c *checker) lowerClause(l *layer, rule int, s *syntax.Clause) {
	out := ir.Clause{Rule: rule, Pos: l.Text.Where(s.Span.Start), Text: oneLine(l, s.Span)}
	if out.Effect = ir.Block; s.Effect != nil {
		out.Effect = effectOf(s.Effect.Text)
	}
	out.Op = opOf(s.Op.Text)
	kind := kindOf(out.Op)
	var ok [5]bool
	out.Hold, ok[0] = c.hold(l, s.Hold)
	ok[1] = c.kindFits(l, s.Op, s.Kind, kind)
	if ok[1] {
		out.Pattern, ok[1] = c.pattern(l, kind, s.Pattern)
	}
	out.Args, ok[2] = c.argv(l, s.Op, s.Args)
	out.If, ok[3] = c.condition(l, s.If)
	ok[4] = c.unless(l, &out, s)
	if slices.Contains(ok[:], false) {
		return
	}
	c.program.Clauses = append(c.program.Clauses, out)
	c.clauseAt = append(c.clauseAt, place{layer: l, span: s.Span, broken: s.Broken})
}

// kindFits checks the word for the kind, which may be left out.
func (c *checker) kindFits(l *layer, op syntax.Name, kind *syntax.Name, want ir.Kind) bool {
	if kind == nil || kindOfWord(kind.Text) == want {
		return true
	}
	c.report(l.Text.New(diag.WrongKind, kind.Span, "%s is about %s patterns, not %s", op.Text, wordOfKind(want), kind.Text).
		WithHint("leave %q out", kind.Text))
	return false
}

func (c *checker) argv(l *layer, op syntax.Name, args []syntax.Name) ([]string, bool) {
	if len(args) > 0 && opOf(op.Text) != ir.Exec {
		c.report(l.Text.New(diag.ArgsOnNonExec, args[0].Span, "%s has no arguments: only exec does", op.Text).
			WithHint("one clause names one pattern; write another clause for another"))
		return nil, false
	}
	if len(args) > ir.MaxArgPatterns {
		c.report(l.Text.New(diag.OverLimit, args[0].Span, "the clause has %d argv tokens; the limit is %d", len(args), ir.MaxArgPatterns))
		return nil, false
	}
	var out []string
	for _, a := range args {
		if !c.argument(l, a) {
			return nil, false
		}
		out = append(out, a.Text)
	}
	c.warnTokens(l, args)
	return out, true
}

// unless lowers the conditions that excuse.
func (c *checker) unless(l *layer, out *ir.Clause, s *syntax.Clause) bool {
	ok := true
	for _, cond := range s.Unless {
		switch cond.Kind {
		case syntax.CondTarget:
			ok = c.target(l, out, cond) && ok
		case syntax.CondLineage:
			p, fine := c.pattern(l, ir.ExecProgram, cond.Pattern)
			if fine {
				c.warnWritableGate(l, cond.Pattern, p)
				out.Unless.Lineages = addOnce(out.Unless.Lineages, c.lineage(l, cond, p))
			}
			ok = fine && ok
		case syntax.CondAfter:
			g, fine := c.gate(l, cond)
			if fine {
				out.Unless.Gates = addOnce(out.Unless.Gates, g)
			}
			ok = fine && ok
		case syntax.CondContract:
			c.notSupported(l, cond.Span, "the condition contract")
			ok = false
		case syntax.CondUnsteered:
			c.notSupported(l, cond.Span, "the condition run unsteered")
			ok = false
		}
	}
	if n := len(out.Unless.Gates); n > ir.MaxClauseGates {
		c.report(l.Text.New(diag.OverLimit, s.Unless[0].Span, "the clause has %d after conditions; the limit is %d", n, ir.MaxClauseGates))
		ok = false
	}
	return ok
}

func (c *checker) target(l *layer, out *ir.Clause, cond *syntax.Cond) bool {
	if cond.Property != nil {
		return c.targetProperty(l, out, cond)
	}
	p, ok := c.pattern(l, kindOf(out.Op), cond.Pattern)
	if !ok {
		return false
	}
	t := ir.Target{Not: cond.Not, Pattern: p}
	if !t.Not && (p.Any || p == out.Pattern) {
		c.report(l.Text.New(diag.ClauseNeverMatches, cond.Span, "the condition holds whenever the pattern matches, so the clause never matches"))
	}
	if out.Op == ir.Exec {
		c.warnFileTarget(l, out, cond, p)
	}
	if !slices.Contains(out.Unless.Targets, t) {
		out.Unless.Targets = append(out.Unless.Targets, t)
	}
	return true
}

func (c *checker) targetProperty(l *layer, out *ir.Clause, cond *syntax.Cond) bool {
	switch {
	case cond.Property.Text != "modified":
		c.notSupported(l, cond.Span, "the condition target "+cond.Property.Text)
		return false
	case kindOf(out.Op) == ir.Endpoint:
		c.report(l.Text.New(diag.NoContents, cond.Span, "%s is about endpoints, and only files are modified", out.Op).
			WithHint("leave the condition out"))
		return false
	case cond.Not:
		out.Unless.NotModified = true
	default:
		out.Unless.Modified = true
	}
	if out.Unless.Modified && out.Unless.NotModified {
		c.report(l.Text.New(diag.ClauseNeverMatches, cond.Span, "a target is modified or it is not, so the clause never matches"))
	}
	return true
}

func (c *checker) lineage(l *layer, cond *syntax.Cond, p ir.Pattern) int {
	i, ok := c.lineages[p]
	if !ok {
		i = len(c.program.Lineages)
		c.lineages[p] = i
		c.program.Lineages = append(c.program.Lineages, p)
		c.lineageAt = append(c.lineageAt, place{layer: l, span: cond.Span})
	}
	return i
}

func (c *checker) gate(l *layer, cond *syntax.Cond) (int, bool) {
	g := ir.Gate{Exit: -1, Text: oneLine(l, cond.Span)}
	var ok bool
	if g.After, ok = c.event(l, cond.After, "after"); !ok {
		return 0, false
	}
	if g.After.Op == ir.Exec {
		c.warnWritableGate(l, cond.After.Pattern, g.After.Pattern)
	}
	if cond.Exits != nil {
		if !c.exits(l, cond, &g) {
			return 0, false
		}
		c.warnScriptGate(l, cond, g.After.Pattern)
	}
	for _, s := range cond.Since {
		e, ok := c.event(l, s, "since")
		if !ok {
			return 0, false
		}
		c.warnFolderGate(l, g.After, s, e)
		g.Since = append(g.Since, e)
	}
	key := gateKey(g)
	i, ok := c.gates[key]
	if !ok {
		i = len(c.program.Gates)
		c.gates[key] = i
		c.program.Gates = append(c.program.Gates, g)
		c.gateAt = append(c.gateAt, place{layer: l, span: cond.Span})
	}
	return i, true
}

// gateKey is the same for gates that are equal.
func gateKey(g ir.Gate) string { return fmt.Sprintf("%#v %d %#v", g.After, g.Exit, g.Since) }

func (c *checker) exits(l *layer, cond *syntax.Cond, g *ir.Gate) bool {
	if g.After.Op != ir.Exec {
		c.report(l.Text.New(diag.ExitsOnNonExec, cond.Exits.Span, "exits is about a program's end, and %s is no exec", cond.After.Op.Text).
			WithHint(`write: after exec "program" exits %s`, cond.Exits.Text))
		return false
	}
	n, err := strconv.Atoi(cond.Exits.Text)
	if err != nil || n > 255 {
		c.report(l.Text.New(diag.BadNumber, cond.Exits.Span, "%q is no exit status", cond.Exits.Text).
			WithHint("exit statuses are 0 to 255"))
		return false
	}
	g.Exit = n
	return true
}

func (c *checker) event(l *layer, e *syntax.Event, word string) (ir.Event, bool) {
	op := opOf(e.Op.Text)
	switch op {
	case ir.Exec, ir.Open, ir.Read, ir.Write, ir.Unlink:
	default:
		c.report(l.Text.New(diag.BadGateEvent, e.Op.Span, "%s cannot name %s", word, e.Op.Text).
			WithHint("%s names exec, open, read, write or unlink", word))
		return ir.Event{}, false
	}
	if len(e.Args) > 0 && op != ir.Exec {
		c.report(l.Text.New(diag.ArgsOnNonExec, e.Args[0].Span, "%s has no arguments: only exec does", e.Op.Text).
			WithHint("another pattern is another event: or %s %q", e.Op.Text, e.Args[0].Text))
		return ir.Event{}, false
	}
	if !c.kindFits(l, e.Op, e.Kind, kindOf(op)) {
		return ir.Event{}, false
	}
	p, ok := c.pattern(l, kindOf(op), e.Pattern)
	args, argsOK := c.argv(l, e.Op, e.Args)
	return ir.Event{Op: op, Pattern: p, Args: args}, ok && argsOK
}

func addOnce(list []int, n int) []int {
	if slices.Contains(list, n) {
		return list
	}
	return append(list, n)
}

// oneLine returns a piece of the text without comments and line breaks.
func oneLine(l *layer, span diag.Span) string {
	var b strings.Builder
	quoted, blank := false, false
	comments := l.Tree.Comments
	first, _ := slices.BinarySearchFunc(comments, span.Start, func(c syntax.Comment, at int) int { return c.Span.Start - at })
	comments = comments[first:]
	for i := span.Start; i < span.End; i++ {
		for len(comments) > 0 && comments[0].Span.Start < i {
			comments = comments[1:]
		}
		if len(comments) > 0 && comments[0].Span.Start == i {
			i = comments[0].Span.End - 1
			blank = true
			continue
		}
		ch := l.Text.Body[i]
		if !quoted && (ch == ' ' || ch == '\t' || ch == '\n' || ch == '\r') {
			blank = true
			continue
		}
		if blank {
			b.WriteByte(' ')
			blank = false
		}
		b.WriteByte(ch)
		switch {
		case ch == '"':
			quoted = !quoted
		case ch == '\\' && quoted && i+1 < span.End:
			i++
			b.WriteByte(l.Text.Body[i])
		}
	}
	return b.String()
}
