// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/feedback"
	"github.com/actplane/actplane/internal/daemon"
	"github.com/actplane/actplane/policy/ir"
)

// eventTimeout is how long a record may take from the kernel to here.
const eventTimeout = time.Minute

// witness knows what the engine has told of a scope.
type witness struct {
	client *daemon.Client
	id     string
	events chan *api.Event
	failed chan error
	seen   uint64
	cancel context.CancelFunc
	// restarts is of the container.
	restarts func(lose bool) error
}

func newWitness(ctx context.Context, client *daemon.Client, id string) (*witness, error) {
	ctx, cancel := context.WithCancel(ctx)
	stream, err := client.Events(ctx, &api.EventsRequest{Scope: id, Follow: true, History: true})
	if err != nil {
		cancel()
		return nil, fmt.Errorf("ask for events: %s", daemon.Reason(err))
	}
	w := &witness{client: client, id: id, events: make(chan *api.Event, 1024), failed: make(chan error, 1), cancel: cancel}
	go func() {
		for {
			event, err := stream.Recv()
			if err != nil {
				w.failed <- err
				return
			}
			if !isAnswer(event) {
				w.events <- event
			}
		}
	}()
	return w, nil
}

// answer is the watcher's.
func (w *witness) answer(ctx context.Context, words []string) error {
	return answer(ctx, w.client, w.id, words)
}

// restart is the watcher's.
func (w *witness) restart(_ context.Context, lose bool) error { return w.restarts(lose) }

// since returns what has been recorded since the last call. The kernel counts before
// an operation returns, so that nothing is missed and nothing waited for in vain.
func (w *witness) since(ctx context.Context) ([]*api.Event, error) {
	list, err := w.client.List(ctx, &api.ListRequest{})
	if err != nil {
		return nil, fmt.Errorf("ask for counters: %s", daemon.Reason(err))
	}
	i := slices.IndexFunc(list.Scopes, func(s *api.Scope) bool { return s.Id == w.id })
	if i < 0 {
		return nil, fmt.Errorf("the engine knows no scope %s", w.id)
	}
	scope := list.Scopes[i]
	if scope.Lost > 0 {
		return nil, fmt.Errorf("%d records were lost", scope.Lost)
	}
	var events []*api.Event
	deadline := time.After(eventTimeout)
	for total := scope.Denied + scope.Notified; w.seen < total; w.seen++ {
		select {
		case event := <-w.events:
			events = append(events, event)
		case err := <-w.failed:
			return nil, fmt.Errorf("read events: %s", daemon.Reason(err))
		case <-deadline:
			return nil, fmt.Errorf("the engine counts %d records, and tells of %d", total, w.seen)
		}
	}
	return events, nil
}

// verdict is what the kernel made of a step, in the words of a case.
type verdict struct {
	effect string // or what else happened
	rule   string
}

func (v verdict) String() string { return strings.TrimSpace(v.effect + " " + v.rule) }

// judge puts together what became of the process and what the engine recorded. The
// rule is that of the strictest record, of these the first in the policy.
func judge(out outcome, events []*api.Event, program *ir.Program, degraded bool) verdict {
	effects := []string{"notify", "ask", "block", "kill"}
	v := verdict{effect: "ok"}
	order := func(rule string) int { // a default comes behind all rules
		i := slices.IndexFunc(program.Rules, func(r ir.Rule) bool { return r.Name == rule })
		return (i + len(program.Rules) + 1) % (len(program.Rules) + 1)
	}
	for _, e := range events {
		if e.Outcome == string(feedback.Used) {
			continue
		}
		if e.Effect == "notify" && e.Clause == "" && e.Rule == "" {
			continue // a program that opened nothing: no clause says so
		}
		now, then := slices.Index(effects, e.Effect), slices.Index(effects, v.effect)
		if now > then || now == then && order(e.Rule) < order(v.rule) {
			v = verdict{e.Effect, e.Rule}
		}
	}
	denied := v.effect == "ask" || v.effect == "block" || v.effect == "kill"
	switch {
	case out.gone && (v.effect == "block" || v.effect == "ask") && degraded && events[len(events)-1].Operation == "exec":
		// Told in docs/architecture.md: the second look refuses by killing.
	case out.gone && v.effect != "kill":
		return verdict{effect: fmt.Sprintf("a killed process (recorded: %s)", v)}
	case v.effect == "kill" && !out.gone:
		return verdict{effect: fmt.Sprintf("a process that lives on (recorded: %s)", v)}
	case out.gone:
	case out.errno == unix.EPERM && !denied:
		return verdict{effect: fmt.Sprintf("EPERM (recorded: %s)", v)}
	case out.errno != unix.EPERM && denied:
		return verdict{effect: fmt.Sprintf("%s (recorded: %s)", returned(out), v)}
	case out.errno != unix.EPERM && out.errno != 0:
		return verdict{effect: returned(out)}
	}
	return v
}

func returned(out outcome) string {
	if out.errno == 0 {
		return "success"
	}
	return unix.ErrnoName(out.errno)
}

// meets tells whether a verdict is the one that a step states; without a rule any
// will do.
func (v verdict) meets(wanted, rule string) bool {
	return v.effect == wanted && (rule == "" || rule == v.rule)
}
