// SPDX-License-Identifier: Apache-2.0

// Package plain makes text from inside a container safe to show: nothing that a
// terminal obeys, that makes a line of its own, or that turns the direction of writing
// is left in it. What is taken out shows as an escape, so that nothing vanishes.
package plain

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text is a text on one line: what is not printable shows as an escape.
func Text(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&out, `\x%02x`, text[i])
		case unicode.IsPrint(r):
			out.WriteRune(r)
		case r < 0x80:
			fmt.Fprintf(&out, `\x%02x`, r)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
		i += size
	}
	return out.String()
}

// Lines is Text for a text of several lines.
func Lines(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = Text(l)
	}
	return strings.Join(lines, "\n")
}

// Word is a text that is told apart from its neighbours on a line: it cannot end its
// quotation, and its backslashes are no escapes.
func Word(text string) string {
	escaped := Text(strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text))
	if text == "" || strings.ContainsAny(escaped, " \"'\\") {
		return `"` + escaped + `"`
	}
	return escaped
}

// Words are words with a space between them.
func Words(list []string) string {
	out := make([]string, len(list))
	for i, text := range list {
		out[i] = Word(text)
	}
	return strings.Join(out, " ")
}
