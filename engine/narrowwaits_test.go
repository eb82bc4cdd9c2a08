// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/feedback"
	"github.com/actplane/actplane/policy"
	"github.com/actplane/actplane/policy/dfa"
	"github.com/actplane/actplane/policy/ir"
)

// slowCompiler compiles when it is let.
type slowCompiler struct{ begun, let chan struct{} }

func (s slowCompiler) compile(p *ir.Program) (*dfa.Image, error) {
	s.begun <- struct{}{}
	<-s.let
	return policy.CompileProgram(p)
}

// While a container has rules compiled, and others of its processes wait for that, an
// operator locks it, and it can end; what was compiled for what is not there any more holds
// nowhere.
func TestNobodyWaitsForRules(t *testing.T) {
	m := newMachine(t)
	m.compile = policy.CompileProgram
	e, client, _ := m.start()
	i, slot, peer := m.narrowed(e, client, 100)
	slow := slowCompiler{make(chan struct{}), make(chan struct{})}
	e.images.compile = slow.compile
	ended := make(chan error, 2)
	ask := func(ctx context.Context, text string) {
		_, err := i.Narrow(ctx, peer, feedback.NarrowRequest{Policy: text, For: feedback.ForProcess})
		ended <- err
	}
	go ask(t.Context(), cut)
	<-slow.begun
	gone, goes := context.WithCancel(t.Context())
	go ask(gone, "rule other: block exec any")
	if _, err := client.Lockdown(t.Context(), &api.LockdownRequest{Scope: "c", Because: "now"}); err != nil {
		t.Fatal(err)
	}
	if stats, _ := m.kernel.Stats(slot); !stats.Locked {
		t.Error("it is not locked")
	}
	m.kernel.set(func() { m.kernel.processes[100] = kernel.Process{ID: 6, Slot: slot, Ancestors: []kernel.ProcessID{4}} }) // the pid is another's
	goes()
	close(slow.let)
	for range 2 {
		if err := <-ended; err == nil {
			t.Error("rules were added for a process that has ended, or for who has gone")
		}
	}
	if rules := rulesIn(t, m, i.scope, slot); rules != "a" || m.kernel.processes[100].Labels != 0 {
		t.Errorf("in force: %s", rules)
	}
}

// What takes long to compile is not compiled again and again.
func TestCompilerRests(t *testing.T) {
	m := newMachine(t)
	m.compile = policy.CompileProgram
	e, client, _ := m.start()
	i, _, peer := m.narrowed(e, client, 100)
	e.images.compile = func(*ir.Program) (*dfa.Image, error) {
		time.Sleep(8 * fastWork)             // the rest is longer than anybody waits
		return nil, context.DeadlineExceeded // whatever is wrong with it
	}
	_, err := m.narrow(i, peer, feedback.ForContainer, cut)
	wantRefusal(t, err, http.StatusUnprocessableEntity, "too large")
	ask := func() error {
		_, err := i.Narrow(t.Context(), peer, feedback.NarrowRequest{Policy: cut, For: feedback.ForContainer})
		return err
	}
	wantRefusal(t, ask(), http.StatusTooManyRequests, "took long")
	i.scope.adding.rested = time.Now()
	wantRefusal(t, ask(), http.StatusUnprocessableEntity, "too large")
}

// Nor is the model asked all the time, and while it decides for one container others of the
// same wait for that alone.
func TestChecksRest(t *testing.T) {
	m := newMachine(t)
	m.compile = policy.CompileProgram
	e, client, _ := m.start()
	i, _, peer := m.narrowed(e, client, 100)
	asked := 0
	e.config.Decide = func(*ir.Program, Question) (Verdict, error) {
		asked++
		time.Sleep(8 * fastWork)
		return Verdict{Effect: ir.Allow}, nil
	}
	ask := func(ctx context.Context) error {
		_, err := i.Check(ctx, peer, feedback.CheckRequest{Operation: "exec", Object: "/bin/x"})
		return err
	}
	if err := ask(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantRefusal(t, ask(t.Context()), http.StatusTooManyRequests, "took long")
	i.scope.checking.rested = time.Now().Add(maxRest)
	gone, goes := context.WithCancel(t.Context())
	goes()
	if err := ask(gone); err == nil || asked != 1 {
		t.Errorf("%v, asked %d times", err, asked)
	}
	i.scope.checking.rested = time.Now().Add(fastWork)
	if err := ask(t.Context()); err != nil || asked != 2 {
		t.Errorf("%v, asked %d times", err, asked)
	}
}
