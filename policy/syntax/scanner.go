// SPDX-License-Identifier: Apache-2.0

package syntax

import (
	"bytes"
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
		t.kind, t.clear = s.punctuation(c, t.first)
	}
	t.span.End = s.at
	switch t.kind {
	case tokString:
	case tokBad:
		_, n := utf8.DecodeRune(s.src[t.span.Start:])
		t.text = string(s.src[t.span.Start : t.span.Start+n])
	default:
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

// punctuation reads what is neither word nor string. Of a character that begins no
// token, clear tells whether what was meant is plain.
func (s *scanner) punctuation(c byte, first bool) (kind tokenKind, clear bool) {
	start := s.at
	s.at++
	switch c {
	case ':':
		return tokColon, false
	case '=':
		return tokEqual, false
	case '(':
		return tokLeft, false
	case ')':
		return tokRight, false
	}
	return tokBad, s.bad(start, first)
}

// bad reports a character that begins no token.
func (s *scanner) bad(start int, first bool) (clear bool) {
	r, n := utf8.DecodeRune(s.src[start:])
	s.at = start + n
	d := s.text.New(diag.BadCharacter, diag.Span{Start: start, End: s.at}, "character %q has no meaning here", string(r))
	// The rest of such a word would only give more errors.
	for s.at < len(s.src) && !strings.ContainsRune(" \t\r\n\"():=#,;", rune(s.src[s.at])) {
		s.at++
	}
	word := string(s.src[start:s.at])
	clear = true
	switch {
	case strings.HasPrefix(word, "//"), strings.HasPrefix(word, "/*"), word == "--", first && (r == ';' || r == '%'):
		s.at += len(s.line(s.at))
		d = d.WithHint("a comment begins with #")
	case closingQuote(r) != 0:
		d = d.WithHint(`strings stand in straight double quotes: "%s"`, s.otherQuotes(start+n, r))
	case word == "-" && first:
		s.fresh = true // what follows begins the line
		d = d.WithHint("these lines are no list: leave the - out")
	case r == '-':
		clear = false
		d = d.WithHint("arguments stand in double quotes: %q", word)
	case strings.ContainsRune("&|!", r) && !strings.ContainsAny(word, "/."):
		clear = false
		d = d.WithHint("write and, or, not")
	case word == "@arg":
		d = d.WithHint("arguments follow the pattern: exec \"git\" \"push\"")
	case word == "*":
		clear = false
		d = d.WithHint("for everything write any; patterns stand in double quotes")
	case strings.ContainsRune("/*@~.$?", r):
		clear = false
		d = d.WithHint("patterns stand in double quotes: \"%s\"", word)
	case r == '{', r == '}':
		clear = r == '}'
		d = d.WithHint("a rule has no braces: rule NAME: and its clauses, up to the next rule")
	case r == ';':
		clear = strings.TrimSpace(s.line(s.at)) == ""
		d = d.WithHint("nothing ends a clause: leave it out")
	default:
		clear = false
	}
	s.errs = append(s.errs, d)
	return clear
}

// line returns the text from an offset to the end of its line.
func (s *scanner) line(from int) string {
	rest := s.src[from:]
	if end := bytes.IndexByte(rest, '\n'); end >= 0 {
		rest = rest[:end]
	}
	return string(rest)
}

// closingQuote returns the quotation mark that ends what one begins, 0 for what
// is none.
func closingQuote(r rune) rune {
	switch r {
	case '\'', '`':
		return r
	case '“', '”', '„':
		return '”'
	case '‘', '’', '‚':
		return '’'
	case '«':
		return '»'
	}
	return 0
}

// otherQuotes passes over what stands in quotation marks that are none here, and
// returns it; … when they don't end on the line.
func (s *scanner) otherQuotes(start int, open rune) string {
	line := s.line(start)
	end := strings.IndexRune(line, closingQuote(open))
	if end < 0 {
		return "…"
	}
	s.at = start + end + utf8.RuneLen(closingQuote(open))
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(line[:end])
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
	d := s.text.New(diag.UnterminatedString, diag.Span{Start: start, End: s.at},
		"the string that begins here has no closing quote on its line")
	if s.closesLater() {
		d = d.WithHint(`a string ends on its line: write it on one; \n in it is a line break`)
	} else {
		d = d.WithHint(`end it with "; a quote inside is written \"`)
	}
	s.errs = append(s.errs, d)
	return tokString, b.String()
}

// maxStringLines bounds how far a string that is not closed is looked after.
const maxStringLines = 20

// closesLater tells whether a string goes on over the lines that follow, and passes
// over them: they would only give more errors. They do when one ends with the only
// quote of them all, before any begins as a clause or a declaration does.
func (s *scanner) closesLater() bool {
	at := s.at
	for range maxStringLines {
		if at++; at > len(s.src) {
			return false
		}
		line := s.line(at)
		word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		quote := strings.IndexByte(line, '"')
		switch {
		case Begins(word) || quote >= 0 && quote < len(strings.TrimRight(line, " \t\r"))-1:
			return false
		case quote >= 0:
			s.at = at + quote + 1
			return true
		}
		at += len(line)
	}
	return false
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
