// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"sort"
	"strings"
	"unicode"
)

// report tells of results, a line a case, and compares them with those that are
// expected.
type report struct {
	out      io.Writer
	scenario bool // in the form of scenarios
	// expected are, by case, the lines of those that do not just hold; nil for no
	// expectations.
	expected map[string][]string

	ok, failed, no int
	wrong          int // results other than expected
	told           map[string]bool
}

// readExpected reads lines "no NAME: WHY" and "FAIL NAME: STEP: …", as they are told
// without their places. A case may have more than one, for hosts that differ.
func readExpected(file string) (map[string][]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, usageError{fmt.Errorf("read what is expected: %w", err)}
	}
	expected := map[string][]string{}
	for i, line := range strings.Split(string(text), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		name, why, found := strings.Cut(rest, ": ")
		if !found || why == "" || word != "no" && word != "FAIL" {
			return nil, usageError{fmt.Errorf("%s:%d: a line is \"no NAME: why\" or \"FAIL NAME: step: …\"", file, i+1)}
		}
		expected[name] = append(expected[name], line)
	}
	return expected, nil
}

// line is a result without its place.
func (r *result) line() string {
	switch {
	case r.no != "":
		return fmt.Sprintf("no %s: %s", r.name, clean(r.no))
	case r.failed != "":
		return fmt.Sprintf("FAIL %s: %s", r.name, clean(r.failed))
	}
	return "ok " + r.name
}

func (rep *report) tell(r result) {
	switch {
	case r.no != "":
		rep.no++
	case r.failed != "":
		rep.failed++
	default:
		rep.ok++
	}
	if rep.told == nil {
		rep.told = map[string]bool{}
	}
	rep.told[r.name] = true
	line := r.line()
	lines := rep.expected[r.name]
	known := slices.Contains(lines, line)
	if rep.scenario {
		rep.tellScenario(r, line, known, lines)
		return
	}
	if r.failed != "" {
		line = strings.Replace(line, ": ", ": "+r.place+": ", 1)
	}
	fmt.Fprintln(rep.out, line)
	if rep.expected != nil && !known && (r.no != "" || r.failed != "" || len(lines) > 0) {
		rep.wrong++
		fmt.Fprintf(rep.out, "     expected was: %s\n", strings.Join(append(lines, "ok "+r.name)[:max(1, len(lines))], ", or "))
	}
}

// tellScenario: what is known not to hold is skipped, with its reason.
func (rep *report) tellScenario(r result, line string, known bool, lines []string) {
	why := strings.TrimPrefix(strings.TrimPrefix(line, "no "+r.name+": "), "FAIL "+r.name+": ")
	switch {
	case known && r.no != "":
		fmt.Fprintf(rep.out, "skip case %s: not acted out: %s\n", r.name, why)
	case known:
		fmt.Fprintf(rep.out, "skip case %s: the engine differs from the model: %s\n", r.name, why)
	case r.no == "" && r.failed == "" && len(lines) == 0:
		fmt.Fprintf(rep.out, "ok case %s\n", r.name)
	case r.no == "" && r.failed == "":
		rep.wrong++
		fmt.Fprintf(rep.out, "not ok case %s: it holds; take %q out of what is expected\n", r.name, lines[0])
	default:
		rep.wrong++
		fmt.Fprintf(rep.out, "not ok case %s: %s (%s)\n", r.name, line, r.place)
	}
}

// end prints the counts. The error is errFailed when something is not as it should be.
func (rep *report) end(where string) error {
	for _, name := range missing(rep.expected, rep.told) {
		rep.wrong++
		form := "FAIL %s: it is expected to fail or not to be acted out, and there is no such case\n"
		if rep.scenario {
			form = "not ok case %s: it is expected to fail or not to be acted out, and there is no such case\n"
		}
		fmt.Fprintf(rep.out, form, name)
	}
	if !rep.scenario {
		fmt.Fprintf(rep.out, "%d cases: %d hold, %d failed, %d not acted out (%s)\n", rep.ok+rep.failed+rep.no, rep.ok, rep.failed, rep.no, where)
	}
	if rep.wrong > 0 || rep.expected == nil && rep.failed > 0 {
		return errFailed
	}
	return nil
}

func missing(expected map[string][]string, told map[string]bool) (names []string) {
	for name := range expected {
		if !told[name] {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names
}

// clean keeps a text to one line that a terminal can take.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}
