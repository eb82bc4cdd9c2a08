// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"fmt"
	"strings"
	"unicode/utf8"

	eyes "github.com/actplane/actplane/internal/plain"
)

// quote puts untrusted text between double quotes, such that what is between
// them stays on one line, shows what it is made of, and cannot end the quotation.
// A long text keeps its head and its tail, as two quotations.
func quote(text string, limit int) string {
	// Escaping never shortens, so that a huge text need not be escaped to see.
	if len(text) <= limit {
		if escaped := escape(text, true); len(escaped) <= limit {
			return `"` + escaped + `"`
		}
	}
	// Cut before escaping, so that no escape sequence is cut in half.
	head, tail := shortenEnd(text, limit*2/3), shortenStart(text, limit/3)
	for len(escape(head, true)) > limit*2/3 {
		head = shortenEnd(head, limit*2/3)
	}
	for len(escape(tail, true)) > limit/3 {
		tail = shortenStart(tail, limit/3)
	}
	return fmt.Sprintf(`"%s" … "%s" (%d bytes)`, escape(head, true), escape(tail, true), len(text))
}

// shortenEnd takes text a step closer to limit bytes, at a rune's boundary.
func shortenEnd(text string, limit int) string {
	if len(text) > limit {
		text = text[:limit+1]
	}
	_, size := utf8.DecodeLastRuneInString(text)
	return text[:len(text)-size]
}

// shortenStart is shortenEnd from the other side.
func shortenStart(text string, limit int) string {
	if len(text) > limit {
		text = text[len(text)-limit-1:]
	}
	_, size := utf8.DecodeRuneInString(text)
	return text[size:]
}

// plain makes text that is not quoted, a policy's own words, fit for one line:
// white space of any kind becomes one space, what cannot be seen is escaped.
func plain(text string, limit int) string {
	text = cut(text, 8*limit) // huge ones first, for speed
	return cut(escape(strings.Join(strings.Fields(text), " "), false), limit)
}

// Printable makes text of several lines fit for a terminal: line breaks and tabs
// stay, other characters that cannot be seen are escaped.
func Printable(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		cells := strings.Split(strings.TrimSuffix(line, "\r"), "\t")
		for j, cell := range cells {
			cells[j] = escape(cell, false)
		}
		lines[i] = strings.Join(cells, "\t")
	}
	return strings.Join(lines, "\n")
}

// cut shortens text to limit bytes and says so.
func cut(text string, limit int) string {
	const mark = " … (cut)"
	if len(text) <= limit {
		return text
	}
	limit = max(limit-len(mark), 0)
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit] + mark
}

// escape writes as escape sequences of Go what is invisible, moves the cursor,
// turns the direction of writing, or is no UTF-8. In quotations that includes the
// quotation mark and the backslash; elsewhere the joiners and selectors stay that
// emoji and some scripts are written with.
func escape(text string, quoted bool) string {
	var b strings.Builder
	var eye eyes.Eye
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		seen := eye.Sees(r)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case quoted && (r == '"' || r == '\\'):
			b.WriteByte('\\')
			b.WriteRune(r)
		case !quoted && strings.ContainsRune("\u200c\u200d\ufe0e\ufe0f", r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case seen:
			b.WriteRune(r)
		case r < utf8.RuneSelf:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		i += size
	}
	return b.String()
}
