// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"testing"

	"github.com/actplane/actplane/bpf"
	"github.com/actplane/actplane/policy/ir"
)

// The bounds that the compiler checks are the sizes of the engine's tables.
func TestLimitsAgree(t *testing.T) {
	for name, pair := range map[string][2]int{
		"labels":       {ir.MaxLabels, int(bpf.EnforcerLimitsLIMIT_LABELS)},
		"gates":        {ir.MaxGates, int(bpf.EnforcerLimitsLIMIT_GATES)},
		"clauses":      {ir.MaxClauses, int(bpf.EnforcerLimitsLIMIT_CLAUSES)},
		"clause gates": {ir.MaxClauseGates, int(bpf.EnforcerLimitsLIMIT_CLAUSE_GATES)},
		"states":       {ir.MaxStates, int(bpf.EnforcerLimitsLIMIT_STATES_LARGE)},
		"argv":         {ir.MaxArgPatterns, int(bpf.EnforcerLimitsLIMIT_ARG_POSITIONS)},
		"operations":   {int(ir.NumOps), len(bpf.EnforcerRow{}.Clauses)},
		"lineage bits": {ir.MaxLineages, 64},
		"exec targets": {ir.MaxExecTargets, 64},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: the compiler allows %d, the engine holds %d", name, pair[0], pair[1])
		}
	}
}

// A host that cannot enforce is told apart from a fault of the engine's.
func TestUnsupportedIsOneSentence(t *testing.T) {
	err := unsupported(errors.New("load: x\nno\nreally not"))
	var problem *UnsupportedError
	if !errors.As(err, &problem) {
		t.Fatalf("%v", err)
	}
	for _, c := range problem.Error() {
		if c == '\n' {
			t.Errorf("%q has more than one line", problem.Error())
		}
	}
}
