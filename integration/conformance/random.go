// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/actplane/actplane/internal/randomcase"
	"github.com/actplane/actplane/policy"
	"github.com/actplane/actplane/policy/model"
)

// randomly acts out COUNT random cases, one for each seed from the first on, and
// compares every verdict and the labels that processes have in the end with the
// model's. One that goes otherwise is told in its smallest form, as a case.
func randomly(ctx context.Context, actorFile string, seed, count uint64, out io.Writer) (err error) {
	b, err := openBoxes(ctx, actorFile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	var cases, steps, differ int
	for ; count > 0 && ctx.Err() == nil; count, seed = count-1, seed+1 {
		g := &randomcase.Generator{Rand: rand.New(rand.NewPCG(seed, 1)), Acted: true}
		r := g.Case()
		if seed%4 == 0 {
			r.Widen()
		}
		c, done := plannedCase(r)
		if c == nil {
			continue
		}
		n, found, err := b.act(ctx, c)
		if err != nil {
			return fmt.Errorf("seed %d: %w", seed, err)
		}
		cases, steps = cases+1, steps+n
		if found == "" {
			continue
		}
		differ++
		r.Steps = done
		fmt.Fprintf(out, "seed %d: %s\n\n%s\n", seed, found, b.smallest(ctx, r))
	}
	fmt.Fprintf(out, "%d random cases, %d steps, %d differ from the model (tier %s, seeds up to %d)\n", cases, steps, differ, b.kernel.Tier(), seed-1)
	if differ > 0 {
		return errFailed
	}
	return ctx.Err()
}

// plannedCase makes a plan of those steps of a random case that make sense and can be
// acted out. It returns these, and nil for a case that is of no use.
func plannedCase(r *randomcase.Case) (*planned, [][]string) {
	p, err := policy.Compile([]policy.Document{{Name: "random", Text: r.Document()}}, policy.Options{Workspace: "/"})
	if err != nil || len(p.Unenforced) > 0 {
		return nil, nil
	}
	m := model.New(p.Program)
	sensible := randomcase.Case{Protects: r.Protects, Declarations: r.Declarations}
	var verdicts []string
	scripts := map[string]bool{} // by path: whether it is run as one
	try := func(words []string) bool {
		if impossibleStep(words) != "" {
			return false
		}
		if op := words[1]; strings.HasPrefix(op, "exec") || op == "mapexec" { // a file is the one or the other
			if script, ok := scripts[words[2]]; ok && script != (op == "execscript") {
				return false
			}
			scripts[words[2]] = op == "execscript"
		}
		d, err := m.Do(words)
		if err != nil {
			return false
		}
		sensible.Steps, verdicts = append(sensible.Steps, words), append(verdicts, d.String())
		return !d.Denied()
	}
	for _, words := range r.Steps {
		if words[1] == "mapexec" { // what is mapped has been opened to be read
			read := []string{words[0], "read", words[2]}
			n := len(sensible.Steps)
			if (n == 0 || !slices.Equal(sensible.Steps[n-1], read)) && !try(read) {
				continue
			}
		}
		try(words)
	}
	for ; len(sensible.Steps) > 0; sensible.Steps = sensible.Steps[:len(sensible.Steps)-1] {
		cases, err := model.ParseCases("random", sensible.Text("random", verdicts))
		if err != nil || len(cases) != 1 {
			return nil, nil
		}
		c, err := planCase("random", &cases[0])
		if err != nil {
			return nil, nil
		}
		if impossible(c) == "" {
			return c, sensible.Steps
		}
	}
	return nil, nil
}

// act acts out one case and returns what went otherwise, "" for nothing.
func (b *boxes) act(ctx context.Context, c *planned) (steps int, found string, err error) {
	x, err := b.start(ctx, c)
	if err != nil {
		return 0, "", err
	}
	defer func() { err = errors.Join(err, x.end()) }()
	at, failed := trace(ctx, x.container, c, x, b.kernel.Tier() == "fmod_ret", true)
	switch {
	case errors.As(failed, new(*unreachableError)):
		return at, "", nil // the rest cannot be acted out
	case failed != nil:
		return at, failed.Error(), nil
	}
	found, err = x.labels(c)
	return len(c.Steps), found, err
}

// labels compares those of the processes that are there with the model's. What no
// clause tests is not kept of files.
func (x *box) labels(c *planned) (string, error) {
	m := model.New(c.Program)
	var found []string
	for _, step := range c.Steps {
		if _, err := m.Do(step.Words); err != nil {
			return "", err
		}
	}
	tested := x.policy.Image.Labels | x.policy.Image.Integrity
	for _, name := range subjectNames(c) {
		s := x.subjects[name]
		if s.ended() {
			continue
		}
		p, ok, err := x.boxes.kernel.Process(s.pid)
		if err != nil {
			return "", err
		}
		want := m.Process(name).Labels & tested
		switch {
		case !ok:
			found = append(found, fmt.Sprintf("process %s is in no scope", name))
		case p.Labels&tested != want:
			found = append(found, fmt.Sprintf("process %s has the labels %s, and in the model %s",
				name, m.LabelNames(p.Labels&tested), m.LabelNames(want)))
		}
	}
	return strings.Join(found, "; "), nil
}

// smallest is the smallest form of a case that goes otherwise than in the model.
func (b *boxes) smallest(ctx context.Context, r *randomcase.Case) string {
	differs := func(r *randomcase.Case) string {
		c, steps := plannedCase(r)
		if c == nil || len(steps) != len(r.Steps) || ctx.Err() != nil {
			return ""
		}
		_, found, err := b.act(ctx, c)
		if err != nil {
			return ""
		}
		return found
	}
	randomcase.Minimize(r, func(r *randomcase.Case) bool { return differs(r) != "" })
	found := differs(r)
	p, err := policy.Compile([]policy.Document{{Name: "random", Text: r.Document()}}, policy.Options{Workspace: "/"})
	if err != nil {
		return err.Error()
	}
	m := model.New(p.Program)
	var verdicts []string
	for _, step := range r.Steps {
		d, _ := m.Do(step)
		verdicts = append(verdicts, d.String())
	}
	return "# " + found + "\n" + r.Text("found", verdicts)
}
