// SPDX-License-Identifier: Apache-2.0

package compare_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/actplane/actplane/internal/testenv"
	"github.com/actplane/actplane/policy/compare"
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/model"
)

// retold is a policy in which the same rules say something else or stand in another order.
func (w writer) retold(lines []string) []string {
	out := slices.Clone(lines)
	first := slices.IndexFunc(out, func(x string) bool { return strings.HasPrefix(x, "rule") })
	rules := out[first:]
	i, j := w.IntN(len(rules)), w.IntN(len(rules))
	switch w.IntN(4) {
	case 0:
		rules[i] = strings.Replace(rules[i], "rule r", "rule other", 1)
	case 1:
		rules[i] += ` because "Not now."`
	case 2:
		rules[i], rules[j] = rules[j], rules[i]
	}
	return out
}

// TestTold compares policies that decide the same, and acts out traces under both: where
// the agent is told otherwise the comparison has said so, and it says nothing else.
func TestTold(t *testing.T) {
	seed := testenv.Seed(t)
	told, apart := 0, 0
	for i := range 300 {
		w := writer{rand.New(rand.NewPCG(seed, uint64(i)))}
		lines := w.policy()
		before, after := w.yaml(lines), w.yaml(w.retold(lines))
		_, after, _ = strings.Cut(after, "policy:")
		protect, _, _ := strings.Cut(before, "policy:")
		old, changed := compiled(t, before), compiled(t, protect+"policy:"+after)
		r := compare.Compare(old, changed)
		n := 0
		for _, d := range r.Differences {
			// Of two rules that ask, the first decides for how long is waited.
			waits := d.Direction == compare.Otherwise && d.Old.Effect == ir.Ask && d.New.Effect == ir.Ask
			if n++; d.Direction != compare.Told && !waits {
				t.Errorf("pair %d: %d %v: %s, and now %s: %q\n%s%s", i, d.Direction, d.Ops, d.Old, d.New, d.Trace, before, after)
			}
		}
		if len(r.Labels) > 0 || len(r.Missed) > 0 {
			t.Errorf("pair %d: %v %q", i, r.Labels, r.Missed)
		}
		if n > 0 {
			told++
		}
		if trace := w.hear(old, changed); trace != nil {
			if apart++; n == 0 {
				t.Errorf("pair %d: not found: %q\n%s%s", i, trace, before, after)
			}
		}
	}
	if told < 50 || apart < 40 {
		t.Errorf("of 300 pairs %d are told otherwise, and %d in a trace", told, apart)
	}
}

// hear looks for a trace in which the agent is told otherwise, of steps that happen plainly.
func (w writer) hear(old, changed compare.Policy) (trace []string) {
	for range 40 {
		scopes := [2]*model.Scope{model.New(old.Program), model.New(changed.Program)}
		trace = nil
		for range 15 {
			words := w.step()
			if words[1] == "symlink" || words[1] == "mapexec" {
				continue
			}
			trace = append(trace, model.WriteStep(words))
			a, err := scopes[0].Do(words)
			b, err2 := scopes[1].Do(words)
			if err != nil || err2 != nil {
				break
			}
			if a.Effect != ir.Allow && (a.Rule != b.Rule || a.Because != b.Because) {
				return trace
			}
		}
	}
	return nil
}
