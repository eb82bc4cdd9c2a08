// SPDX-License-Identifier: Apache-2.0

package syntax

import (
	"fmt"
	"strings"

	"github.com/actplane/actplane/policy/diag"
)

// MaxDepth and MaxOperands bound an expression.
const (
	MaxDepth    = 64
	MaxOperands = 512
)

// Parse reads a whole policy text. The file holds all declarations that could
// be read, also when the list has errors.
func Parse(text *diag.Text) (*File, diag.List) {
	p := &parser{scanner: scanner{text: text, src: text.Body, fresh: true}, file: &File{}}
	p.advance()
	for p.tok.kind != tokEOF {
		p.declaration()
	}
	p.file.Comments = p.comments
	return p.file, p.errs
}

// ParseExpr reads a text that is one expression; nil when it cannot be read.
func ParseExpr(text *diag.Text) (Expr, diag.List) {
	p := &parser{scanner: scanner{text: text, src: text.Body}, file: &File{}}
	p.advance()
	var e Expr
	p.guarded(func() {
		e = p.or(0)
		if p.tok.kind != tokEOF {
			p.fail("the end of the condition")
		}
	})
	if len(p.errs) > 0 {
		return nil, p.errs
	}
	return e, nil
}

type parser struct {
	scanner
	tok  token
	last int // where the token before tok ends
	prev tokenKind
	file *File
	// operands counts those of the expression that is being read.
	operands int
}

// bailout leaves a declaration or clause that cannot be read further; the
// error is already reported. Only sync catches it.
type bailout struct{}

func (p *parser) advance() token {
	t := p.tok
	p.last, p.prev = t.span.End, t.kind
	p.tok = p.next()
	return t
}

func (p *parser) errorf(code diag.Code, at diag.Span, format string, args ...any) {
	p.errs = append(p.errs, p.text.New(code, at, format, args...))
}

// fail reports that something else was expected and gives up.
func (p *parser) fail(expected string) { p.failWith(expected, "") }

// failWith is fail with a hint.
func (p *parser) failWith(expected, hint string) {
	if p.tok.kind == tokBad {
		panic(bailout{}) // the scanner has said it
	}
	at, found := p.tok.span, `"`+p.tok.text+`"`
	switch {
	case p.tok.kind == tokEOF:
		found = "the end of the policy"
	case p.startsLine():
		found = "the end of the line"
	case p.tok.kind == tokString:
		found = "a string"
	}
	if p.startsLine() && p.last > 0 { // the mistake is where the text stops
		at = diag.Span{Start: p.last - 1, End: p.last}
	}
	p.errs = append(p.errs, p.text.New(diag.Unexpected, at, "expected %s, found %s", expected, found).WithHint("%s", hint))
	panic(bailout{})
}

// unknown reports a word that is none of those possible here and gives up.
func (p *parser) unknown(what string, words ...string) {
	p.unknownWith("", what, words...)
}

// unknownWith is unknown with a hint for what is no word.
func (p *parser) unknownWith(hint, what string, words ...string) {
	if p.tok.kind != tokWord {
		p.failWith(what, hint)
	}
	d := p.text.New(diag.UnknownWord, p.tok.span, "expected %s, found %q", what, p.tok.text)
	if s := meant(p.tok.text, words); s != "" {
		d = d.WithHint("did you mean %q?", s)
	} else if len(words) > 0 {
		d = d.WithHint("possible here: %s", strings.Join(words, ", "))
	}
	p.errs = append(p.errs, d)
	panic(bailout{})
}

// guarded runs f and, when it gives up, skips to the next line that can begin a
// clause or a declaration.
func (p *parser) guarded(f func()) {
	defer func() {
		switch r := recover(); r.(type) {
		case nil:
		case bailout:
			p.sync()
		default:
			panic(r)
		}
	}()
	f()
}

func (p *parser) sync() {
	for !p.startsLine() {
		p.advance()
	}
}

// startsLine tells whether the token stands at the beginning of a line and does
// not go on with a clause: what follows it is read afresh after an error.
func (p *parser) startsLine() bool {
	t := p.tok
	switch {
	case t.kind == tokEOF:
		return true
	case !t.first || t.kind != tokWord:
		return false
	case t.text == "because" || p.startsClause():
		return true
	}
	return !contains(otherWords, t.text) && !contains(condWords, t.text) && !contains(kindWords, t.text)
}

func (p *parser) is(word string) bool { return p.tok.kind == tokWord && p.tok.text == word }

func (p *parser) accept(word string) bool {
	if p.is(word) {
		p.advance()
		return true
	}
	return false
}

func (p *parser) isOneOf(words []string) bool {
	return p.tok.kind == tokWord && contains(words, p.tok.text)
}

func (p *parser) startsClause() bool { return p.isOneOf(effectWords) || p.isOneOf(opWords) }

func (p *parser) name(t token) Name { return Name{Span: t.span, Text: t.text} }

// from returns the span from a start to the end of what was read.
func (p *parser) from(start int) diag.Span { return diag.Span{Start: start, End: p.last} }

func (p *parser) declaration() {
	p.guarded(func() {
		switch {
		case p.is("source"):
			p.source()
		case p.is("rule"):
			p.rule()
		case p.is("declassify"), p.is("endorse"):
			p.transform()
		case p.is("default"):
			p.defaultDecl()
		case p.startsClause(), p.is("because"):
			t := p.tok
			p.errs = append(p.errs, p.text.New(diag.Unexpected, t.span, "%q stands outside a rule", t.text).
				WithHint("begin it with `rule NAME:`"))
			p.clause(&Rule{})
		default:
			p.unknownDeclaration()
		}
	})
}

// unknownDeclaration reports a word that begins no declaration. A misspelt rule
// or source is then read as one, so that what follows makes sense.
func (p *parser) unknownDeclaration() {
	switch meant := meant(p.tok.text, declWords); {
	case p.tok.kind != tokWord || meant != "rule" && meant != "source":
		defer p.advanceOnPanic()
		p.unknown("a declaration", declWords...)
	default:
		p.errs = append(p.errs, p.text.New(diag.UnknownWord, p.tok.span, "expected a declaration, found %q", p.tok.text).
			WithHint("did you mean %q?", meant))
		if meant == "rule" {
			p.rule()
		} else {
			p.source()
		}
	}
}

// advanceOnPanic keeps a token on which nothing can begin from being tried again.
func (p *parser) advanceOnPanic() {
	if r := recover(); r != nil {
		p.advance()
		panic(r)
	}
}

// newName reads a name that the policy gives to something.
func (p *parser) newName(what string) Name {
	if p.tok.kind != tokWord {
		p.fail(what)
	}
	t := p.advance()
	if reserved(t.text) && p.tok.kind != tokColon { // `rule block:` is clear
		p.errs = append(p.errs, p.text.New(diag.ReservedWord, t.span, "%q is a word of the language and cannot be %s", t.text, what))
	}
	return p.name(t)
}

func (p *parser) source() {
	start := p.advance().span.Start
	s := &Source{Label: p.newName("a label")}
	if p.tok.kind != tokEqual {
		p.failWith(`"="`, fmt.Sprintf("write: source %s = exec \"program\", or = file \"/path/**\", or = endpoint \"host\"", s.Label.Text))
	}
	p.advance()
	if !p.isOneOf(kindWords) {
		p.unknownWith(fmt.Sprintf("say what the pattern is about: source %s = file %q", s.Label.Text, p.tok.text), "file, endpoint or exec", kindWords...)
	}
	s.Kind = p.name(p.advance())
	s.Pattern = p.pattern()
	s.Span = p.from(start)
	p.file.Sources = append(p.file.Sources, s)
	p.endOfDeclaration()
}

// endOfDeclaration wants the next declaration or clause to follow.
func (p *parser) endOfDeclaration() {
	if p.tok.kind != tokEOF && !p.tok.first {
		p.fail("the end of the line")
	}
}

func (p *parser) transform() {
	verb := p.advance()
	t := &Transform{Verb: p.name(verb), Label: p.newName("a label")}
	if !p.accept("by") {
		p.unknown(`"by"`, "by")
	}
	if !p.accept("exec") {
		p.unknown(`"exec"`, "exec")
	}
	t.Pattern = p.pattern()
	t.Span = p.from(verb.span.Start)
	p.file.Transforms = append(p.file.Transforms, t)
	p.endOfDeclaration()
}

func (p *parser) defaultDecl() {
	start := p.advance().span.Start
	d := &Default{}
	if !p.isOneOf(effectWords) {
		p.unknown("an effect", effectWords...)
	}
	d.Effect = p.name(p.advance())
	if d.Effect.Text == "ask" && p.accept("hold") {
		d.Hold = p.duration()
	}
	if !p.isOneOf(opWords) {
		p.unknown("an operation", opWords...)
	}
	d.Op = p.name(p.advance())
	d.Span = p.from(start)
	p.file.Defaults = append(p.file.Defaults, d)
	p.endOfDeclaration()
}

func (p *parser) rule() {
	start := p.advance().span.Start
	before := len(p.errs)
	r := &Rule{}
	p.guarded(func() { // clauses that follow a bad header are still this rule's
		r.Name = p.newName("a rule's name")
		if p.tok.kind != tokColon {
			p.failWith(`":" after the rule's name`, p.nameHint(r.Name.Text))
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

// nameHint says how a rule's name is written.
func (p *parser) nameHint(name string) string {
	if p.tok.kind == tokWord && !p.tok.first {
		return fmt.Sprintf("a name has no blanks: rule %s-%s:", name, p.tok.text)
	}
	return fmt.Sprintf("write: rule %s:", name)
}

// inRule tells whether what follows still belongs to the rule. An unknown word
// does: more often than not it is a misspelt operation.
func (p *parser) inRule() bool {
	return p.tok.kind != tokEOF && !p.isOneOf(declWords)
}

func (p *parser) ruleItem(r *Rule) {
	switch {
	case p.is("because"):
		p.advance()
		if p.tok.kind != tokString {
			p.failWith("a string with the reason", `write: because "the reason"`)
		}
		t := p.advance()
		if r.Because != nil {
			p.errorf(diag.Unexpected, t.span, "rule %q has a reason already", r.Name.Text)
		}
		n := p.name(t)
		r.Because = &n
	case p.startsClause():
		if r.Because != nil {
			p.errs = append(p.errs, p.text.New(diag.ClauseAfterBecause, p.tok.span, "because ends rule %q, so this clause belongs to no rule", r.Name.Text).
				WithHint("put because after the last clause, or begin another rule"))
		}
		p.clause(r)
	default:
		p.unknownItem()
	}
}

func (p *parser) unknownItem() {
	defer p.advanceOnPanic()
	var words []string
	words = append(words, effectWords...)
	words = append(words, opWords...)
	words = append(words, "because", "if", "unless")
	words = append(words, declWords...)
	if p.tok.kind == tokWord {
		d := p.text.New(diag.UnknownWord, p.tok.span, "expected a clause, found %q", p.tok.text)
		switch s := meant(p.tok.text, words); {
		case s != "":
			d = d.WithHint("did you mean %q?", s)
		case !p.tok.first && p.prev == tokString:
			d = d.WithHint("a quote is missing, or one too many: arguments are strings of their own: %q", p.tok.text)
		case !p.tok.first && p.prev == tokWord:
			d = d.WithHint("labels are joined with and or or")
		default:
			d = d.WithHint(`a clause is [effect] operation "pattern", such as: block exec "git" "push"`)
		}
		p.errs = append(p.errs, d)
		panic(bailout{})
	}
	p.fail("a clause")
}

func (p *parser) clause(r *Rule) {
	if p.is("because") { // outside a rule
		p.advance()
		panic(bailout{})
	}
	start := p.tok.span.Start
	c := &Clause{}
	if p.isOneOf(effectWords) {
		n := p.name(p.advance())
		c.Effect = &n
		if n.Text == "ask" && p.accept("hold") {
			c.Hold = p.duration()
		}
	}
	if !p.isOneOf(opWords) {
		if p.is("if") || p.is("unless") {
			p.failWith("an operation", "conditions come after the pattern: block exec \"program\" if LABEL")
		}
		p.unknownWith(fmt.Sprintf("say what is done with it: block exec %q", p.tok.text), "an operation", opWords...)
	}
	c.Op = p.name(p.advance())
	c.Kind, c.Pattern, c.Args = p.object()
	if p.accept("if") {
		p.operands = 0
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
		p.fail("a duration such as 5m")
	}
	n := p.name(p.advance())
	return &n
}

// object reads `[KIND] PATTERN ARG…`.
func (p *parser) object() (kind *Name, pattern Pattern, args []Name) {
	if p.isOneOf(kindWords) {
		n := p.name(p.advance())
		kind = &n
	}
	pattern = p.pattern()
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
	case p.isOneOf(effectWords) && !p.tok.first:
		p.failWith("a pattern", fmt.Sprintf("the effect comes first: %s exec \"program\"", p.tok.text))
	case p.tok.kind == tokWord && !p.tok.first:
		p.errs = append(p.errs, p.text.New(diag.Unexpected, p.tok.span, "expected a pattern, found %q", p.tok.text).
			WithHint("patterns stand in double quotes: %q", p.tok.text))
		panic(bailout{})
	}
	p.fail("a pattern in quotes, or any")
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
			p.fail(`")"`)
		}
		p.advance()
		return &Paren{X: x, Span: p.from(start)}
	case p.tok.kind == tokWord && !reserved(p.tok.text):
		return &Label{Name: p.name(p.advance())}
	}
	p.fail("a label")
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
			p.unknown(`"exec"`, "exec")
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
		p.unknown("a condition", condWords...)
	}
	c.Span = p.from(start)
	return c
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
	c.After = p.event()
	if p.accept("exits") {
		if p.tok.kind != tokNumber {
			p.fail("an exit status")
		}
		n := p.name(p.advance())
		c.Exits = &n
	}
	if !p.accept("since") {
		return
	}
	c.Since = append(c.Since, p.event())
	// `or` goes on with an event here, or with the next condition.
	for p.is("or") && p.eventFollows() {
		p.advance()
		c.Since = append(c.Since, p.event())
	}
}

// eventFollows looks past the current token for the name of an operation.
func (p *parser) eventFollows() bool {
	ahead := p.scanner
	ahead.errs, ahead.comments = nil, nil
	t := ahead.next()
	return t.kind == tokWord && contains(opWords, t.text)
}

func (p *parser) event() *Event {
	start := p.tok.span.Start
	if !p.isOneOf(opWords) {
		p.unknownWith(fmt.Sprintf("name the operation: exec %q", p.tok.text), "an event", "exec", "open", "read", "write", "unlink")
	}
	e := &Event{Op: p.name(p.advance())}
	e.Kind, e.Pattern, e.Args = p.object()
	e.Span = p.from(start)
	return e
}
