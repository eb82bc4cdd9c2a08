// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/engine/approver"
	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/engine/notify"
	"github.com/actplane/actplane/feedback"
)

// fakeNotifier notes what people would be told.
type fakeNotifier struct {
	mu   sync.Mutex
	told []notify.Event
}

func (f *fakeNotifier) Wants(string) bool { return true }

func (f *fakeNotifier) Tell(e notify.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told = append(f.told, e)
}

func (f *fakeNotifier) Run(ctx context.Context) { <-ctx.Done() }

func (f *fakeNotifier) Problems() []string { return []string{"somebody is not told"} }

// types lists what was told so far.
func (f *fakeNotifier) types() (types []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.told {
		types = append(types, e.Type)
	}
	return types
}

// wait waits until so many things were told.
func (f *fakeNotifier) wait(t *testing.T, want ...string) {
	t.Helper()
	for end := time.Now().Add(deadline); !slices.Equal(f.types(), want); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("told are %v, want %v", f.types(), want)
		}
	}
}

func TestPeopleAreTold(t *testing.T) {
	f := &fakeNotifier{}
	b := newAskBench(t)
	b.notifier = f
	b.restart()
	b.ask(kernel.Opened, kernel.AskKey{1}, 200)
	r := b.requests(1)[0]
	f.wait(t, "request.opened")
	b.ask(kernel.StillOpen, kernel.AskKey{1}, 200) // is nothing new
	b.approve(&api.AnswerRequest{Id: r.Id, ForMs: 60_000})
	f.wait(t, "request.opened", "request.granted")
	if _, err := b.client.Revoke(context.Background(), &api.RevokeRequest{Id: r.Id}); err != nil {
		t.Fatal(err)
	}
	b.heldProcess(201, "T")
	b.ask(kernel.Held, kernel.AskKey{2}, 201)
	b.last(feedback.Held)
	_ = b.kernel.CloseRequest(b.slot, kernel.AskKey{2}, 201)
	b.ask(kernel.TimedOut, kernel.AskKey{2}, 201)
	f.wait(t, "request.opened", "request.granted", "request.revoked", "request.opened", "request.timed-out", "operation.denied")
	b.ask(kernel.NoRoom, kernel.AskKey{3}, 200)
	b.ask(kernel.Denied, kernel.AskKey{3}, 200)
	b.ask(kernel.Granted, kernel.AskKey{1}, 200)
	b.last(feedback.Used)
	if types := f.types(); len(types) != 8 || types[6] != "operation.denied" || types[7] != "operation.denied" {
		t.Errorf("told are %v", types)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if e := f.told[0]; e.Request.ID != r.Id || e.Request.Name != "name-c" || e.Request.Rule != "push" {
		t.Errorf("told is %+v", e.Request)
	}
	if e := f.told[6]; e.Denial.Object != "/usr/bin/git" || e.Denial.Outcome != "unasked" || e.Denial.Scope != "c" {
		t.Errorf("told is %+v", e.Denial)
	}
	status, err := b.client.Status(context.Background(), &api.StatusRequest{})
	if err != nil || len(status.Notices) != 1 || !strings.Contains(status.Notices[0], "not told") {
		t.Errorf("status %v, %v", status, err)
	}
}

// People are told of a request when it is theirs to answer.
func TestPeopleAreToldAfterApprovers(t *testing.T) {
	fake, f := always(approver.Verdict{Decision: approver.Pass, Warnings: []approver.Warning{{Approver: "rules", Text: "hm"}}}), &fakeNotifier{}
	fake.release = make(chan struct{})
	b := approversBench(t, fake)
	b.notifier = f
	b.restart()
	b.ask(kernel.Opened, kernel.AskKey{1}, 200)
	b.last(feedback.Opened)
	if told := f.types(); len(told) > 0 {
		t.Errorf("told are %v", told)
	}
	close(fake.release)
	f.wait(t, "request.opened")
	f.mu.Lock()
	defer f.mu.Unlock()
	if w := f.told[0].Request.Warnings; len(w) != 1 || w[0].Text != "hm" {
		t.Errorf("told is %+v", f.told[0].Request)
	}
}
