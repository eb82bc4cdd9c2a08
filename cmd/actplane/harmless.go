// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"unicode/utf8"
)

// harmlessWriter is what a terminal may be behind: nothing that it would obey is written to it,
// whatever a command has overlooked. Lines and tabs stay.
type harmlessWriter struct {
	out  io.Writer
	rest []byte // the beginning of a character
}

func (s *harmlessWriter) Write(text []byte) (int, error) {
	n := len(text)
	if len(s.rest) > 0 {
		text = append(s.rest, text...)
		s.rest = nil
	}
	if whole := wholeCharacters(text); whole < len(text) {
		s.rest = append([]byte(nil), text[whole:]...)
		text = text[:whole]
	}
	return n, s.put(text)
}

// flush writes what is left of a character that never came.
func (s *harmlessWriter) flush() error {
	rest := s.rest
	s.rest = nil
	return s.put(rest)
}

func (s *harmlessWriter) put(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	_, err := s.out.Write(harmless(text))
	return err
}

// wholeCharacters is the length of a text without the beginning of a character at its end.
func wholeCharacters(text []byte) int {
	for i := len(text) - 1; i >= 0 && i >= len(text)-utf8.UTFMax; i-- {
		if utf8.RuneStart(text[i]) {
			if !utf8.FullRune(text[i:]) {
				return i
			}
			break
		}
	}
	return len(text)
}

// harmless shows as escapes what a terminal obeys, and what turns the direction of
// writing; a text without is returned as it is.
func harmless(text []byte) []byte {
	var out []byte
	done := 0
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size == 1 || obeyed(r) {
			out = append(out, text[done:i]...)
			if size == 1 {
				out = fmt.Appendf(out, `\x%02x`, text[i])
			} else {
				out = fmt.Appendf(out, `\u%04x`, r)
			}
			done = i + size
		}
		i += size
	}
	if done == 0 {
		return text
	}
	return append(out, text[done:]...)
}

func obeyed(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < ' ', r >= 0x7F && r < 0xA0: // C0, DEL, C1
		return true
	case r == 0x061C, r == 0x200E, r == 0x200F, r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069: // direction
		return true
	}
	return r == 0x2028 || r == 0x2029 // line ends for some
}

// oneLine shows the line ends of a name as escapes: it makes no line of its own.
func oneLine(name string) string {
	return strings.NewReplacer("\n", `\x0a`, "\r", `\x0d`).Replace(name)
}

// errorText is an error's text, in which the names of files that it is about make no lines.
func errorText(err error) string {
	text := err.Error()
	var names func(error)
	names = func(err error) {
		switch e := err.(type) {
		case *fs.PathError:
			text = strings.ReplaceAll(text, e.Path, oneLine(e.Path))
		case *os.LinkError:
			text = strings.ReplaceAll(strings.ReplaceAll(text, e.Old, oneLine(e.Old)), e.New, oneLine(e.New))
		}
		switch e := err.(type) {
		case interface{ Unwrap() error }:
			if inner := e.Unwrap(); inner != nil {
				names(inner)
			}
		case interface{ Unwrap() []error }:
			for _, inner := range e.Unwrap() {
				names(inner)
			}
		}
	}
	names(err)
	return text
}
