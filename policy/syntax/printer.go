// SPDX-License-Identifier: Apache-2.0

package syntax

import (
	"strings"
	"unicode/utf8"

	"github.com/actplane/actplane/policy/diag"
)

// Format returns a policy text in its canonical form: a declaration, a clause and
// a reason a line, clauses indented by two, one blank between words, comments where
// they were. Words and strings stay as they are written, and so do single empty
// lines, and line breaks before the conditions of a clause. A text with errors is
// returned as they are found, without a form.
func Format(text *diag.Text) (string, diag.List) {
	file, diags := Parse(text)
	if diags.Errors() > 0 {
		return "", diags
	}
	p := printer{src: text.Body, pads: map[int]int{}}
	p.items = items(text, file)
	p.align()
	for i := range p.items {
		p.item(i)
	}
	if p.out.Len() > 0 {
		p.out.WriteByte('\n')
	}
	return p.out.String(), nil
}

// role tells what an item begins.
type role uint8

const (
	inside  role = iota // nothing: it goes on with what is there
	break4              // a condition: it may stand on a line of its own
	clause2             // a clause or a reason
	decl0               // a declaration
	comment
)

// item is a token or a comment, in the order in which they stand.
type item struct {
	token
	role role
	own  bool // a comment that has its line for itself
}

// items returns the tokens and comments of a text without errors.
func items(text *diag.Text, file *File) []item {
	roles := map[int]role{}
	for _, d := range file.Sources {
		roles[d.Span.Start] = decl0
	}
	for _, d := range file.Transforms {
		roles[d.Span.Start] = decl0
	}
	for _, d := range file.Defaults {
		roles[d.Span.Start] = decl0
	}
	for _, r := range file.Rules {
		roles[r.Span.Start] = decl0
		for _, c := range r.Clauses {
			roles[c.Span.Start] = clause2
		}
	}
	var out []item
	s := scanner{text: text, src: text.Body, fresh: true}
	name := false // a rule's name may be any word
	for seen := 0; ; {
		t := s.next()
		for ; seen < len(s.comments); seen++ {
			c := s.comments[seen]
			out = append(out, item{token: token{span: c.Span}, role: comment, own: startsItsLine(text.Body, c.Span.Start)})
		}
		if t.kind == tokEOF {
			return out
		}
		r := roles[t.span.Start]
		if r == inside && t.kind == tokWord && !name {
			switch t.text {
			case "because":
				r = clause2
			case "if", "unless", "and", "or", "since":
				r = break4
			}
		}
		name = r == decl0 && t.text == "rule"
		out = append(out, item{token: t, role: r})
	}
}

func startsItsLine(src []byte, at int) bool {
	for at--; at >= 0 && src[at] != '\n'; at-- {
		if src[at] != ' ' && src[at] != '\t' && src[at] != '\r' {
			return false
		}
	}
	return true
}

type printer struct {
	src   []byte
	items []item
	pads  map[int]int // the blanks to add before the item of this index
	out   strings.Builder
}

// align puts the = of sources on successive lines below each other.
func (p *printer) align() {
	var group []int // the indexes of their =
	flush := func() {
		widest := 0
		for _, i := range group {
			widest = max(widest, p.width(i-1))
		}
		for _, i := range group {
			p.pads[i] = widest - p.width(i-1)
		}
		group = nil
	}
	for i, it := range p.items {
		switch {
		case it.role == comment && !it.own:
		case it.role == comment, it.role == decl0 && (it.text != "source" || p.emptyBefore(i)):
			flush()
		}
		// Only `source LABEL =` on neighbouring items: no comment is between.
		if it.kind == tokEqual && i >= 2 && p.items[i-2].role == decl0 && p.items[i-1].role != comment {
			group = append(group, i)
		}
	}
	flush()
}

func (p *printer) width(i int) int { return utf8.RuneCountInString(p.raw(i)) }

func (p *printer) raw(i int) string {
	return strings.TrimRight(string(p.src[p.items[i].span.Start:p.items[i].span.End]), " \t\r")
}

// breaks returns how many lines end between an item and the one before it.
func (p *printer) breaks(i int) int {
	if i == 0 {
		return 0
	}
	return strings.Count(string(p.src[p.items[i-1].span.End:p.items[i].span.Start]), "\n")
}

func (p *printer) emptyBefore(i int) bool { return p.breaks(i) > 1 }

// item writes an item and the blanks or line ends before it.
func (p *printer) item(i int) {
	it := p.items[i]
	indent := -1 // on the same line
	switch {
	case it.role == decl0:
		indent = 0
	case it.role == clause2:
		indent = 2
	case it.role == comment && it.own:
		indent = p.commentIndent(i)
	case i > 0 && p.items[i-1].role == comment, it.role == break4 && p.breaks(i) > 0:
		if it.role != comment {
			indent = 4
		}
	}
	switch {
	case i == 0:
	case indent >= 0:
		p.out.WriteByte('\n')
		if p.emptyBefore(i) && indent < 4 && p.items[i-1].kind != tokColon {
			p.out.WriteByte('\n')
		}
		p.out.WriteString(strings.Repeat(" ", indent))
	case it.role == comment:
		p.out.WriteString("  ")
	case it.kind == tokColon || it.kind == tokRight || p.items[i-1].kind == tokLeft:
	default:
		p.out.WriteString(strings.Repeat(" ", 1+p.pads[i]))
	}
	p.out.WriteString(p.raw(i))
}

// commentIndent returns the indent of a comment with a line of its own: that of
// what follows it. One that ends a rule stays in it when it stands further in than
// the rule.
func (p *printer) commentIndent(i int) int {
	next := i + 1
	for next < len(p.items) && p.items[next].role == comment {
		next++
	}
	if next < len(p.items) && p.items[next].role != decl0 {
		if p.items[next].role == clause2 {
			return 2
		}
		return 4
	}
	for before := i - 1; before >= 0; before-- {
		if p.items[before].role != decl0 {
			continue
		}
		if p.items[before].text == "rule" && p.column(i) > p.column(before) {
			return 2
		}
		break
	}
	return 0
}

// column returns how far in an item stands.
func (p *printer) column(i int) int {
	start := p.items[i].span.Start
	return start - strings.LastIndexByte(string(p.src[:start]), '\n') - 1
}
