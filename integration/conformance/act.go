// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/internal/daemon"
	"github.com/actplane/actplane/policy/model"
)

// actOut acts out all cases of a plan, one after the other.
func actOut(ctx context.Context, p *plan, actorFile string, keep bool, report *report) error {
	actor, err := os.ReadFile(actorFile)
	if err != nil {
		return usageError{fmt.Errorf("read the actor: %w", err)}
	}
	client, err := daemon.Ensure(ctx, daemon.Options{})
	if err != nil {
		return err
	}
	defer client.Close()
	work, err := os.MkdirTemp("", "conformance")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	r := runner{client: client, actor: actor, work: work, degraded: client.Status.Tier == "fmod_ret"}
	if keep {
		keeper, err := r.keep(ctx)
		if err != nil {
			return fmt.Errorf("start the container that keeps hooks attached: %w", err)
		}
		defer keeper.close()
	}
	for i := range p.Cases {
		c := &p.Cases[i]
		result := r.run(ctx, i, c)
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		report.tell(result)
	}
	return report.end(fmt.Sprintf("tier %s, kernel %s", client.Status.Tier, client.Status.Kernel))
}

type runner struct {
	client   *daemon.Client
	actor    []byte
	work     string
	degraded bool // the tier may refuse an exec by killing
}

// keeperCase needs every hook.
const keeperCase = `== keeper
policy:
  source S = file "/s"
  rule r:
    block exec "nothing"
    block write "/nothing" if S
    block send "192.0.2.1" if S
    block connect any unless after exec "nothing"
trace:
  a exit 0
`

// keep starts a container under a policy that needs every hook. The kernel takes its
// time to detach one, and with the last container all go.
func (r *runner) keep(ctx context.Context) (*container, error) {
	cases, err := model.ParseCases("keeper", keeperCase)
	if err != nil {
		return nil, err
	}
	c, err := planCase("keeper", &cases[0])
	if err != nil {
		return nil, err
	}
	id := fmt.Sprintf("conformance-%d-keeper", os.Getpid())
	return start(ctx, filepath.Join(r.work, id), id, c, r.actor)
}

// result is what is told of a case: why it was not acted out or what went otherwise,
// or neither.
type result struct {
	name   string
	no     string
	failed string
	place  string // file:line of the step that failed
}

func (r *runner) run(ctx context.Context, number int, c *planned) result {
	out := result{name: c.Name}
	if out.no = impossible(c); out.no != "" {
		return out
	}
	out.place = fmt.Sprintf("%s:%d", c.File, c.Line)
	id := fmt.Sprintf("conformance-%d-%d", os.Getpid(), number)
	box, err := start(ctx, filepath.Join(r.work, id), id, c, r.actor)
	var refused *refusedError
	switch {
	case errors.As(err, &refused) && strings.Contains(refused.why, notSupported):
		out.no = strings.TrimPrefix(refused.why, "actplane: ")
		return out
	case err != nil:
		out.failed = "the container does not start: " + err.Error()
		return out
	}
	step, err := r.watched(ctx, box, c)
	if errors.As(err, new(*unreachableError)) {
		out.no, err = err.Error(), nil
	}
	if step >= 0 {
		out.place = fmt.Sprintf("%s:%d", c.File, c.Steps[step].Line)
	}
	if err = errors.Join(err, box.close()); err != nil {
		out.failed = err.Error()
	}
	return out
}

func (r *runner) watched(ctx context.Context, box *container, c *planned) (int, error) {
	w, err := newWitness(ctx, r.client, box.id)
	if err != nil {
		return -1, err
	}
	defer w.cancel()
	w.restarts = func(lose bool) error { return box.restart(ctx, c, lose) }
	return trace(ctx, box, c, w, r.degraded, false)
}

// watcher knows what has been recorded of a container.
type watcher interface {
	// since returns what was recorded since the last call.
	since(ctx context.Context) ([]*api.Event, error)
	// answer gives a person's answer to the oldest request.
	answer(ctx context.Context, words []string) error
	// restart ends the container and starts it again, after what was saved of it is lost
	// if LOSE says so.
	restart(ctx context.Context, lose bool) error
}

// trace acts out the steps. It returns which one went otherwise, or -1. Where the
// kernel itself has no sense for a step (there is a directory where the case thinks of
// a file), the case cannot be acted out; a LENIENT one can up to there, and past it if
// the step was to be refused anyway.
func trace(ctx context.Context, box *container, c *planned, w watcher, degraded, lenient bool) (int, error) {
	actors, err := prepare(box, c)
	if err != nil {
		return -1, err
	}
	starting, err := w.since(ctx)
	if err != nil {
		return -1, err
	}
	atStart := rooted(c.Steps)
	for i := range c.Steps {
		step := &c.Steps[i]
		if err := box.stage.reachable(step.Words); err != nil {
			return i, fmt.Errorf("%s: %w", step.Text, err)
		}
		if c.folders != nil {
			if err := box.stage.moves(step.Words, c.folders[i]); err != nil {
				return i, fmt.Errorf("%s: %w", step.Text, err)
			}
		}
		if atStart { // the container has started with this
			if got := judge(outcome{}, starting, c.Program, degraded); !got.meets(step.Verdict, step.Rule) {
				return i, fmt.Errorf("%s: expected %s, got %s", step.Text, step.Want(), got)
			}
			atStart = false
			continue
		}
		if step.Words[0] == "human" {
			if err := w.answer(ctx, step.Words[1:]); err != nil {
				return i, fmt.Errorf("%s: %w", step.Text, err)
			}
			continue
		}
		var out outcome
		if isRestart(step.Words) {
			err = w.restart(ctx, step.Words[1] == "lost")
			if err == nil {
				actors, err = prepare(box, c)
			}
		} else {
			out, err = actors.act(step.Words)
		}
		if err != nil {
			return i, fmt.Errorf("%s: %w", step.Text, err)
		}
		events, err := w.since(ctx)
		if err != nil {
			return i, fmt.Errorf("%s: %w", step.Text, err)
		}
		if isRestart(step.Words) && rooted(c.Steps) {
			starting, atStart = events, true
			continue
		}
		if step.Words[1] == "mapexec" { // to map it, the actor opens it once more
			events = slices.DeleteFunc(events, func(e *api.Event) bool { return e.Operation != "exec" && e.Effect == "notify" })
		}
		if lenient && out.errno != 0 && out.errno != unix.EPERM {
			if len(events) == 0 && (step.Verdict == "block" || step.Verdict == "kill") {
				continue
			}
			return i, &unreachableError{fmt.Sprintf("%s: %s", step.Text, unix.ErrnoName(out.errno))}
		}
		got := judge(out, events, c.Program, degraded)
		if !got.meets(step.Verdict, step.Rule) && !(step.Verdict == "notify" && got.effect == "ok" && reportedBefore(step.Words)) {
			return i, fmt.Errorf("%s: expected %s, got %s", step.Text, step.Want(), got)
		}
	}
	return -1, nil
}

// reportedBefore tells what the engine records when it is refused, and else only that the
// file was opened for it, or the connection made.
func reportedBefore(words []string) bool {
	return words[1] == "fdread" || words[1] == "fdwrite" || words[1] == "send"
}
