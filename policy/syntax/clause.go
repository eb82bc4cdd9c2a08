// SPDX-License-Identifier: Apache-2.0

package syntax

import (
	"github.com/actplane/actplane/policy/diag"
)

func (p *parser) rule() {
	start := p.advance().span.Start
	before := len(p.errs)
	r := &Rule{}
	p.guarded(func() { // clauses that follow a bad header are still this rule's
		r.Name = p.newName("a rule's name")
		if p.tok.kind != tokColon {
			p.failWith(`":" after the rule's name`, p.colonHint(r.Name.Text))
		}
		p.advance()
	})
	for p.inRule() {
		p.guarded(func() { p.ruleItem(r) })
	}
	r.Span = p.from(start)
	if len(r.Clauses) == 0 && len(p.errs) == before {
		p.errs = append(p.errs, p.text.New(diag.EmptyRule, r.Name.Span, "rule %q has no clause", r.Name.Text).
			WithHint(`add one, such as: block exec "git" "push"`))
	}
	p.file.Rules = append(p.file.Rules, r)
}

// inRule tells whether what follows still belongs to the rule. An unknown word
// does: more often than not it is a misspelt operation.
func (p *parser) inRule() bool {
	return p.tok.kind != tokEOF && !p.isOneOf(declWords)
}

func (p *parser) ruleItem(r *Rule) {
	switch {
	case p.is("because"):
		p.because(r)
	case p.startsClause():
		if r.Because != nil {
			p.errs = append(p.errs, p.text.New(diag.ClauseAfterBecause, p.tok.span, "because ends rule %q, so this clause belongs to no rule", r.Name.Text).
				WithHint("put because after the last clause, or begin another rule"))
		}
		n := len(r.Clauses)
		p.clause(r)
		r.Clauses[n].Broken = r.Clauses[n].Broken || r.mixed
	default:
		r.mixed = r.mixed || p.tok.first
		if n := len(r.Clauses); n > 0 && !p.tok.first {
			r.Clauses[n-1].Broken = true
		}
		p.unknownItem()
	}
}

func (p *parser) because(r *Rule) {
	p.advance()
	p.part = afterBecause
	if p.tok.kind != tokString {
		p.failWith("a string with the reason", p.reasonHint())
	}
	t := p.advance()
	if r.Because != nil {
		p.errorf(diag.Unexpected, t.span, "rule %q has a reason already", r.Name.Text)
	}
	n := p.name(t)
	r.Because = &n
}

// unknownItem reports what begins neither a clause nor anything else of a rule.
func (p *parser) unknownItem() {
	defer p.advanceOnPanic()
	what, hint := "a clause", ""
	if !p.tok.first && p.part != afterNothing {
		what, hint = p.part.end(), p.trailingHint()
	}
	if p.tok.kind != tokWord {
		p.failWith(what, hint)
	}
	if hint == "" {
		hint = p.itemHint()
	}
	p.errs = append(p.errs, p.text.New(diag.UnknownWord, p.tok.span, "expected %s, found %q", what, p.tok.text).WithHint("%s", hint))
	panic(bailout{})
}

func (p *parser) clause(r *Rule) {
	if p.is("because") { // outside a rule
		p.advance()
		panic(bailout{})
	}
	start := p.tok.span.Start
	p.part = afterNothing
	c := &Clause{}
	if p.isOneOf(effectWords) {
		n := p.name(p.advance())
		c.Effect = &n
		if n.Text == "ask" && p.accept("hold") {
			c.Hold = p.duration()
		}
	}
	switch {
	case p.is("if"), p.is("unless"):
		p.failWith("an operation", p.opHint())
	case !p.isOneOf(opWords):
		p.unknownWith(p.opHint(), "an operation", opWords...)
	}
	c.Op = p.name(p.advance())
	c.Kind, c.Pattern, c.Args = p.object(c.Op.Text)
	if p.accept("if") {
		p.operands, p.part = 0, afterIf
		c.If = p.or(0)
	}
	if p.accept("unless") {
		c.Unless = p.conds()
	}
	c.Span = p.from(start)
	r.Clauses = append(r.Clauses, c)
}

func (p *parser) duration() *Name {
	if p.tok.kind != tokNumber {
		p.failWith("a duration", "such as 5m, without quotes: ask hold 5m")
	}
	n := p.name(p.advance())
	return &n
}

// object reads `[KIND] PATTERN ARG…` of an operation.
func (p *parser) object(op string) (kind *Name, pattern Pattern, args []Name) {
	if p.isOneOf(kindWords) {
		n := p.name(p.advance())
		kind = &n
	}
	pattern = p.pattern()
	p.part, p.op = afterObject, op
	for p.tok.kind == tokString {
		args = append(args, p.name(p.advance()))
	}
	return kind, pattern, args
}

func (p *parser) pattern() Pattern {
	switch {
	case p.tok.kind == tokString:
		t := p.advance()
		return Pattern{Span: t.span, Text: t.text}
	case p.is("any"):
		return Pattern{Span: p.advance().span, Any: true}
	}
	p.failWith("a pattern in quotes, or any", p.patternHint())
	return Pattern{}
}

func (p *parser) or(depth int) Expr {
	x := p.and(depth)
	for p.is("or") {
		p.advance()
		y := p.and(depth)
		x = &Binary{Or: true, X: x, Y: y, Mixed: isAnd(x) || isAnd(y)}
	}
	return x
}

func isAnd(e Expr) bool {
	b, ok := e.(*Binary)
	return ok && !b.Or
}

func (p *parser) and(depth int) Expr {
	x := p.unary(depth)
	for p.is("and") {
		p.advance()
		x = &Binary{X: x, Y: p.unary(depth)}
	}
	return x
}

func (p *parser) unary(depth int) Expr {
	if depth > MaxDepth {
		p.errorf(diag.TooDeep, p.tok.span, "the expression is nested more than %d deep", MaxDepth)
		panic(bailout{})
	}
	if p.operands++; p.operands > MaxOperands {
		p.errorf(diag.TooDeep, p.tok.span, "the expression has more than %d operands", MaxOperands)
		panic(bailout{})
	}
	switch start := p.tok.span.Start; {
	case p.is("not"):
		p.advance()
		return &Not{X: p.unary(depth + 1), Span: p.from(start)}
	case p.is("true"):
		return &True{Span: p.advance().span}
	case p.tok.kind == tokLeft:
		p.advance()
		x := p.or(depth + 1)
		if p.tok.kind != tokRight {
			p.failWith(`")"`, p.trailingHint())
		}
		p.advance()
		return &Paren{X: x, Span: p.from(start)}
	case p.tok.kind == tokWord && !reserved(p.tok.text):
		if hint := p.sourceMeant(); hint != "" {
			p.failWith("a label", hint)
		}
		return &Label{Name: p.name(p.advance())}
	}
	p.failWith("a label", p.labelHint())
	return nil
}

func (p *parser) conds() []*Cond {
	out := []*Cond{p.cond()}
	for p.accept("or") {
		out = append(out, p.cond())
	}
	return out
}

func (p *parser) cond() *Cond {
	c := &Cond{}
	start := p.tok.span.Start
	switch {
	case p.accept("target"):
		p.target(c)
	case p.accept("lineage-includes"):
		c.Kind = CondLineage
		if !p.accept("exec") {
			p.unknownWith(p.execHint("lineage-includes"), `"exec"`, "exec")
		}
		c.Pattern = p.pattern()
	case p.accept("after"):
		c.Kind = CondAfter
		p.after(c)
	case p.accept("contract"):
		c.Kind = CondContract
		if p.tok.kind != tokWord {
			p.fail("a contract's name")
		}
		c.Contract = p.name(p.advance())
	case p.accept("run"):
		c.Kind = CondUnsteered
		if !p.accept("unsteered") {
			p.unknown(`"unsteered"`, "unsteered")
		}
	default:
		p.unknownWith(p.condHint(), "a condition", condWords...)
	}
	c.Span = p.from(start)
	if p.part = afterCond; c.Kind == CondAfter {
		p.part = afterGate
	}
	p.again = c.again()
	return c
}

// again returns another condition like this one, with a gap for its pattern: one that
// lost its exits would excuse more. A second `target not` beside the first would always
// hold, so that none is offered.
func (c *Cond) again() string {
	const gap = `"…"`
	switch {
	case c.Kind == CondTarget && !c.Not:
		return "target " + gap
	case c.Kind == CondLineage:
		return "lineage-includes exec " + gap
	case c.Kind == CondAfter && len(c.Since) > 0:
		return c.Since[len(c.Since)-1].Op.Text + " " + gap
	case c.Kind == CondAfter && c.Exits != nil:
		return "after " + c.After.Op.Text + " " + gap + " exits " + c.Exits.Text
	case c.Kind == CondAfter:
		return "after " + c.After.Op.Text + " " + gap
	}
	return ""
}

func (p *parser) target(c *Cond) {
	c.Kind = CondTarget
	c.Not = p.accept("not")
	if p.is("modified") || p.is("signed") {
		n := p.name(p.advance())
		c.Property = &n
		return
	}
	c.Pattern = p.pattern()
}

func (p *parser) after(c *Cond) {
	c.After = p.event("exec")
	if p.accept("exits") {
		if p.tok.kind != tokNumber {
			p.failWith("an exit status", "write the number: exits 0 is success")
		}
		n := p.name(p.advance())
		c.Exits = &n
	}
	if !p.accept("since") {
		return
	}
	c.Since = append(c.Since, p.event("write"))
	// `or` goes on with an event here, or with the next condition.
	for p.is("or") && p.eventFollows() {
		p.advance()
		c.Since = append(c.Since, p.event("write"))
	}
}

// peek returns the nth token after the current one.
func (p *parser) peek(n int) (t token) {
	ahead := p.scanner
	ahead.errs, ahead.comments = nil, nil
	for range n {
		t = ahead.next()
	}
	return t
}

// eventFollows tells whether the next token names an operation.
func (p *parser) eventFollows() bool {
	t := p.peek(1)
	return t.kind == tokWord && contains(opWords, t.text)
}

// event reads an event; usual is the operation that one without is mostly about.
func (p *parser) event(usual string) *Event {
	start := p.tok.span.Start
	if !p.isOneOf(opWords) {
		p.unknownWith(p.eventHint(usual), "an event", "exec", "open", "read", "write", "unlink")
	}
	e := &Event{Op: p.name(p.advance())}
	e.Kind, e.Pattern, e.Args = p.object(e.Op.Text)
	e.Span = p.from(start)
	return e
}
