// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"regexp"
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
	if r.tabIndent(line, message) || r.strayText(line, message) {
		return
	}
	text := r.text.Line(line)
	d := r.atLine(line, len(text)-len(strings.TrimLeft(text, " ")), "the file is not YAML: %s", message)
	d.Hint = r.yamlHint(line, message)
	r.diags = append(r.diags, d)
}

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
		text := r.text.Line(n)
		indent := len(text) - len(strings.TrimLeft(text, " "))
		word, _, _ := strings.Cut(text[indent:], " ")
		if syntax.Begins(word) && indent < r.textIndent(key) {
			r.diags = append(r.diags, r.atLine(n, indent, "this line is not indented like the policy text above it, so the text ends before it").
				WithHint("indent it with %d spaces or more, as the text that begins at line %d", r.textIndent(key), key+1))
			return true
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
			return len(text) - len(strings.TrimLeft(text, " "))
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
			return fmt.Sprintf("line %d must end in |, so that the text below it is taken as it is", n)
		default:
			return fmt.Sprintf("line %d must be `%s: |`, with the text on the lines below it", n, m[1])
		}
	}
	switch {
	case strings.Contains(message, "alphabetic or numeric character"):
		return `a value that begins with * or & stands in quotes: "*.md"`
	case strings.Contains(message, "cannot start any token"):
		return "a value that begins with @, ` or % stands in quotes"
	case strings.Contains(message, "expected key"):
		return "indent it like the lines that it belongs to; a text below | is indented at least as far as its first line"
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
		if first, rest, ok := strings.Cut(before, " "); ok && !strings.Contains(before, ":") {
			return fmt.Sprintf("line %d has no colon: write %s: %s", n, first, rest)
		}
		break
	}
	return "a text with a colon in it stands in quotes"
}
