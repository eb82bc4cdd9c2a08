// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// The elements of JUnit's XML that CI systems read. All texts in them went through
// clean: XML cannot hold control characters, not even escaped.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Time     junitSeconds `xml:"time,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Skipped  int          `xml:"skipped,attr"`
		Time     junitSeconds `xml:"time,attr"`
		Cases    []junitCase  `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		File    string        `xml:"file,attr"`
		Line    int           `xml:"line,attr"`
		Time    junitSeconds  `xml:"time,attr"`
		Failure *junitOutcome `xml:"failure"`
		Error   *junitOutcome `xml:"error"`
	}
	junitOutcome struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
	junitSeconds float64
)

// MarshalText writes seconds without an exponent.
func (s junitSeconds) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%.6f", float64(s)), nil }

// writeJUnit writes the results to a file, each test file a suite. A file without
// tests to run is a suite of one error: a reader of the XML alone must see it.
func writeJUnit(file string, results []tested, broken []brokenFile) error {
	all := junitOf(results)
	for _, b := range broken {
		name := clean(b.name)
		c := junitCase{Class: name, Name: name, File: name, Error: &junitOutcome{Message: clean(b.err.Error()), Type: "invalid", Text: clean(b.err.Error())}}
		all.Suites = append(all.Suites, junitSuite{Name: name, Tests: 1, Errors: 1, Cases: []junitCase{c}})
		all.Tests++
		all.Errors++
	}
	out, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	// A named pipe that nobody reads is an error, and not waited for.
	to, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NONBLOCK, 0o666)
	if err != nil {
		return err
	}
	_, err = to.Write(append([]byte(xml.Header), append(out, '\n')...))
	return errors.Join(err, to.Close())
}

func junitOf(results []tested) junitSuites {
	var all junitSuites
	for _, t := range results {
		name := clean(t.file)
		if n := len(all.Suites); n == 0 || all.Suites[n-1].Name != name {
			all.Suites = append(all.Suites, junitSuite{Name: name})
		}
		suite := &all.Suites[len(all.Suites)-1]
		c := junitCaseOf(t)
		suite.Cases = append(suite.Cases, c)
		suite.Tests++
		suite.Time += c.Time
		all.Tests++
		all.Time += c.Time
		if c.Failure != nil {
			suite.Failures++
			all.Failures++
		}
		if c.Error != nil {
			suite.Errors++
			all.Errors++
		}
	}
	return all
}

func junitCaseOf(t tested) junitCase {
	c := junitCase{
		Class: clean(t.file), Name: clean(t.test.Name), File: clean(t.file),
		Line: t.test.Line, Time: junitSeconds(t.took.Seconds()),
	}
	switch {
	case t.invalid != nil:
		text := invalidText(t.invalid)
		message, _, _ := strings.Cut(text, "\n")
		c.Error = &junitOutcome{Message: message, Type: "invalid", Text: text}
	case t.failure != nil:
		step := t.test.Steps[t.failure.Step]
		c.Line = step.Line
		c.Failure = &junitOutcome{
			Message: clean(fmt.Sprintf("%s: expected %s, got %s", step.Text, step.Want(), t.failure.Got)),
			Type:    "verdict", Text: "\n" + failureText(t),
		}
	}
	return c
}
