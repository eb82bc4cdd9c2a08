// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/actplane/actplane/internal/randomcase"
	"github.com/actplane/actplane/internal/testenv"
	"github.com/actplane/actplane/policy/explain"
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/model"
	"github.com/actplane/actplane/policy/replay"
)

// sensible returns the steps of a scenario that make sense under a program, as those of
// a case. Nobody approves anything: that is not in a record.
func sensible(p *ir.Program, s *randomcase.Case) (out []model.Step) {
	m := model.New(p)
	for _, words := range s.Steps {
		if words[0] == "human" && words[1] == "approve" {
			continue
		}
		if _, err := m.Do(words); err == nil {
			out = append(out, model.Step{Text: strings.Join(words, " "), Words: words})
		}
	}
	return out
}

// TestReplayItself: what was recorded under a policy is decided alike under it, or
// the answer says on what that depends, or that it cannot be told.
func TestReplayItself(t *testing.T) {
	g := &randomcase.Generator{Rand: rand.New(rand.NewPCG(testenv.Seed(t), 1))}
	var kinds [replay.Unclear + 1]int
	for range 1500 {
		s := g.Case()
		p, err := Compile([]Document{{Name: "policy", Text: s.Document()}}, Options{})
		if err != nil {
			continue
		}
		events, err := explain.Events(p.Program, sensible(p.Program, s), 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if e.Record == nil {
				continue
			}
			r := replay.Record{
				Effect: e.Record.Effect.String(), Operation: e.Record.Operation, Object: e.Record.Object, Args: e.Record.Args,
				Rule: e.Record.Rule, Clause: e.Record.Clause, Labels: e.Record.Labels,
			}
			if e.Record.Unresolved {
				r.Object = "(a file without a path here)" // as the engine has it
			}
			o := replay.Replay(p.Program, &r)
			kinds[o.Kind]++
			same := func(a replay.Answer) bool { // an ask that a person refuses is a block
				return a.Effect == e.Record.Effect || a.Effect == ir.Ask && strings.HasPrefix(e.Record.Clause, "ask") && e.Record.Effect == ir.Block
			}
			if o.Kind == replay.Differs || o.Kind == replay.Itself || o.Kind == replay.Depends && !slices.ContainsFunc(o.Answers, same) {
				t.Fatalf("%s\n%+v\n%+v\n%s", e.Event, r, o, s.Document())
			}
		}
	}
	t.Logf("alike, differs, depends, itself, unclear: %v", kinds)
	if n := kinds[replay.Alike]; n < 500 || kinds[replay.Unclear] > n {
		t.Error("too little is told")
	}
}
