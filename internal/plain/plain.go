// SPDX-License-Identifier: Apache-2.0

// Package plain makes text from inside a container safe to show: nothing that a
// terminal obeys, that makes a line of its own, or that turns the direction of writing
// is left in it. What is taken out shows as an escape, so that nothing vanishes.
package plain

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Text is a text on one line: what cannot be seen shows as an escape. The selectors that
// emoji are written with stay.
func Text(text string) string {
	var eye Eye
	return escaped(text, func(r rune) bool { return eye.Sees(r) || r == '\ufe0e' || r == '\ufe0f' })
}

// escaped writes as escapes the characters that do not show.
func escaped(text string, shows func(rune) bool) string {
	var out strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&out, `\x%02x`, text[i])
		case shows(r):
			out.WriteRune(r)
		case r < utf8.RuneSelf:
			fmt.Fprintf(&out, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&out, `\u%04x`, r)
		default:
			fmt.Fprintf(&out, `\U%08x`, r)
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
	var eye Eye
	return word(text, eye.Sees)
}

func word(text string, shows func(rune) bool) string {
	escaped := escaped(strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text), shows)
	if text == "" || strings.ContainsAny(escaped, " \"'\\") {
		return `"` + escaped + `"`
	}
	return escaped
}

// Words are words with a space between them.
func Words(list []string) string { return join(list, Word) }

// Exact are words with a space between them, and where they have characters outside of
// ASCII, also how they read with escapes for these: letters of another script can look like
// the ones that are meant, and others change the order in which their neighbours show.
func Exact(list ...string) string {
	shown := Words(list)
	ascii := join(list, func(text string) string {
		return word(text, func(r rune) bool { return r >= ' ' && r < 0x7f })
	})
	if ascii == shown {
		return shown
	}
	return shown + ", in ASCII " + ascii
}

func join(list []string, show func(string) string) string {
	out := make([]string, len(list))
	for i, text := range list {
		out[i] = show(text)
	}
	return strings.Join(out, " ")
}
