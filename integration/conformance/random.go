// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/internal/randomcase"
	"github.com/actplane/actplane/policy/model"
)

// randomly acts out the random cases of a file that write has made, and compares every
// verdict, and in the end the labels of processes and files and the gates, with the
// model's. One that goes otherwise is told in its smallest form, as a case.
func randomly(ctx context.Context, actorFile, file string, out io.Writer) (err error) {
	// A test need not wait for what others do in this kernel.
	if err := os.WriteFile("/sys/kernel/rcu_expedited", []byte("1"), 0); err != nil {
		return err
	}
	debug.SetGCPercent(400) // an emulated machine has memory, and no time
	b, err := openBoxes(ctx, actorFile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	sum := tally{first: math.MaxUint64}
	err = readTrials(file, func(t *trial) error {
		if err := b.try(ctx, t, &sum, out); err != nil {
			return fmt.Errorf("seed %d: %w", t.seed, err)
		}
		if sum.cases%tellEvery == 0 {
			fmt.Fprintln(out, &sum)
		}
		return ctx.Err()
	})
	fmt.Fprintln(out, &sum, "tier", b.kernel.Tier())
	if err == nil && sum.differ > 0 {
		return errFailed
	}
	return err
}

// tellEvery is after how many cases is told how far it is.
const tellEvery = 500

// tally counts.
type tally struct {
	first, last                 uint64 // seeds
	cases, whole, steps, differ uint64
}

func (t *tally) String() string {
	return fmt.Sprintf("%d random cases, %d to their end, %d steps, %d differ from the model (seeds %d to %d)",
		t.cases, t.whole, t.steps, t.differ, t.first, t.last)
}

// try acts out one case, and tells of it if it goes otherwise than on the model.
func (b *boxes) try(ctx context.Context, t *trial, sum *tally, out io.Writer) error {
	t, n, found, err := b.act(ctx, t)
	if err != nil {
		return err
	}
	sum.first, sum.last = min(sum.first, t.seed), max(sum.last, t.seed)
	sum.cases, sum.steps = sum.cases+1, sum.steps+uint64(n)
	if n == len(t.Steps) {
		sum.whole++
	}
	if found != "" {
		sum.differ++
		fmt.Fprintf(out, "seed %d: %s\n\n%s\n", t.seed, found, b.smallest(ctx, t, kindOf(found)))
	}
	return nil
}

// tries bounds how often a case is acted out without one more step that the kernel itself
// had no sense for.
const tries = 12

// act acts out one case and returns what went otherwise, "" for nothing, and what of the
// case was acted out.
func (b *boxes) act(ctx context.Context, t *trial) (acted *trial, steps int, found string, err error) {
	for try := 1; ; try++ {
		at, found, err := b.once(ctx, t)
		if err != nil || found != "" || at == len(t.Steps) || try == tries {
			return t, at, found, err
		}
		rest := *t.source
		rest.Steps = slices.Delete(slices.Clone(rest.Steps), at, at+1)
		less := trialUnder(t.policy, &rest)
		if less == nil {
			return t, at, "", nil
		}
		less.seed = t.seed
		t = less
	}
}

// once acts out a case up to a step that makes no sense to the kernel.
func (b *boxes) once(ctx context.Context, t *trial) (steps int, found string, err error) {
	x, err := b.start(ctx, t)
	if err != nil {
		return 0, "", err
	}
	defer func() { err = errors.Join(err, x.end()) }()
	at, failed := trace(ctx, x.container, t.planned, x, b.kernel.Tier() == kernel.FmodRet, true)
	switch {
	case errors.As(failed, new(*unreachableError)):
		return at, "", nil
	case failed != nil:
		return at, failed.Error(), nil
	}
	found, err = x.compare()
	return len(t.Steps), found, err
}

// compare compares what the kernel side holds in the end with the model: the labels of
// the processes that are there and of the files that the case is about, and the gates.
func (x *box) compare() (string, error) {
	var found []string
	state, err := x.boxes.kernel.State(x.slot)
	if err != nil {
		return "", err
	}
	for i, gate := range x.Program.Gates {
		if is, want := slices.Contains(state.Fresh, i), x.want.Fresh(i); is != want {
			found = append(found, fmt.Sprintf("`%s`: open is %t, and in the model %t", gate.Text, is, want))
		}
	}
	processes, err := x.compareProcesses()
	if err != nil {
		return "", err
	}
	files, err := x.compareFiles(state)
	return strings.Join(slices.Concat(found, processes, files), "; "), err
}

// compareProcesses: what no clause tests is not kept of files, and so does not come from
// them.
func (x *box) compareProcesses() (found []string, err error) {
	tested := x.policy.Image.Labels
	if tested != 0 { // else nothing follows any
		tested |= x.policy.Image.Integrity
	}
	for _, name := range subjectNames(x.planned) {
		s := x.subjects[name]
		if s.ended() {
			continue
		}
		// What has come to a process meanwhile, it holds with the next that it does.
		if _, err := s.do("nothing"); err != nil {
			return nil, err
		}
		p, ok, err := x.boxes.kernel.Process(s.pid)
		if err != nil {
			return nil, err
		}
		want := x.want.Process(name).Labels & tested
		switch {
		case !ok:
			found = append(found, fmt.Sprintf("process %s is in no scope", name))
		case p.Labels&tested != want:
			found = append(found, fmt.Sprintf("process %s has the labels %s, and in the model %s",
				name, x.want.LabelNames(p.Labels&tested), x.want.LabelNames(want)))
		}
	}
	return found, nil
}

// compareFiles looks at every path of the case that leads to a file in the end. Of
// files that are not listed nothing is known after a loss, and nothing compared.
func (x *box) compareFiles(state kernel.State) (found []string, err error) {
	held := map[uint64]kernel.File{}
	for _, f := range state.Files {
		held[f.ID.Inode] = f
	}
	kept, _ := kernel.Keeps(x.policy.Image)
	fresh := model.New(x.Program) // which knows labels by path alone
	seen := map[string]bool{}
	for _, step := range x.Steps {
		for _, path := range paths(step.Words) {
			name, inode, err := x.stage.file(path)
			if err != nil {
				return nil, err
			}
			f, listed := held[inode]
			if name == "" || seen[name] || !listed && state.AssumedFlags != 0 {
				continue
			}
			seen[name] = true
			is := (f.Labels | fresh.FileLabels(name)) & kept
			if want := x.want.FileLabels(name) & kept; is != want {
				found = append(found, fmt.Sprintf("file %s has the labels %s, and in the model %s",
					name, x.want.LabelNames(is), x.want.LabelNames(want)))
			}
		}
	}
	return found, nil
}

// maxSmaller bounds how many smaller forms of a case are tried.
const maxSmaller = 100

// kindOf is what stays of what was found when the case gets smaller.
func kindOf(found string) string {
	word := func(text string) string {
		word, _, _ := strings.Cut(text, " ")
		return word
	}
	if _, after, ok := strings.Cut(found, ": expected "); ok {
		wanted, got, _ := strings.Cut(after, ", got ")
		return word(wanted) + " " + word(got)
	}
	return word(found)
}

// smallest is the smallest form of a case that goes otherwise than in the model, in the
// same way.
func (b *boxes) smallest(ctx context.Context, t *trial, kind string) string {
	differs := func(r *randomcase.Case) (*trial, string) {
		less := trialOf(r)
		if less == nil || len(less.Steps) != len(r.Steps) || ctx.Err() != nil {
			return nil, ""
		}
		less.seed = t.seed
		_, found, err := b.once(ctx, less)
		if err != nil {
			return nil, ""
		}
		return less, found
	}
	r, left := *t.source, maxSmaller
	randomcase.Minimize(&r, func(r *randomcase.Case) bool {
		if left--; left < 0 {
			return false
		}
		_, found := differs(r)
		return found != "" && kindOf(found) == kind
	})
	least, found := differs(&r)
	if least == nil {
		return "(not every time)\n" + t.text()
	}
	return "# " + found + "\n" + least.text()
}
