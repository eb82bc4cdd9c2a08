// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/actplane/actplane/feedback"
	"github.com/actplane/actplane/internal/plain"
)

// clean makes text from inside a container safe for a terminal.
func clean(text string) string { return plain.Text(text) }

// cleanLines is clean for a text of several lines.
func cleanLines(text string) string { return plain.Lines(text) }

// word is clean text that is told apart from its neighbours.
func word(text string) string { return plain.Word(text) }

func words(list []string) string { return plain.Words(list) }

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
