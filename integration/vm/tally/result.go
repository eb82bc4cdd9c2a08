// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"sort"
	"strings"
)

type status string

const (
	passed  status = "pass"
	failed  status = "fail"
	skipped status = "skip"
)

// A result is one test in one run. The label tells which run: "native", "6.12 bpf".
type result struct {
	status              status
	label, name, reason string
}

// plain keeps a text to one line of the results file.
func plain(s string) string {
	return strings.TrimSpace(strings.NewReplacer("\t", " ", "\n", " ", "\r", "").Replace(s))
}

// store appends to the file.
func store(file string, results []result) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	for _, r := range results {
		fmt.Fprintf(f, "%s\t%s\t%s\t%s\n", r.status, plain(r.label), plain(r.name), plain(r.reason))
	}
	return f.Close()
}

// load reads a results file. A line of another form is an error: a test whose
// result got lost must not look like one that passed.
func load(file string) ([]result, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var results []result
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.SplitN(lines.Text(), "\t", 4)
		if len(fields) < 3 {
			return nil, fmt.Errorf("%s: no result: %q", file, lines.Text())
		}
		r := result{status: status(fields[0]), label: fields[1], name: fields[2]}
		if len(fields) == 4 {
			r.reason = fields[3]
		}
		if r.status != passed && r.status != failed && r.status != skipped {
			return nil, fmt.Errorf("%s: no status: %q", file, lines.Text())
		}
		results = append(results, r)
	}
	return results, lines.Err()
}

// sum prints the end of the whole run. A test that was skipped in one place and
// ran in another was not skipped: that is why there are several places.
func sum(file string, out io.Writer) error {
	results, err := load(file)
	if err != nil {
		return err
	}
	ran := map[string]bool{}
	for _, r := range results {
		if r.status != skipped {
			ran[r.name] = true
		}
	}
	counts := map[status]int{}
	why := map[string][]string{}
	seen := map[string]bool{}
	for _, r := range results {
		if r.status != skipped {
			counts[r.status]++
			continue
		}
		if ran[r.name] || seen[r.name] {
			continue
		}
		seen[r.name] = true
		counts[skipped]++
		why[r.reason] = append(why[r.reason], r.name)
	}
	printSkipped(why, out)
	for _, r := range results {
		if r.status == failed {
			fmt.Fprintf(out, "failed: %s: %s: %s\n", r.label, r.name, r.reason)
		}
	}
	fmt.Fprintf(out, "%d passed, %d failed, %d skipped\n", counts[passed], counts[failed], counts[skipped])
	switch {
	case counts[failed] > 0:
		return fmt.Errorf("%d failed", counts[failed])
	case counts[passed] == 0:
		return fmt.Errorf("no test ran")
	}
	return nil
}

func printSkipped(why map[string][]string, out io.Writer) {
	var reasons []string
	for reason := range why {
		reasons = append(reasons, reason)
	}
	sort.Strings(reasons)
	for _, reason := range reasons {
		names := why[reason]
		const shown = 4
		more := ""
		if len(names) > shown {
			more = fmt.Sprintf(" and %d more", len(names)-shown)
			names = names[:shown]
		}
		fmt.Fprintf(out, "skipped: %s: %s%s\n", reason, strings.Join(names, ", "), more)
	}
}
