// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/actplane/actplane/policy/diag"
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/syntax"
)

// declareLabels gives each label of each document its bit. A label belongs to
// the document that declares it, also when an outer one has one of that name.
func (c *checker) declareLabels() {
	for _, d := range c.documents {
		for _, l := range c.layers {
			if l.document != d {
				continue
			}
			for _, s := range l.Tree.Sources {
				c.declare(l, s.Label)
			}
		}
		for _, l := range c.layers {
			if l.document == d {
				c.declareEndorsed(l)
			}
		}
		for _, l := range c.layers {
			if l.document == d {
				for _, name := range l.Tree.Misread {
					c.declare(l, name)
				}
			}
		}
	}
}

// declareEndorsed declares the integrity labels of a text. Nothing but their
// endorser gives them, so that a source of one is a mistake.
func (c *checker) declareEndorsed(l *layer) {
	for _, t := range l.Tree.Transforms {
		if t.Verb.Text != "endorse" {
			continue
		}
		found, ok := c.resolve(l, t.Label.Text)
		switch {
		case !ok:
			c.declare(l, t.Label)
			found = l.labels[t.Label.Text]
		case found.at.layer.document != l.document:
			continue // reported with the transform
		case !c.program.Labels[found.bit].Integrity:
			c.report(l.Text.New(diag.SourceOfEndorsed, t.Label.Span, "label %q comes from a source too, and an endorsed label may only come from its endorser", t.Label.Text).
				WithHint("the source is at %s; give one of them another name", found.at))
		}
		c.program.Labels[found.bit].Integrity = true
	}
}

func (c *checker) declare(l *layer, name syntax.Name) {
	if _, ok := l.labels[name.Text]; ok {
		return
	}
	at := place{layer: l, span: name.Span}
	l.labels[name.Text] = label{bit: len(c.program.Labels), at: at}
	c.program.Labels = append(c.program.Labels, ir.Label{Name: name.Text, Layer: l.index})
	c.labelAt = append(c.labelAt, at)
}

// resolve finds a label in the document or the nearest outer one that has it.
func (c *checker) resolve(l *layer, name string) (label, bool) {
	for i := l.index; i >= 0; i-- {
		if found, ok := c.documents[i].labels[name]; ok {
			return found, true
		}
	}
	return label{}, false
}

// undeclared reports a label that nothing produces: the clause would silently never
// match. It is a warning only when it is no misspelling, and an outer layer that is
// not here may declare it.
func (c *checker) undeclared(l *layer, name syntax.Name) {
	var names []string
	at := map[string]place{}
	for i := l.index; i >= 0 && len(c.program.Labels) <= ir.MaxLabels; i-- {
		for n, found := range c.documents[i].labels {
			if _, ok := at[n]; !ok {
				names = append(names, n)
				at[n] = found.at
			}
		}
	}
	slices.Sort(names)
	declare := fmt.Sprintf("declare a source, such as: source %s = exec \"program\"", name.Text)
	if s := addressMeant(name.Text); s != "" {
		declare = fmt.Sprintf("if tests labels of the process; addresses are a pattern or a target: connect %q, unless target %[1]q", s)
	}
	switch s := diag.Suggest(name.Text, names); {
	case s != "":
		c.report(l.Text.New(diag.UndeclaredLabel, name.Span, "label %q is not declared", name.Text).
			WithHint("did you mean %q? (declared at %s)", s, at[s]))
	case c.all:
		c.report(l.Text.New(diag.UndeclaredLabel, name.Span, "label %q is declared neither here nor in an outer policy", name.Text).WithHint("%s", declare))
	default:
		c.report(l.Text.New(diag.LabelNeverProduced, name.Span, "nothing produces label %q", name.Text).
			WithHint("%s; a container is refused where no outer policy declares it", declare))
	}
}

// condition lowers an expression to disjunctive normal form. No terms at all
// hold always; ok is false when the expression has been refused.
func (c *checker) condition(l *layer, e syntax.Expr) (terms []ir.Term, ok bool) {
	if e == nil {
		return nil, true
	}
	c.warnMixed(l, e)
	d := &dnf{checker: c, layer: l}
	terms = d.terms(e, false)
	if d.over {
		c.report(l.Text.New(diag.OverLimit, e.Place(), "the condition needs more than %d alternatives; the limit is %d", MaxTerms, MaxTerms).
			WithHint("split the clause"))
		return nil, false
	}
	if len(terms) == 0 {
		if !d.unknown {
			c.report(l.Text.New(diag.ClauseNeverMatches, e.Place(), "the condition never holds, so the clause never matches"))
		}
		return []ir.Term{{All: 1, None: 1}}, true // never holds, whatever label 0 is
	}
	if slices.Contains(terms, ir.Term{}) {
		return nil, true
	}
	return terms, true
}

// dnf computes disjunctive normal forms.
type dnf struct {
	*checker
	layer   *layer
	over    bool // more than MaxTerms
	unknown bool // a label is not declared
}

func (d *dnf) terms(e syntax.Expr, negated bool) []ir.Term {
	switch e := e.(type) {
	case *syntax.Label:
		return d.label(e.Name, negated)
	case *syntax.True:
		if negated {
			return nil
		}
		return []ir.Term{{}}
	case *syntax.Not:
		return d.terms(e.X, !negated)
	case *syntax.Paren:
		return d.terms(e.X, negated)
	case *syntax.Binary:
		x, y := d.terms(e.X, negated), d.terms(e.Y, negated)
		if e.Or != negated {
			return d.simplify(slices.Concat(x, y))
		}
		return d.product(x, y)
	}
	return nil
}

func (d *dnf) label(name syntax.Name, negated bool) []ir.Term {
	found, ok := d.resolve(d.layer, name.Text)
	switch {
	case !ok:
		d.unknown = true
		d.undeclared(d.layer, name)
		if negated {
			return []ir.Term{{}}
		}
		return nil
	case negated:
		return []ir.Term{{None: 1 << found.bit}}
	}
	return []ir.Term{{All: 1 << found.bit}}
}

func (d *dnf) product(x, y []ir.Term) []ir.Term {
	var out []ir.Term
	for _, a := range x {
		for _, b := range y {
			t := ir.Term{All: a.All | b.All, None: a.None | b.None}
			if t.All&t.None == 0 {
				out = append(out, t)
			}
		}
		out = d.simplify(out)
	}
	return out
}

// simplify drops terms that another one covers.
func (d *dnf) simplify(terms []ir.Term) []ir.Term {
	var out []ir.Term
	for i, t := range terms {
		if !slices.ContainsFunc(terms, func(o ir.Term) bool { return covers(o, t) && (o != t) }) && !slices.Contains(terms[:i], t) {
			out = append(out, t)
		}
	}
	if len(out) > MaxTerms {
		d.over = true
		out = out[:MaxTerms]
	}
	return out
}

// covers tells whether a holds wherever b does.
func covers(a, b ir.Term) bool {
	return a.All&^b.All == 0 && a.None&^b.None == 0 && bits.OnesCount64(a.All|a.None) <= bits.OnesCount64(b.All|b.None)
}

// warnMixed says how an expression is read that mixes and and or.
func (c *checker) warnMixed(l *layer, e syntax.Expr) {
	mixed := false
	walk(e, func(e syntax.Expr) {
		if b, ok := e.(*syntax.Binary); ok && b.Mixed {
			mixed = true
		}
	})
	if mixed {
		c.report(l.Text.New(diag.MixedAndOr, e.Place(), "and binds tighter than or").
			WithHint("this is read as: %s", parenthesized(e, false)))
	}
}

func walk(e syntax.Expr, f func(syntax.Expr)) {
	f(e)
	switch e := e.(type) {
	case *syntax.Not:
		walk(e.X, f)
	case *syntax.Paren:
		walk(e.X, f)
	case *syntax.Binary:
		walk(e.X, f)
		walk(e.Y, f)
	}
}

// parenthesized writes an expression with parentheses around each and that
// stands in an or.
func parenthesized(e syntax.Expr, inOr bool) string {
	switch e := e.(type) {
	case *syntax.Label:
		return e.Name.Text
	case *syntax.True:
		return "true"
	case *syntax.Not:
		return "not " + parenthesized(e.X, false)
	case *syntax.Paren:
		return "(" + parenthesized(e.X, false) + ")"
	case *syntax.Binary:
		if e.Or {
			return parenthesized(e.X, true) + " or " + parenthesized(e.Y, true)
		}
		s := parenthesized(e.X, false) + " and " + parenthesized(e.Y, false)
		if inOr {
			return "(" + s + ")"
		}
		return s
	}
	return ""
}

// addressMeant returns the set of addresses that people mean by a word where a label
// should stand, "" for others.
func addressMeant(name string) string {
	switch strings.ToLower(name) {
	case "localhost", "loopback", "local":
		return "@loopback"
	case "private", "lan", "intranet":
		return "@private"
	case "public", "internet", "external":
		return "@public"
	case "metadata":
		return "@metadata"
	}
	return ""
}
