// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/actplane/actplane/policy/diag"
	"github.com/actplane/actplane/policy/syntax"
)

// badYAML reports a syntax error. The library tells the line only, and that not
// well, and mostly not what is wrong.
func (r *reader) badYAML(err error) {
	line, message := 1, strings.TrimPrefix(err.Error(), "yaml: ")
	if m := regexp.MustCompile(`^line (\d+): `).FindStringSubmatch(message); m != nil {
		line, _ = strconv.Atoi(m[1])
		message = message[len(m[0]):]
		if regexp.MustCompile(`^did not find expected (key|'-' indicator|',' or|node content|<)`).MatchString(message) {
			line++ // the library's parser, other than its scanner, counts from 0
		}
	}
	line = max(1, min(line, r.text.Lines()))
	if r.unknownAnchor(message) || r.tabIndent(line, message) || r.strayText(line, message) || r.notClosed(line) {
		return
	}
	d := r.atLine(line, indent(r.text.Line(line)), "the file is not YAML: %s", message)
	d.Hint = r.yamlHint(line, message)
	r.diags = append(r.diags, d)
}

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// atLine makes a diagnostic about a character of a line, which is given by its byte.
func (r *reader) atLine(line, offset int, format string, args ...any) diag.Diagnostic {
	at := r.text.Offset(diag.Pos{Line: line, Col: 1}) + offset
	return r.text.New(diag.BadYAML, diag.Span{Start: at, End: at + 1}, format, args...)
}

// tabIndent reports a tab that indents a line near the one where an error was found.
// Of a tab in a block of text, the library tells where the block begins.
func (r *reader) tabIndent(line int, message string) bool {
	last := min(line+1, r.text.Lines())
	if strings.Contains(message, "tab character") {
		last = r.text.Lines()
	}
	for n := max(1, line-1); n <= last; n++ {
		text := r.text.Line(n)
		blank := text[:len(text)-len(strings.TrimLeft(text, " \t"))]
		if tab := strings.IndexByte(blank, '\t'); tab >= 0 {
			r.diags = append(r.diags, r.atLine(n, tab, "a tab cannot indent a line of YAML").
				WithHint("indent with spaces"))
			return true
		}
	}
	return false
}

// strayText reports a line of the policy text that is indented less than the text,
// so that YAML takes it for something else.
func (r *reader) strayText(line int, message string) bool {
	if !regexp.MustCompile(`expected ':'|expected key|mapping values are not allowed`).MatchString(message) {
		return false
	}
	key := r.textAbove(line)
	for n := key + 1; key > 0 && n <= min(line+1, r.text.Lines()); n++ {
		text := strings.TrimLeft(r.text.Line(n), " ")
		word, _, _ := strings.Cut(text, " ")
		if at := indent(r.text.Line(n)); at < r.textIndent(key) && (syntax.Begins(word) || strings.HasPrefix(text, "#") && r.textGoesOn(n, r.textIndent(key))) {
			r.diags = append(r.diags, r.atLine(n, at, "this line is not indented like the policy text above it, so the text ends before it").
				WithHint("indent it with %d spaces or more, as the text that begins at line %d", r.textIndent(key), r.text.Above()+key+1))
			return true
		}
	}
	return false
}

// unknownAnchor reports an alias without its anchor: mostly an asterisk that should
// be in quotes. The library does not tell where it stands.
func (r *reader) unknownAnchor(message string) bool {
	m := regexp.MustCompile(`^unknown anchor '(.*)' referenced`).FindStringSubmatch(message)
	if m == nil {
		return false
	}
	alias := regexp.MustCompile(`[-:,[{] *(\*` + regexp.QuoteMeta(m[1]) + `)(?:[ ,\]}]|$)`)
	for n := 1; n <= r.text.Lines(); n++ {
		if found := alias.FindStringSubmatchIndex(r.text.Line(n)); found != nil {
			r.diags = append(r.diags, r.atLine(n, found[2], "there is no anchor &%s", m[1]).
				WithHint("a value that begins with * stands in quotes: \"*%s\"", m[1]))
			return true
		}
	}
	return false
}

// notClosed reports a quote or bracket above a line, on the nearest line that has
// one and does not close it.
func (r *reader) notClosed(line int) bool {
	value := regexp.MustCompile(`^ *(?:- +)?(?:[\w."-]+ *: +)?(["'\[{].*)$`)
	for n := line; n > 0 && n > line-maxNotClosed; n-- {
		m := value.FindStringSubmatch(r.text.Line(n))
		if m == nil {
			continue
		}
		open := m[1][0]
		at := len(r.text.Line(n)) - len(m[1])
		switch {
		case open == '"' || open == '\'':
			if strings.Count(m[1], string(open))%2 == 0 || strings.Count(m[1], `\"`) > 0 {
				continue
			}
			r.diags = append(r.diags, r.atLine(n, at, "the quote that begins here is not closed on its line").
				WithHint("close it with %c; a text of several lines stands below `KEY: |`", open))
			return true
		case r.balance(n) > 0:
			r.diags = append(r.diags, r.atLine(n, at, "the %c that begins here is not closed", open).
				WithHint("close it with %c", closing(open)))
			return true
		}
	}
	return false
}

// maxNotClosed bounds how far above an error its cause is looked for.
const maxNotClosed = 100

func closing(open byte) byte {
	if open == '[' {
		return ']'
	}
	return '}'
}

// balance returns how many brackets more are opened than closed, outside of double
// quotes, from a line to the next that begins with a key of the file.
func (r *reader) balance(from int) int {
	depth := 0
	for n := from; n <= r.text.Lines(); n++ {
		text := r.text.Line(n)
		if word, _, ok := strings.Cut(text, ":"); n > from && ok && slices.Contains(fileKeys, word) {
			break
		}
		quoted := false
		for i := range len(text) {
			switch c := text[i]; {
			case c == '"' && (i == 0 || text[i-1] != '\\'):
				quoted = !quoted
			case quoted:
			case c == '[' || c == '{':
				depth++
			case c == ']' || c == '}':
				depth--
			}
		}
	}
	return depth
}

// textGoesOn tells whether the line after n that is not blank is indented as a text.
func (r *reader) textGoesOn(n, by int) bool {
	for n++; n <= r.text.Lines(); n++ {
		if text := r.text.Line(n); strings.TrimSpace(text) != "" {
			return indent(text) >= by
		}
	}
	return false
}

// textAbove returns the line of the nearest `policy: |` at or above a line, 0 for none.
func (r *reader) textAbove(line int) int {
	key := regexp.MustCompile(`^ *(policy|ifc): *[|>]`)
	for n := min(line, r.text.Lines()); n > 0; n-- {
		if key.MatchString(r.text.Line(n)) {
			return n
		}
	}
	return 0
}

// textIndent returns how far the text below a line is indented; 0 for line 0.
func (r *reader) textIndent(line int) int {
	if line == 0 {
		return 0
	}
	for n := line + 1; n <= r.text.Lines(); n++ {
		if text := r.text.Line(n); strings.TrimSpace(text) != "" {
			return indent(text)
		}
	}
	return 0
}

// yamlHint says what a syntax error mostly comes from.
func (r *reader) yamlHint(line int, message string) string {
	begun := regexp.MustCompile(`^ *(policy|ifc):( *[|>][-+0-9]* +[^ #].*| *[^ |>"'{&*!#].*|\|.*)?$`)
	for n := 1; n <= r.text.Lines(); n++ {
		m := begun.FindStringSubmatch(r.text.Line(n))
		switch {
		case m == nil:
		case m[2] == "":
			return fmt.Sprintf("line %d must end in |, so that the text below it is taken as it is", r.text.Above()+n)
		default:
			return fmt.Sprintf("line %d must be `%s: |`, with the text on the lines below it", r.text.Above()+n, m[1])
		}
	}
	switch {
	case strings.Contains(message, "alphabetic or numeric character"):
		return `a value that begins with * or & stands in quotes: "*.md"`
	case strings.Contains(message, "cannot start any token"):
		return "a value that begins with @, ` or % stands in quotes"
	case strings.Contains(message, "expected key"):
		return "indent it like the lines that it belongs to; a text below | is indented at least as far as its first line"
	case strings.Contains(message, "expected ','"):
		return "a comma is missing before it"
	case strings.Contains(message, "expected ':'"):
		return "a line of the file is KEY: VALUE"
	case strings.Contains(message, "mapping values are not allowed"):
		return r.colonHint(line)
	}
	return ""
}

// colonHint is about a colon where none may be: the line before has none, or the
// value should be in quotes.
func (r *reader) colonHint(line int) string {
	if m := regexp.MustCompile(`^ *(\w+): +(\w+: .*)$`).FindStringSubmatch(r.text.Line(line)); m != nil {
		return fmt.Sprintf("write %s: {%s}", m[1], m[2])
	}
	for n := line - 1; n > 0; n-- {
		before := strings.TrimSpace(r.text.Line(n))
		if before == "" || before[0] == '#' {
			continue
		}
		first, rest, ok := strings.Cut(before, " ")
		switch {
		case ok && !strings.Contains(before, ":"):
			return fmt.Sprintf("line %d has no colon: write %s: %s", r.text.Above()+n, first, rest)
		case ok && strings.HasSuffix(first, ":") && indent(r.text.Line(line)) > indent(r.text.Line(n)):
			return fmt.Sprintf("indent it as line %d, with %d spaces", r.text.Above()+n, indent(r.text.Line(n)))
		}
		break
	}
	return "a text with a colon in it stands in quotes"
}
