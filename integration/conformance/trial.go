// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/actplane/actplane/internal/randomcase"
	"github.com/actplane/actplane/policy"
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/model"
)

// trial is a random case of which every step makes sense and can be acted out.
type trial struct {
	*planned
	seed   uint64
	source *randomcase.Case
	policy *policy.Policy
	want   *model.Scope // in the end
}

// newTrial makes the one of a seed: of the first of its cases in which a container can
// start at all.
func newTrial(seed uint64) *trial {
	g := &randomcase.Generator{Rand: rand.New(rand.NewPCG(seed, 1)), Acted: true}
	for {
		c := g.Case()
		if seed%4 == 0 {
			c.Widen()
		}
		if t := trialOf(c); t != nil && len(t.Steps) > 0 {
			t.seed = seed
			return t
		}
	}
}

// trialOf makes one of those steps of a case that make sense and can be acted out; nil
// when there is no container for the policy.
func trialOf(r *randomcase.Case) *trial {
	p, err := policy.Compile([]policy.Document{{Name: "random", Text: r.Document(), Layer: policy.Operator}}, policy.Options{Workspace: "/"})
	if err != nil || len(p.Unenforced) > 0 {
		return nil
	}
	return trialUnder(p, r)
}

// trialUnder is trialOf, for who has compiled the policy.
func trialUnder(p *policy.Policy, r *randomcase.Case) *trial {
	d := director{program: p.Program, scripts: map[string]string{}, bound: map[string]bool{}, unstartable: -1}
	if !d.begin(r.Steps) {
		return nil
	}
	for _, words := range r.Steps {
		d.direct(words)
	}
	if !d.crew.started { // with its end, a restart has its first program
		d.direct([]string{root, "exec", d.crew.first})
	}
	document := string(r.Document())
	c := model.Case{Name: "random", YAML: document, Steps: d.steps}
	files, err := model.Outside(p.Program, &c)
	if err != nil {
		return nil
	}
	i := misused(d.steps, d.folders, files)
	switch {
	case d.unstartable >= 0:
		i = d.unstartable
	case len(d.kept) > 0:
		i = d.kept[0]
	}
	if i >= 0 {
		rest := *r
		rest.Steps = words(slices.Delete(d.steps, i, i+brings(d.steps[i:])))
		if slices.EqualFunc(rest.Steps, r.Steps, slices.Equal[[]string]) {
			return nil // what is left out comes again
		}
		return trialUnder(p, &rest)
	}
	source := &randomcase.Case{Protects: r.Protects, Declarations: r.Declarations, Steps: words(d.steps)}
	return &trial{
		planned: &planned{Case: c, File: "random", Document: document, Workspace: "/", Program: p.Program, Files: files, folders: d.folders},
		source:  source, policy: p, want: d.crew.model,
	}
}

// brings counts the steps that go with the first: what is read to be mapped comes back for
// the mapping.
func brings(steps []model.Step) int {
	if len(steps) < 2 {
		return 1
	}
	first, next := steps[0].Words, steps[1].Words
	if len(next) == 3 && next[1] == "mapexec" && slices.Equal(first, []string{next[0], "read", next[2]}) {
		return 2
	}
	return 1
}

func words(steps []model.Step) (all [][]string) {
	for _, step := range steps {
		all = append(all, step.Words)
	}
	return all
}

// misused returns the first step that takes a folder that the case finds for a file, or the
// reverse, and -1 if there is none. What has come under a name later is not looked at.
func misused(steps []model.Step, folders [][]bool, files []model.Found) int {
	changed, there := map[string]bool{}, map[string]bool{}
	for i, step := range steps {
		for n, name := range paths(step.Words) {
			folder, matters := false, true
			switch op := step.Words[1]; op {
			case "rename", "exchange":
				matters = n < len(folders[i])
				folder = matters && folders[i][n]
			case "rmdir":
				folder = true
			case "chmod", "chown", "mkdir", "symlink", "link":
				matters = false
			}
			found := slices.IndexFunc(files, func(f model.Found) bool { return f.Path == name })
			if found < 0 && !changed[name] && !creates(step.Words[1], n) {
				return i // what a denied step was to make
			}
			if found >= 0 && creates(step.Words[1], n) && !there[name] {
				return i // what only a denied step has found
			}
			if matters && !changed[name] && found >= 0 && (files[found].Use == model.Directory) != folder {
				return i
			}
		}
		if step.Verdict != "ok" && step.Verdict != "notify" {
			continue
		}
		for _, name := range paths(step.Words) {
			there[name] = true
			changed[name] = changed[name] || !follows(step.Words[1], 0)
		}
	}
	return -1
}

// creates tells whether a step makes the nth of its names.
func creates(op string, n int) bool {
	switch op {
	case "mkdir", "symlink":
		return true
	case "link", "rename":
		return n == 1
	}
	return false
}

// ways are the same for a step whatever others are left out.
func (t *trial) ways() ways {
	asks := asks(t.Program)
	parents := map[string]bool{root: true} // of whose rings the children have the memory
	for _, step := range t.Steps {
		if step.Words[1] == "fork" {
			parents[step.Words[0]] = true
		}
	}
	return func(words []string) (int, bool) {
		if len(words) > 1 && words[1] == "connect" && asks {
			return 0, false // a ring may ask twice for one connection
		}
		h := fnv.New32a()
		fmt.Fprintf(h, "%d %q", t.seed, words)
		return int(h.Sum32() >> 1), !parents[words[0]]
	}
}

// text is the trial as a case.
func (t *trial) text() string {
	var verdicts []string
	for _, step := range t.Steps {
		verdicts = append(verdicts, step.Want())
	}
	var b strings.Builder
	by := t.ways()
	for _, step := range t.Steps {
		way, rings := by(step.Words)
		fmt.Fprintf(&b, "# %s: way %d, rings %t\n", step.Text, way, rings)
	}
	return t.source.Text(fmt.Sprintf("found-%d", t.seed), verdicts) + b.String()
}

// about tells whether anything is said of an operation.
func about(p *ir.Program, op ir.Op) bool {
	return slices.ContainsFunc(p.Clauses, func(c ir.Clause) bool { return c.Op == op }) ||
		slices.ContainsFunc(p.Defaults, func(d ir.Default) bool { return d.Op == op })
}

// fromEndpoints tells whether labels come from addresses.
func fromEndpoints(p *ir.Program) bool {
	return slices.ContainsFunc(p.Sources, func(s ir.Source) bool { return s.Pattern.Kind == ir.Endpoint })
}

// declassifies tells whether running a program takes labels away.
func declassifies(p *ir.Program) bool {
	return slices.ContainsFunc(p.Transforms, func(t ir.Transform) bool { return !t.Endorse })
}

// asks tells whether a policy asks for anything.
func asks(p *ir.Program) bool {
	return slices.ContainsFunc(p.Clauses, func(c ir.Clause) bool { return c.Effect == ir.Ask }) ||
		slices.ContainsFunc(p.Defaults, func(d ir.Default) bool { return d.Effect == ir.Ask })
}
