// SPDX-License-Identifier: Apache-2.0

package randomcase

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Minimize leaves out of a case what is not needed for it to fail. The case that is
// given does fail.
func Minimize(s *Case, fails func(*Case) bool) *Case {
	for changed := true; changed; {
		changed = false
		for size := max(1, len(s.Steps)/2); size > 0; size /= 2 {
			for i := 0; i+size <= len(s.Steps); {
				less := *s
				less.Steps = slices.Delete(slices.Clone(s.Steps), i, i+size)
				if fails(&less) {
					*s, changed = less, true
				} else {
					i++
				}
			}
		}
		changed = without(s, &s.Declarations, fails) || changed
		changed = without(s, &s.Protects, fails) || changed
	}
	return s
}

// without tries to leave out the lines of one list of the case.
func without(s *Case, list *[]string, fails func(*Case) bool) (changed bool) {
	for i := 0; i < len(*list); {
		all := *list
		*list = slices.Delete(slices.Clone(all), i, i+1)
		if less := *s; fails(&less) {
			changed = true
		} else {
			*list = all
			i++
		}
	}
	return changed
}

// Text is the case as a file of cases has it, with a verdict for each step.
func (s *Case) Text(name string, verdicts []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "== %s\nyaml:\n", name)
	for _, line := range strings.Split(strings.TrimSpace(string(s.Document())), "\n") {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	b.WriteString("trace:\n")
	for i, step := range s.Steps {
		var words []string
		for _, word := range step {
			if strings.Contains(word, " ") {
				word = strconv.Quote(word)
			}
			words = append(words, word)
		}
		fmt.Fprintf(&b, "  %s %s\n", strings.Join(words, " "), verdicts[i])
	}
	return b.String()
}
