// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// clean makes text from inside a container safe for a terminal: what is not
// printable, or turns the direction of writing, shows as an escape.
func clean(text string) string {
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

// word is clean text that is told apart from its neighbours.
func word(text string) string {
	cleaned := clean(text)
	if text == "" || strings.ContainsAny(cleaned, " \"'\\") {
		return `"` + strings.ReplaceAll(cleaned, `"`, `\"`) + `"`
	}
	return cleaned
}

func words(list []string) string {
	out := make([]string, len(list))
	for i, text := range list {
		out[i] = word(text)
	}
	return strings.Join(out, " ")
}
