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
	document := r.Document()
	p, err := policy.Compile([]policy.Document{{Name: "random", Text: document, Layer: policy.Operator}}, policy.Options{Workspace: "/"})
	if err != nil || len(p.Unenforced) > 0 {
		return nil
	}
	d := director{program: p.Program, scripts: map[string]bool{}, bound: map[string]bool{}}
	if !d.begin(r.Steps) {
		return nil
	}
	for _, words := range r.Steps {
		d.direct(words)
	}
	c := model.Case{Name: "random", YAML: string(document), Steps: d.steps}
	files, err := model.Outside(p.Program, &c)
	if err != nil {
		return nil
	}
	i := misused(d.steps, d.folders, files)
	if len(d.twice) > 0 {
		i = d.twice[0]
	}
	if i >= 0 {
		rest := *r
		rest.Steps = words(slices.Delete(d.steps, i, i+1))
		return trialOf(&rest)
	}
	source := &randomcase.Case{Protects: r.Protects, Declarations: r.Declarations, Steps: words(d.steps)}
	return &trial{
		planned: &planned{Case: c, File: "random", Document: string(document), Workspace: "/", Program: p.Program, Files: files, folders: d.folders},
		source:  source, policy: p, want: d.crew.model,
	}
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
	changed := map[string]bool{}
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
			if matters && !changed[name] && found >= 0 && (files[found].Use == model.Directory) != folder {
				return i
			}
		}
		if !follows(step.Words[1], 0) && (step.Verdict == "ok" || step.Verdict == "notify") {
			for _, name := range paths(step.Words) {
				changed[name] = true
			}
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
	return func(words []string) int {
		if words[0] == "connect" && asks {
			return 0 // a ring may ask twice for one connection
		}
		h := fnv.New32a()
		fmt.Fprintf(h, "%d %q", t.seed, words)
		return int(h.Sum32() >> 1)
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
		fmt.Fprintf(&b, "# %s: way %d\n", step.Text, by(step.Words))
	}
	return t.source.Text(fmt.Sprintf("found-%d", t.seed), verdicts) + b.String()
}

// asks tells whether a policy asks for anything.
func asks(p *ir.Program) bool {
	return slices.ContainsFunc(p.Clauses, func(c ir.Clause) bool { return c.Effect == ir.Ask }) ||
		slices.ContainsFunc(p.Defaults, func(d ir.Default) bool { return d.Effect == ir.Ask })
}
