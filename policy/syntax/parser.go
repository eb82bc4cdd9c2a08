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
	tok      token
	last     int // where the token before tok ends
	prev     tokenKind
	file     *File
	stringAt int // where the last string began
	// part and op are what was read last: a mistake that follows is mostly about it.
	part part
	op   string
	// again is another condition of the kind of the last one, or another event of its
	// since, with "…" for the pattern; "" where there is none.
	again string
	// operands counts those of the expression that is being read.
	operands int
}

// bailout leaves a declaration or clause that cannot be read further; the
// error is already reported. Only sync catches it.
type bailout struct{}

func (p *parser) advance() token {
	t := p.tok
	p.last, p.prev = t.span.End, t.kind
	if t.kind == tokString {
		p.stringAt = t.span.Start
	}
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
	if p.tok.kind == tokBad { // the scanner has said it, and knows less of what was meant
		if last := &p.errs[len(p.errs)-1]; hint != "" && !p.tok.clear {
			last.Hint = hint
		}
		panic(bailout{})
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
	} else if p.tok.kind == tokColon && hint == "" {
		hint = "leave the colon out"
	}
	p.errs = append(p.errs, p.text.New(diag.Unexpected, at, "expected %s, found %s", expected, found).WithHint("%s", hint))
	panic(bailout{})
}

// unknown reports a word that is none of those possible here and gives up.
func (p *parser) unknown(what string, words ...string) {
	p.unknownWith("", what, words...)
}

// unknownWith is unknown with a hint, without which the words are one.
func (p *parser) unknownWith(hint, what string, words ...string) {
	if p.tok.kind != tokWord || p.startsItem() {
		p.failWith(what, hint)
	}
	d := p.text.New(diag.UnknownWord, p.tok.span, "expected %s, found %q", what, p.tok.text)
	switch s := meant(p.tok.text, words); {
	case hint != "":
		d = d.WithHint("%s", hint)
	case s != "":
		d = d.WithHint("did you mean %q?", s)
	case len(words) > 0:
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

// startsItem tells whether the token begins a line with what can only be another
// clause or declaration.
func (p *parser) startsItem() bool {
	return p.tok.first && (p.is("because") || p.startsClause() || p.isOneOf(declWords))
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
	p.part = afterNothing
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
		p.unknownWith(p.declarationHint(), "a declaration", declWords...)
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
	if p.tok.kind == tokString && nameLike(strings.ReplaceAll(p.tok.text, " ", "-")) { // go on with what was meant
		t := p.advance()
		t.text = strings.ReplaceAll(t.text, " ", "-")
		p.errs = append(p.errs, p.text.New(diag.Unexpected, t.span, "%s stands without quotes", what).WithHint("write %s", t.text))
		return p.name(t)
	}
	if p.tok.kind != tokWord {
		p.failWith(what, p.nameHint())
	}
	t := p.advance()
	if reserved(t.text) && p.tok.kind != tokColon { // `rule block:` is clear
		p.errs = append(p.errs, p.text.New(diag.ReservedWord, t.span, "%q is a word of the language and cannot be %s", t.text, what).
			WithHint("choose another name"))
	}
	return p.name(t)
}

func (p *parser) source() {
	start := p.advance().span.Start
	s := &Source{Label: p.newName("a label")}
	p.declaring(s.Label, func() {
		if p.tok.kind != tokEqual {
			p.failWith(`"="`, fmt.Sprintf("write: source %s = exec \"program\", or = file \"/path/**\", or = endpoint \"host\"", s.Label.Text))
		}
		p.advance()
		if !p.isOneOf(kindWords) {
			p.unknownWith(p.sourceHint(s.Label.Text), "file, endpoint or exec", kindWords...)
		}
		s.Kind = p.name(p.advance())
		s.Pattern = p.pattern()
		s.Span = p.from(start)
		p.file.Sources = append(p.file.Sources, s)
		p.endOfDeclaration(afterSource)
	})
}

// declaring notes a label whose declaration cannot be read: it is declared all the
// same, and what uses it is no mistake.
func (p *parser) declaring(label Name, f func()) {
	done := false
	defer func() {
		if !done {
			p.file.Misread = append(p.file.Misread, label)
		}
	}()
	f()
	done = true
}

// endOfDeclaration wants the next declaration to follow, on whatever line, or a clause
// on the next one: what else follows is mostly a part that a declaration does not have.
func (p *parser) endOfDeclaration(part part) {
	if p.part = part; p.tok.kind != tokEOF && !p.tok.first && !p.isOneOf(declWords) {
		p.failWith("the end of the line", p.trailingHint())
	}
}

func (p *parser) transform() {
	verb := p.advance()
	t := &Transform{Verb: p.name(verb), Label: p.newName("a label")}
	p.declaring(t.Label, func() {
		if !p.accept("by") {
			p.unknownWith(fmt.Sprintf("write: %s %s by exec \"program\"", verb.text, t.Label.Text), `"by"`, "by")
		}
		if !p.accept("exec") {
			p.unknownWith(p.execHint("by"), `"exec"`, "exec")
		}
		t.Pattern = p.pattern()
		t.Span = p.from(verb.span.Start)
		p.file.Transforms = append(p.file.Transforms, t)
		p.endOfDeclaration(afterSource)
	})
}

func (p *parser) defaultDecl() {
	start := p.advance().span.Start
	d := &Default{}
	if !p.isOneOf(effectWords) {
		p.unknownWith(p.defaultHint(), "an effect", effectWords...)
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
	p.endOfDeclaration(afterDefault)
}
