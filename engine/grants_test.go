// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/feedback"
)

// approve answers a request of the bench.
func (b *askBench) approve(req *api.AnswerRequest) {
	b.t.Helper()
	if _, err := b.client.Answer(context.Background(), req); err != nil {
		b.t.Fatal(err)
	}
}

// grants lists what is in force.
func (b *askBench) grants() []*api.Grant {
	b.t.Helper()
	response, err := b.client.ListGrants(context.Background(), &api.ListGrantsRequest{Scope: "c"})
	if err != nil {
		b.t.Fatal(err)
	}
	return response.Grants
}

func (b *askBench) setAnswer(key kernel.AskKey, edit func(*kernel.Answer)) {
	b.kernel.set(func() {
		a := b.kernel.answers[b.slot][key]
		edit(&a)
		b.kernel.answers[b.slot][key] = a
	})
}

func (b *askBench) hasAnswer(key kernel.AskKey) (there bool) {
	b.kernel.set(func() { _, there = b.kernel.answers[b.slot][key] })
	return there
}

func TestGrantsAreListed(t *testing.T) {
	b := newAskBench(t)
	for i, req := range []*api.AnswerRequest{
		{Count: 2, By: &api.Operator{Uid: 1001, Name: "ann", Via: "cli"}},
		{ForMs: 60_000},
		{Denied: true, ScopeLifetime: true, Because: "no"},
		{Count: 1, ForMs: 60_000},
	} {
		b.ask(kernel.Opened, kernel.AskKey{uint64(i + 1)}, 200+i)
		req.Id = b.last(feedback.Opened).Request
		b.approve(req)
		b.advance(time.Millisecond)
	}
	b.setAnswer(kernel.AskKey{1}, func(a *kernel.Answer) { a.Count, a.Used = 1, 1 })
	b.advance(10 * time.Second)
	grants := b.grants()
	if len(grants) != 4 {
		t.Fatalf("grants %v", grants)
	}
	if g := grants[0]; g.Left != 1 || g.LeftMs != 0 || g.Used != 1 || g.Request.Answered.By.Name != "ann" || g.Request.Operation != "exec" {
		t.Errorf("counted %v", g)
	}
	if g := grants[1]; g.Left != 0 || g.LeftMs < 49_000 || g.LeftMs > 51_000 {
		t.Errorf("timed %v", g)
	}
	if g := grants[2]; !g.Request.Answered.Denied || g.LeftMs != 0 {
		t.Errorf("denied %v", g)
	}
	if g := grants[3]; g.Left != 1 || g.LeftMs < 49_000 {
		t.Errorf("counted and timed %v", g)
	}
	if a := b.kernel.answers[b.slot][kernel.AskKey{4}]; a.Timed || a.Count != 1 || a.For != time.Minute {
		t.Errorf("the kernel has %+v", a)
	}
	if _, err := b.client.ListGrants(context.Background(), &api.ListGrantsRequest{Scope: "nope"}); err == nil {
		t.Error("grants of an unknown scope")
	}
}

func TestRevoke(t *testing.T) {
	b := newAskBench(t)
	key := kernel.AskKey{1, 2}
	b.ask(kernel.Opened, key, 200)
	id := b.last(feedback.Opened).Request
	revoke := func(id string) (*api.Request, error) {
		return b.client.Revoke(context.Background(), &api.RevokeRequest{Id: id, By: &api.Operator{Uid: 1002, Name: "bob", Via: "cli"}})
	}
	_, err := revoke(id)
	wantError(t, err, "has no answer in force")
	_, err = revoke("nope")
	wantError(t, err, "no request is called")
	b.approve(&api.AnswerRequest{Id: id, ForMs: 600_000, By: &api.Operator{Uid: 1001, Name: "ann", Via: "cli"}})
	r, err := revoke(id)
	if err != nil || r.State != "revoked" || r.Answered.Over != "revoked" || r.Answered.OverBy.Name != "bob" || r.Answered.By.Name != "ann" {
		t.Fatalf("revoked %v, %v", r, err)
	}
	if b.hasAnswer(key) || len(b.grants()) != 0 {
		t.Error("the answer is still there")
	}
	b.kernel.set(func() {
		if !slices.Contains(b.kernel.ended, key) {
			t.Error("what it had opened is still used")
		}
	})
	item := b.last(feedback.Revoked)
	if item.By != "bob (uid 1002) by cli" || item.Request != id || !strings.Contains(item.Message(), "was taken back. Tried again, it asks anew") {
		t.Errorf("event %+v: %s", item, item.Message())
	}
	if lines := b.log("answer revoked"); len(lines) != 1 || !strings.Contains(lines[0], "bob") {
		t.Errorf("the log has %q", lines)
	}
	_, err = revoke(id)
	wantError(t, err, "has no answer in force")
	// A use that was on its way is still counted, and the operation asks anew.
	b.ask(kernel.Granted, key, 200)
	if item := b.last(feedback.Used); item.Request != id {
		t.Errorf("event %+v", item)
	}
	b.ask(kernel.Opened, key, 200)
	second := b.last(feedback.Opened)
	if second.Request == id {
		t.Error("it asks by the name of what was answered")
	}
	b.restart()
	if all := b.requests(2); all[0].State != "revoked" || all[0].Answered.OverBy.Name != "bob" || all[1].State != "open" {
		t.Errorf("after a restart: %v", all)
	}

	// A denial can be taken back as well.
	b.approve(&api.AnswerRequest{Id: second.Request, Denied: true, ScopeLifetime: true})
	if _, err := revoke(second.Request); err != nil {
		t.Fatal(err)
	}
	if item := b.last(feedback.Revoked); !strings.Contains(item.Message(), "is no longer denied") {
		t.Errorf("event %s", item.Message())
	}
}

// Who was granted something, and has not gone on when it is taken back, asks again.
func TestRevokeOfHeld(t *testing.T) {
	b := newAskBench(t)
	b.heldProcess(200, "T")
	key := kernel.AskKey{1}
	b.ask(kernel.Held, key, 200)
	id := b.last(feedback.Held).Request
	b.approve(&api.AnswerRequest{Id: id, ForMs: 600_000})
	if _, err := b.client.Revoke(context.Background(), &api.RevokeRequest{Id: id}); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(deadline); ; time.Sleep(time.Millisecond) {
		if r := b.requests(1)[0]; r.State == "open" && r.Answered == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("it does not ask again: %v", b.requests(1))
		}
	}
}

// What is over is told, and leaves the kernel's table, so that it does not fill up.
func TestAnswersEnd(t *testing.T) {
	b := newAskBench(t)
	for i, req := range []*api.AnswerRequest{{Count: 1}, {ForMs: 60_000}, {Denied: true, ForMs: 60_000}, {ScopeLifetime: true}} {
		b.ask(kernel.Opened, kernel.AskKey{uint64(i + 1)}, 200+i)
		req.Id = b.last(feedback.Opened).Request
		b.approve(req)
	}
	b.setAnswer(kernel.AskKey{1}, func(a *kernel.Answer) { a.Count, a.Used, a.Over = 0, 1, true })
	b.advance(2 * time.Second)
	used := b.last(feedback.UsedUp)
	if !strings.Contains(used.Message(), "is used up. Tried again, it asks anew") || len(b.grants()) != 3 {
		t.Errorf("event %s; %v", used.Message(), b.grants())
	}
	if !b.hasAnswer(kernel.AskKey{1}) {
		t.Error("what is given back to it is lost")
	}
	for i := range 2 {
		b.setAnswer(kernel.AskKey{uint64(i + 2)}, func(a *kernel.Answer) { a.Over = true })
	}
	b.advance(time.Minute)
	b.last(feedback.Expired)
	b.advance(2 * time.Minute)
	for end := time.Now().Add(deadline); ; time.Sleep(time.Millisecond) {
		if !b.hasAnswer(kernel.AskKey{1}) && !b.hasAnswer(kernel.AskKey{2}) && !b.hasAnswer(kernel.AskKey{3}) {
			break
		}
		if time.Now().After(end) {
			t.Fatal("what is over stays in the kernel")
		}
		b.advance(2 * time.Second)
	}
	if !b.hasAnswer(kernel.AskKey{4}) {
		t.Error("what is in force has left the kernel")
	}
	over := map[string]int{}
	for _, r := range b.requests(4) {
		over[r.Answered.Over]++
	}
	if over["used up"] != 1 || over["expired"] != 2 || over[""] != 1 {
		t.Errorf("over are %v", over)
	}
}
