// SPDX-License-Identifier: Apache-2.0

package ir

import (
	"os"
	"regexp"
	"strconv"
	"testing"
)

// TestLimitsOfABI keeps the compiler's bounds equal to the engine's tables.
func TestLimitsOfABI(t *testing.T) {
	header, err := os.ReadFile("../../bpf/abi.h")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{
		"MAX_LABELS":       MaxLabels,
		"MAX_GATES":        MaxGates,
		"MAX_CLAUSES":      MaxClauses,
		"MAX_CLAUSE_GATES": MaxClauseGates,
		"ARG_WORDS":        MaxArgPatterns / 64,
		"STATES_SMALL":     FewStates,
		"STATES_LARGE":     MaxStates,
	} {
		m := regexp.MustCompile(`(?m)^#define ` + name + ` (\d+)`).FindSubmatch(header)
		if m == nil {
			t.Errorf("bpf/abi.h has no %s", name)
			continue
		}
		if got, _ := strconv.Atoi(string(m[1])); got != want {
			t.Errorf("%s is %d in bpf/abi.h and %d in package ir", name, got, want)
		}
	}
	// Sets of these are single words.
	if MaxLabels > 64 || MaxLineages > 64 || MaxExecTargets > 64 {
		t.Error("a bit set does not fit in a word")
	}
}
