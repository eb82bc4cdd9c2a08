// SPDX-License-Identifier: Apache-2.0

package check

import (
	"regexp"
	"time"

	"github.com/actplane/actplane/policy/diag"
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/syntax"
)

// lowerTransforms lowers declassify and endorse. Both are about labels of their
// own document: what an outer one set stays.
func (c *checker) lowerTransforms() {
	for _, l := range c.layers {
		for _, t := range l.Tree.Transforms {
			found, ok := c.resolve(l, t.Label.Text)
			if !ok {
				c.undeclared(l, t.Label)
			}
			if ok && found.at.layer.document != l.document {
				c.outerLabel(l, t, found)
				ok = false
			}
			p, fine := c.pattern(l, ir.ExecProgram, t.Pattern)
			if !ok || !fine {
				continue
			}
			c.warnWritableGate(l, t.Pattern, p)
			c.program.Transforms = append(c.program.Transforms, ir.Transform{
				Endorse: t.Verb.Text == "endorse", Label: found.bit, Pattern: p,
				Layer: l.index, Pos: l.Text.Where(t.Span.Start), Text: oneLine(l, t.Span),
			})
		}
	}
}

func (c *checker) outerLabel(l *layer, t *syntax.Transform, found label) {
	c.report(l.Text.New(diag.OuterLabel, t.Label.Span, "label %q belongs to %s, and an inner layer cannot %s it",
		t.Label.Text, found.at.layer.Name, t.Verb.Text).
		WithHint("leave it to that policy (the label is declared at %s), or use a label of this policy's own", found.at))
}

func (c *checker) lowerDefaults() {
	type key struct {
		document int
		op       string
	}
	seen := map[key]place{}
	for _, l := range c.layers {
		for _, d := range l.Tree.Defaults {
			k := key{l.index, d.Op.Text}
			if first, ok := seen[k]; ok {
				c.report(l.Text.New(diag.DuplicateDefault, d.Span, "%s has a default already", d.Op.Text).
					WithHint("the first is at %s; keep one", first))
				continue
			}
			seen[k] = place{layer: l, span: d.Span}
			effect := effectOf(d.Effect.Text)
			hold, ok := c.hold(l, d.Hold)
			if !ok || effect == ir.Allow { // `default allow` is how it is anyhow
				continue
			}
			c.program.Defaults = append(c.program.Defaults, ir.Default{
				Effect: effect, Hold: hold, Op: opOf(d.Op.Text),
				Layer: l.index, Pos: l.Text.Where(d.Span.Start), Text: oneLine(l, d.Span),
			})
			c.defaultAt = append(c.defaultAt, place{layer: l, span: d.Span})
		}
	}
}

func effectOf(word string) ir.Effect {
	switch word {
	case "allow":
		return ir.Allow
	case "notify":
		return ir.Notify
	case "ask":
		return ir.Ask
	case "kill":
		return ir.Kill
	}
	return ir.Block
}

// maxHold bounds how long a process can be stopped for an answer.
const maxHold = 24 * time.Hour

// hold reads the duration of `ask hold`.
func (c *checker) hold(l *layer, name *syntax.Name) (time.Duration, bool) {
	if name == nil {
		return 0, true
	}
	d, err := time.ParseDuration(name.Text)
	if !regexp.MustCompile(`^(\d+h)?(\d+m)?(\d+s)?$`).MatchString(name.Text) || err != nil || d <= 0 || d > maxHold {
		c.report(l.Text.New(diag.BadDuration, name.Span, "%q is no duration", name.Text).
			WithHint("write hours, minutes and seconds, from 1s to 24h: 30s, 5m, 1h30m"))
		return 0, false
	}
	return d, true
}

// lowerProtects lowers the entries of `protect:`.
func (c *checker) lowerProtects() {
	for _, d := range c.documents {
		whole := &layer{document: d, Text: d.File, Tree: &syntax.File{}}
		for _, e := range d.Protects {
			p, ok := c.pattern(whole, ir.File, e.Pattern)
			terms, fine := c.condition(&layer{document: d, Text: e.CondText, Tree: &syntax.File{}}, e.If)
			if !ok || !fine {
				continue
			}
			c.protectAt = append(c.protectAt, place{layer: whole, span: e.Pattern.Span})
			c.program.Protects = append(c.program.Protects, ir.Protect{
				Pattern: p, If: terms, Layer: d.index, Pos: d.File.Where(e.Pattern.Span.Start), Text: e.Pattern.Text,
			})
		}
	}
}

// feedback takes what the outermost document says.
func (c *checker) feedback() {
	for _, d := range c.documents {
		if d.Feedback != nil {
			c.program.Feedback = ir.Feedback{Stderr: d.Feedback.Stderr, Pos: d.File.Where(d.Feedback.At.Start)}
			return
		}
	}
}

// allowsNothing warns of allow clauses that no default waits for.
func (c *checker) allowsNothing() {
	for i := range c.program.Clauses {
		clause := &c.program.Clauses[i]
		if i < c.base || clause.Effect != ir.Allow || c.lifts(i) {
			continue
		}
		at := c.clauseAt[i]
		c.report(at.layer.Text.New(diag.NothingToLift, at.span, "this allow changes nothing: what no rule refuses is allowed").
			WithHint("to refuse all else, add `default block %s`", clause.Op))
	}
}

func (c *checker) lifts(clause int) bool {
	p, op := c.program, c.program.Clauses[clause].Op
	for _, d := range p.Defaults {
		if ir.Lifts(p.LayerOf(clause), d.Layer) && (ir.Governs(d.Op, op) || ir.Governs(op, d.Op)) {
			return true
		}
	}
	return false
}
