// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// An event is one line of "go test -json" (cmd/test2json).
type event struct {
	Action      string
	Package     string
	ImportPath  string // of build output, instead of Package
	FailedBuild string
	Test        string
	Elapsed     float64
	Output      string
}

// A goRun collects one "go test -json".
type goRun struct {
	out     io.Writer
	results []result
	output  map[string][]string // of tests that run, by package and test
	parents map[string]bool     // tests that have subtests
	failed  map[string]bool     // packages and tests below which one failed
	ended   map[string]bool     // packages whose result is known
	counts  map[string]map[status]int
}

// readGo counts tests without subtests: a parent is its children. It counts, too,
// what fails without a test: a build, a panic, a time-out.
func readGo(in io.Reader, out io.Writer) ([]result, error) {
	run := goRun{
		out: out, output: map[string][]string{}, parents: map[string]bool{},
		failed: map[string]bool{}, ended: map[string]bool{}, counts: map[string]map[status]int{},
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			// Such as the boot messages of a guest.
			fmt.Fprintln(out, lines.Text())
			continue
		}
		if e.Package == "" {
			e.Package = strings.Fields(e.ImportPath + " ?")[0]
		}
		run.take(e)
	}
	for pack := range run.counts {
		if !run.ended[pack] {
			run.results = append(run.results, result{status: failed, name: pack, reason: "the run ended before the package did"})
		}
	}
	return run.results, lines.Err()
}

func (run *goRun) take(e event) {
	key := e.Package + " " + e.Test
	if run.counts[e.Package] == nil {
		run.counts[e.Package] = map[status]int{}
	}
	if i := strings.LastIndex(e.Test, "/"); i > 0 {
		run.parents[e.Package+" "+e.Test[:i]] = true
	}
	switch e.Action {
	case "output", "build-output":
		run.output[key] = append(run.output[key], e.Output)
	case "build-fail":
		run.ended[e.Package] = true // the package's own "fail" follows
		fmt.Fprint(run.out, strings.Join(run.output[key], ""))
	case "pass", "skip", "fail":
		if e.Test == "" {
			run.endPackage(e)
		} else {
			run.endTest(e)
		}
	}
}

func (run *goRun) endTest(e event) {
	key := e.Package + " " + e.Test
	text := run.output[key]
	delete(run.output, key)
	if e.Action == "fail" {
		fmt.Fprint(run.out, strings.Join(text, ""))
		if i := strings.LastIndex(e.Test, "/"); i > 0 {
			run.failed[e.Package+" "+e.Test[:i]] = true
		}
	}
	if run.parents[key] && (e.Action != "fail" || run.failed[key]) {
		if run.failed[key] {
			if i := strings.LastIndex(e.Test, "/"); i > 0 {
				run.failed[e.Package+" "+e.Test[:i]] = true
			}
		}
		return
	}
	run.counts[e.Package][status(e.Action)]++
	run.results = append(run.results, result{status: status(e.Action), name: e.Package + "." + e.Test, reason: reason(text)})
}

func (run *goRun) endPackage(e event) {
	run.ended[e.Package] = true
	counts := run.counts[e.Package]
	total := counts[passed] + counts[failed] + counts[skipped]
	switch {
	case e.Action == "fail" && counts[failed] == 0:
		why := "failed outside its tests"
		if e.FailedBuild != "" {
			why = "does not build"
		}
		run.printUnfinished(e.Package)
		run.results = append(run.results, result{status: failed, name: e.Package, reason: why})
		fmt.Fprintf(run.out, "FAIL %s: %s\n", e.Package, why)
	case e.Action == "fail":
		run.printUnfinished(e.Package)
		fmt.Fprintf(run.out, "FAIL %s: %d of %d tests\n", e.Package, counts[failed], total)
	case total == 0:
		// A package without tests is no skipped test.
	case counts[skipped] > 0:
		fmt.Fprintf(run.out, "ok   %s: %d tests, %d skipped (%.1f s)\n", e.Package, total, counts[skipped], e.Elapsed)
	default:
		fmt.Fprintf(run.out, "ok   %s: %d tests (%.1f s)\n", e.Package, total, e.Elapsed)
	}
}

// printUnfinished shows the output of the package and of tests that never ended:
// there stands a panic or a time-out.
func (run *goRun) printUnfinished(pack string) {
	for key, text := range run.output {
		if strings.HasPrefix(key, pack+" ") {
			fmt.Fprint(run.out, strings.Join(text, ""))
			delete(run.output, key)
		}
	}
}

// reason finds what a test said last, without file and line: why it skipped or failed.
func reason(output []string) string {
	why := ""
	for _, line := range output {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "---") || strings.HasPrefix(trimmed, "===") || trimmed == "" {
			continue
		}
		if _, text, found := strings.Cut(trimmed, ".go:"); found {
			if _, rest, found := strings.Cut(text, ": "); found {
				trimmed = rest
			}
		}
		why = trimmed
	}
	return why
}
