// SPDX-License-Identifier: Apache-2.0

// Package diag is what the compiler says about a policy: positions in the
// file, diagnostics with stable codes, their text and JSON form, and
// suggestions for misspelt words.
//
// A diagnostic is complete in itself: it carries its source line, so that it
// can be rendered after the text is gone. The package knows nothing of the
// language.
package diag

import (
	"fmt"
	"slices"
	"strings"
)

// Severity tells errors, which refuse a policy, from warnings.
type Severity uint8

// The severities.
const (
	Error Severity = iota
	Warning
)

// String returns the word that renderings use.
func (s Severity) String() string {
	if s == Warning {
		return "warning"
	}
	return "error"
}

// MarshalText makes the JSON form the word.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Diagnostic is one fact about one place in a policy file.
type Diagnostic struct {
	File string `json:"file"`
	// Line and Col count from 1; Col and Length count characters.
	Line     int      `json:"line"`
	Col      int      `json:"col"`
	Length   int      `json:"length"`
	Severity Severity `json:"severity"`
	Code     Code     `json:"code"`
	Message  string   `json:"message"`
	Hint     string   `json:"hint,omitempty"`
	// Source is the line of the file that Line names.
	Source string `json:"source"`
}

// String returns the first line of the text form.
func (d Diagnostic) String() string {
	return fmt.Sprintf("%s:%d:%d: %s[%s]: %s", clean(d.File), d.Line, d.Col, d.Severity, d.Code, clean(d.Message))
}

// List is all that there is to say about some policy files. It is an error
// when it has errors.
type List []Diagnostic

// Error implements error: the first error and how many more there are.
func (l List) Error() string {
	n := l.Errors()
	switch {
	case n == 0:
		return "no errors"
	case n == 1:
		return l.First().String()
	}
	return fmt.Sprintf("%s (and %d more)", l.First(), n-1)
}

// Errors returns the number of errors; warnings don't count.
func (l List) Errors() int {
	n := 0
	for _, d := range l {
		if d.Severity == Error {
			n++
		}
	}
	return n
}

// First returns the first error or, without errors, the first diagnostic; the
// zero Diagnostic of an empty list.
func (l List) First() Diagnostic {
	for _, d := range l {
		if d.Severity == Error {
			return d
		}
	}
	if len(l) > 0 {
		return l[0]
	}
	return Diagnostic{}
}

// Tidy returns the list sorted by position, without repetitions and with one
// diagnostic for each source line that has an error: the others are mostly its
// consequences.
func (l List) Tidy() List {
	out := slices.Clone(l)
	slices.SortStableFunc(out, compare)
	type line struct {
		file string
		line int
	}
	failed := map[line]bool{} // and whether its error has been kept
	for _, d := range out {
		if d.Severity == Error {
			failed[line{d.File, d.Line}] = false
		}
	}
	var last Diagnostic
	return slices.DeleteFunc(out, func(d Diagnostic) bool {
		if d == last {
			return true
		}
		last = d
		at := line{d.File, d.Line}
		kept, bad := failed[at]
		if bad && d.Severity == Error {
			failed[at] = true
		}
		return bad && (kept || d.Severity != Error)
	})
}

func compare(a, b Diagnostic) int {
	if c := strings.Compare(a.File, b.File); c != 0 {
		return c
	}
	if c := a.Line - b.Line; c != 0 {
		return c
	}
	if c := a.Col - b.Col; c != 0 {
		return c
	}
	if c := int(a.Severity) - int(b.Severity); c != 0 {
		return c
	}
	return strings.Compare(string(a.Code), string(b.Code))
}
