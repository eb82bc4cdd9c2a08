// SPDX-License-Identifier: Apache-2.0

package syntax

import (
	"strings"
	"unicode/utf8"

	"github.com/actplane/actplane/policy/diag"
)

// maxErrors ends the reading of a text that is something else altogether.
const maxErrors = 1000

// scanner cuts a text into tokens and reports what is none.
type scanner struct {
	text     *diag.Text
	src      []byte
	at       int
	fresh    bool // no token yet on this line
	comments []Comment
	errs     diag.List
}

func (s *scanner) next() token {
	if len(s.errs) >= maxErrors {
		s.at = len(s.src)
	}
	s.skip()
	t := token{span: diag.Span{Start: s.at, End: s.at}, first: s.fresh}
	s.fresh = false
	if s.at == len(s.src) {
		t.first = true
		return t
	}
	c := s.src[s.at]
	switch {
	case c == '"':
		t.kind, t.text = s.str()
	case isLetter(c):
		t.kind = tokWord
		s.word()
	case c >= '0' && c <= '9':
		t.kind = tokNumber
		s.word()
	default:
		t.kind = s.punctuation(c)
	}
	t.span.End = s.at
	if t.kind != tokString {
		t.text = string(s.src[t.span.Start:t.span.End])
	}
	return t
}

// skip passes over blanks and keeps comments.
func (s *scanner) skip() {
	for s.at < len(s.src) {
		switch s.src[s.at] {
		case '\n':
			s.fresh = true
			s.at++
		case ' ', '\t', '\r':
			s.at++
		case '#':
			start := s.at
			for s.at < len(s.src) && s.src[s.at] != '\n' {
				s.at++
			}
			span := diag.Span{Start: start, End: s.at}
			s.comments = append(s.comments, Comment{Span: span, Text: string(s.src[start:s.at])})
		default:
			return
		}
	}
}

func (s *scanner) word() {
	for s.at < len(s.src) {
		c := s.src[s.at]
		if !isLetter(c) && (c < '0' || c > '9') && c != '-' && c != '.' {
			return
		}
		s.at++
	}
}

func (s *scanner) punctuation(c byte) tokenKind {
	start := s.at
	s.at++
	switch c {
	case ':':
		return tokColon
	case '=':
		return tokEqual
	case '(':
		return tokLeft
	case ')':
		return tokRight
	}
	s.bad(start)
	return tokBad
}

// bad reports a character that begins no token.
func (s *scanner) bad(start int) {
	r, n := utf8.DecodeRune(s.src[start:])
	s.at = start + n
	d := s.text.New(diag.BadCharacter, diag.Span{Start: start, End: s.at}, "character %q has no meaning here", string(r))
	// The rest of such a word would only give more errors.
	for s.at < len(s.src) && !strings.ContainsRune(" \t\r\n\"():=#", rune(s.src[s.at])) {
		s.at++
	}
	switch {
	case strings.ContainsRune("'“”‘’„«»`", r):
		d = d.WithHint(`strings stand in straight double quotes: "…"`)
	case strings.ContainsRune("/*@~.$", r):
		d = d.WithHint("patterns stand in double quotes: \"%s\"", s.src[start:s.at])
	case strings.ContainsRune("&|!", r):
		d = d.WithHint("write and, or, not")
	case r == '-':
		d = d.WithHint("arguments stand in double quotes: \"%s\"", s.src[start:s.at])
	}
	s.errs = append(s.errs, d)
}

// str reads a string. It ends on its line; \" \\ \n and \t are escapes, and any
// other backslash stays, so that patterns can use it for their own.
func (s *scanner) str() (tokenKind, string) {
	start := s.at
	var b strings.Builder
	for s.at++; s.at < len(s.src) && s.src[s.at] != '\n'; s.at++ {
		switch c := s.src[s.at]; c {
		case '"':
			s.at++
			return tokString, b.String()
		case '\\':
			if s.at+1 == len(s.src) || !unescape(&b, s.src[s.at+1]) {
				b.WriteByte(c)
				continue
			}
			s.at++
		default:
			b.WriteByte(c)
		}
	}
	s.errs = append(s.errs, s.text.New(diag.UnterminatedString, diag.Span{Start: start, End: s.at},
		"the string that begins here has no closing quote on its line").WithHint(`end it with "; a quote inside is written \"`))
	return tokString, b.String()
}

func unescape(b *strings.Builder, c byte) bool {
	switch c {
	case '"', '\\':
		b.WriteByte(c)
	case 'n':
		b.WriteByte('\n')
	case 't':
		b.WriteByte('\t')
	default:
		return false
	}
	return true
}

func isLetter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
}
