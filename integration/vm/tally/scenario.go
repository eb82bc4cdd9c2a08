// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// readScenarios passes the output through and counts its result lines:
//
//	# scenario NAME
//	ok CHECK
//	not ok CHECK: why
//	skip CHECK: why
//
// The runner in the guest adds a "not ok" for a scenario that ends badly.
func readScenarios(in io.Reader, out io.Writer) ([]result, error) {
	var results []result
	scenario := "scenarios"
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := strings.TrimRight(lines.Text(), "\r")
		fmt.Fprintln(out, line)
		if name, found := strings.CutPrefix(line, "# scenario "); found {
			scenario = name
			continue
		}
		r, rest := result{}, ""
		switch word, after, _ := strings.Cut(line, " "); {
		case word == "ok":
			r.status, rest = passed, after
		case word == "skip":
			r.status, rest = skipped, after
		case word == "not" && strings.HasPrefix(after, "ok "):
			r.status, rest = failed, strings.TrimPrefix(after, "ok ")
		default:
			continue
		}
		name, why := rest, ""
		if r.status != passed {
			name, why, _ = strings.Cut(rest, ": ")
		}
		r.name, r.reason = scenario+"/"+name, why
		results = append(results, r)
	}
	if err := lines.Err(); err != nil {
		return results, err
	}
	if len(results) == 0 {
		return nil, fmt.Errorf("the run reported nothing")
	}
	return results, nil
}
