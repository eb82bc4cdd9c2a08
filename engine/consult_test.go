// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/engine/approver"
	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/feedback"
)

// fakeApprovers say what the test says, and count how many are asked at a time.
type fakeApprovers struct {
	say     func(*api.RequestDocument) approver.Verdict
	release chan struct{} // nil: they answer at once

	mu        sync.Mutex
	asked     []string
	now, most int
}

func (f *fakeApprovers) Asks(rule, operation, container string) bool {
	return rule == "push" && container == "name-c"
}

func (f *fakeApprovers) Ask(ctx context.Context, r *api.RequestDocument) (approver.Verdict, error) {
	f.mu.Lock()
	f.asked = append(f.asked, r.ID)
	f.now++
	f.most = max(f.most, f.now)
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.now--
	}()
	if f.release != nil {
		select {
		case <-f.release:
		case <-ctx.Done():
			return approver.Verdict{}, ctx.Err()
		}
	}
	return f.say(r), ctx.Err()
}

func (f *fakeApprovers) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.asked)
}

// wait waits until they were asked so often.
func (f *fakeApprovers) wait(t *testing.T, n int) {
	t.Helper()
	for end := time.Now().Add(deadline); f.count() < n; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("they were asked %d times, want %d", f.count(), n)
		}
	}
}

func always(v approver.Verdict) *fakeApprovers {
	return &fakeApprovers{say: func(*api.RequestDocument) approver.Verdict { return v }}
}

// approversBench is an ask bench whose daemon has approvers.
func approversBench(t *testing.T, f *fakeApprovers) *askBench {
	b := newAskBench(t)
	b.approvers = f
	b.restart()
	return b
}

func TestApproverGrants(t *testing.T) {
	b := approversBench(t, always(approver.Verdict{
		Decision: approver.Grant, By: "rules", For: time.Minute, Once: true, Warnings: []approver.Warning{{Approver: "night", Text: "it is late"}},
	}))
	key := kernel.AskKey{1}
	b.ask(kernel.Opened, key, 200)
	item := b.last(feedback.Grant)
	for _, want := range []string{`was approved by approver "rules"`, "Warning: approver night: it is late."} {
		if !strings.Contains(item.Message(), want) {
			t.Errorf("message %s", item.Message())
		}
	}
	if item.By != "approver rules" {
		t.Errorf("by %q", item.By)
	}
	r := b.requests(1)[0]
	if r.State != "granted" || r.Deciding || r.Answered.By.Via != "approver" || r.Answered.By.Name != "rules" || r.Answered.Count != 1 ||
		len(r.Warnings) != 1 || r.Warnings[0].Approver != "night" {
		t.Errorf("request %v", r)
	}
	b.kernel.set(func() {
		if a := b.kernel.answers[b.slot][key]; a.Count != 1 || a.Timed || a.For != time.Minute {
			t.Errorf("the kernel has %+v", a)
		}
	})
	b.ask(kernel.Granted, key, 200)
	if item := b.last(feedback.Used); !strings.Contains(item.Message(), `approver "rules" had approved`) {
		t.Errorf("message %s", item.Message())
	}
}

func TestApproverDenies(t *testing.T) {
	b := approversBench(t, always(approver.Verdict{Decision: approver.Deny, By: "rules", Because: "Not on a Friday.", For: time.Hour}))
	b.heldProcess(200, "T")
	key := kernel.AskKey{1}
	b.ask(kernel.Opened, key, 200)
	if item := b.last(feedback.Denial); !strings.Contains(item.Message(), `was denied by approver "rules"`) || !strings.Contains(item.Message(), "Not on a Friday.") {
		t.Errorf("message %s", item.Message())
	}
	b.kernel.set(func() {
		if a := b.kernel.answers[b.slot][key]; !a.Denied || a.For != time.Hour {
			t.Errorf("the kernel has %+v", a)
		}
	})
}

// Those who pass on leave it to a person, who sees what they warned of.
func TestApproverPasses(t *testing.T) {
	f := always(approver.Verdict{Decision: approver.Pass, Warnings: []approver.Warning{{Approver: "rules", Text: "force"}}})
	f.release = make(chan struct{})
	b := approversBench(t, f)
	b.ask(kernel.Opened, kernel.AskKey{1}, 200)
	b.last(feedback.Opened)
	if r := b.requests(1)[0]; !r.Deciding || r.State != "open" {
		t.Errorf("request %v", r)
	}
	close(f.release)
	if item := b.last(feedback.Warned); !strings.Contains(item.Message(), "waits for a person's approval") || !strings.Contains(item.Message(), "Warning: approver rules: force.") {
		t.Errorf("message %s", item.Message())
	}
	r := b.requests(1)[0]
	if r.Deciding || r.State != "open" || len(r.Warnings) != 1 {
		t.Errorf("request %v", r)
	}
	b.approve(&api.AnswerRequest{Id: r.Id, Count: 1})
	if item := b.last(feedback.Grant); !strings.Contains(item.Message(), "by a person") || !strings.Contains(item.Message(), "Warning: approver rules: force.") {
		t.Errorf("message %s", item.Message())
	}
	if f.count() != 1 {
		t.Errorf("they were asked %d times", f.count())
	}
}

// A person may be faster; and the daemon that comes after one that was killed asks anew.
func TestApproverIsLate(t *testing.T) {
	f := always(approver.Verdict{Decision: approver.Grant, By: "rules", For: time.Hour})
	f.release = make(chan struct{})
	b := approversBench(t, f)
	b.ask(kernel.Opened, kernel.AskKey{1}, 200)
	r := b.requests(1)[0]
	f.wait(t, 1)
	b.approve(&api.AnswerRequest{Id: r.Id, Denied: true, ScopeLifetime: true})
	b.ask(kernel.Opened, kernel.AskKey{2}, 200)
	f.wait(t, 2)
	b.restart()
	close(f.release)
	b.last(feedback.Grant)
	all := b.requests(2)
	if all[0].State != "denied" || all[0].Answered.By.Via == "approver" || all[1].State != "granted" {
		t.Errorf("requests %v", all)
	}
}

// Neither records nor other containers wait for approvers, and one container does not
// take them all.
func TestApproversAreBounded(t *testing.T) {
	f := always(approver.Verdict{Decision: approver.Grant, By: "rules", For: time.Hour})
	f.release = make(chan struct{})
	b := approversBench(t, f)
	const many = 20
	for i := range many {
		b.ask(kernel.Opened, kernel.AskKey{uint64(i + 1)}, 200)
	}
	all := b.requests(many) // they hang, and all is recorded
	for _, r := range all {
		if !r.Deciding {
			t.Errorf("request %v", r)
		}
	}
	close(f.release)
	for end := time.Now().Add(deadline); ; time.Sleep(time.Millisecond) {
		granted := 0
		for _, r := range b.requests(many) {
			if r.State == "granted" {
				granted++
			}
		}
		if granted == many {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %d are granted", granted, many)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.most > maxConsultedOfScope || len(f.asked) != many {
		t.Errorf("%d at a time, %d in all", f.most, len(f.asked))
	}
	seen := map[string]bool{}
	for _, id := range f.asked {
		if seen[id] {
			t.Errorf("request %s is asked about twice", id)
		}
		seen[id] = true
	}
}

// Where the next daemon has no approvers, what they were asked about is for people.
func TestApproversAreGone(t *testing.T) {
	fake, f := always(approver.Verdict{Decision: approver.Grant, By: "rules", For: time.Hour}), &fakeNotifier{}
	fake.release = make(chan struct{})
	b := approversBench(t, fake)
	b.ask(kernel.Opened, kernel.AskKey{1}, 200)
	fake.wait(t, 1)
	b.approvers, b.notifier = nil, f
	b.restart()
	if r := b.requests(1)[0]; r.Deciding || r.State != "open" {
		t.Errorf("request %v", r)
	}
	f.wait(t, "request.opened")
}
