// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/actplane/actplane/feedback"
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

// cleanLines is clean for a text of several lines.
func cleanLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = clean(l)
	}
	return strings.Join(lines, "\n")
}

// word is clean text that is told apart from its neighbours: it cannot end its
// quotation, and its backslashes are no escapes.
func word(text string) string {
	escaped := clean(strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text))
	if text == "" || strings.ContainsAny(escaped, " \"'\\") {
		return `"` + escaped + `"`
	}
	return escaped
}

func words(list []string) string {
	out := make([]string, len(list))
	for i, text := range list {
		out[i] = word(text)
	}
	return strings.Join(out, " ")
}

// writeJSON writes a value in ASCII, which a terminal shows as it is: on one line,
// or with an indent.
func writeJSON(out io.Writer, value any, indent string) error {
	text, err := feedback.EncodeJSON(value)
	if err != nil {
		return err
	}
	var laidOut bytes.Buffer
	if indent == "" {
		laidOut.Write(text)
	} else if err := json.Indent(&laidOut, text, "", indent); err != nil {
		return err
	}
	_, err = out.Write(laidOut.Bytes())
	return err
}
