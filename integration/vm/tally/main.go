// SPDX-License-Identifier: Apache-2.0

// Tally counts tests wherever they ran: Go tests on this machine, Go tests in a
// guest, and scenarios in the Docker machine.
//
//	tally go RESULTS LABEL         reads "go test -json" from standard input
//	tally scenarios RESULTS LABEL  reads a scenario run from standard input
//	tally sum RESULTS              prints what was skipped and why, what failed,
//	                               and "N passed, N failed, N skipped"
//
// It prints what a person wants to see while tests run (packages, failures with
// their output) and appends one line a test to the file RESULTS, which any script
// can append to as well: status, label, name and reason, separated by tabs.
package main

import (
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "tally:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) error {
	switch {
	case len(args) == 3 && args[0] == "go":
		return count(args[1], args[2], in, out, readGo)
	case len(args) == 3 && args[0] == "scenarios":
		return count(args[1], args[2], in, out, readScenarios)
	case len(args) == 2 && args[0] == "sum":
		return sum(args[1], out)
	}
	return fmt.Errorf("usage: tally go|scenarios RESULTS LABEL, or tally sum RESULTS")
}

// count reads one run and appends its results to the file.
func count(file, label string, in io.Reader, out io.Writer, read func(io.Reader, io.Writer) ([]result, error)) error {
	results, err := read(in, out)
	if err != nil {
		results = append(results, result{failed, "", "tally", err.Error()})
	}
	for i := range results {
		results[i].label = label
	}
	if err := store(file, results); err != nil {
		return err
	}
	for _, r := range results {
		if r.status == failed {
			return fmt.Errorf("%s: %s failed", label, r.name)
		}
	}
	return nil
}
