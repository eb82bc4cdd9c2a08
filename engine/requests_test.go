// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/feedback"
	"github.com/actplane/actplane/policy/ir"
)

// askBench is a scope whose policy asks. Clause 1 of the image is retried, 0 holds.
type askBench struct {
	*machine
	e      *Engine
	client api.EngineClient
	slot   kernel.Slot
	stop   func()
}

func newAskBench(t *testing.T) *askBench {
	program, err := json.Marshal(ir.Program{
		Rules: []ir.Rule{{Name: "push", Because: "ask first"}, {Name: "apply"}},
		Clauses: []ir.Clause{
			{Rule: 0, Effect: ir.Ask, Op: ir.Exec, Text: `ask exec "git" "push"`, Pos: "p.yaml:3:5"},
			{Rule: 1, Effect: ir.Ask, Hold: time.Minute, Op: ir.Exec, Text: `ask hold 1m exec "apply"`, Pos: "p.yaml:5:5"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	b := &askBench{machine: newMachine(t)}
	b.restart()
	b.container("c", 100)
	b.prepareProgram(b.client, "c", program)
	b.attach(b.client, "c", 100)
	b.slot = *b.e.scope("c").now().Slot
	return b
}

func (b *askBench) restart() {
	if b.stop != nil {
		b.stop()
	}
	b.e, b.client, b.stop = b.start()
}

// process makes a process that is held, or goes on.
func (b *askBench) heldProcess(pid int, state string) {
	b.write(fmt.Sprintf("proc/%d/stat", pid), fmt.Sprintf("%d (p) %s 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %d 0 0\n", pid, state, pid*10))
}

// ask lets the kernel report an ask, as it does.
func (b *askBench) ask(what kernel.Asked, key kernel.AskKey, pid int) {
	rec := kernel.Record{
		Slot: b.slot, Time: b.now(), Effect: ir.Ask, Op: ir.Exec, Clause: 1, Default: -1, Object: "/usr/bin/git", Args: []string{"git", "push"},
		PID: pid, Comm: "sh", UID: 1000, Asked: what, Ask: key, Process: kernel.Process{ID: kernel.ProcessID(pid)},
	}
	request := kernel.Request{Slot: b.slot, Key: key, PID: pid, Started: time.Duration(pid) * 100 * time.Millisecond, Since: b.now()}
	if what == kernel.Held {
		rec.Clause = 0
		request.Process, request.Until = kernel.ProcessID(pid), b.now().Add(time.Minute)
	}
	b.kernel.set(func() {
		stats := b.kernel.stats[b.slot]
		stats.Denied++
		b.kernel.stats[b.slot] = stats
		if what == kernel.Opened || what == kernel.Held {
			b.kernel.requests = append(b.kernel.requests, request)
		}
	})
	b.kernel.records <- rec
}

// requests waits for a number of requests.
func (b *askBench) requests(n int) []*api.Request {
	b.t.Helper()
	for end := time.Now().Add(deadline); ; {
		stream, err := b.client.Requests(context.Background(), &api.RequestsRequest{All: true})
		if err != nil {
			b.t.Fatal(err)
		}
		var all []*api.Request
		for {
			r, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				b.t.Fatal(err)
			}
			all = append(all, r)
		}
		if len(all) == n {
			return all
		}
		if time.Now().After(end) {
			b.t.Fatalf("%d requests, want %d: %v", len(all), n, all)
		}
		time.Sleep(time.Millisecond)
	}
}

// last waits for the scope's newest event.
func (b *askBench) last(outcome feedback.Outcome) feedback.Item {
	b.t.Helper()
	s := b.e.scope("c")
	for end := time.Now().Add(deadline); ; {
		items := s.events.Items(0)
		if len(items) > 0 && items[len(items)-1].Outcome == outcome {
			return items[len(items)-1]
		}
		if time.Now().After(end) {
			b.t.Fatalf("no event %q; the events are %+v", outcome, items)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestRequestIsAnswered(t *testing.T) {
	b := newAskBench(t)
	key := kernel.AskKey{1, 2}
	b.ask(kernel.Opened, key, 200)
	opened := b.last(feedback.Opened)
	b.ask(kernel.StillOpen, key, 201)
	again := b.last(feedback.StillOpen)
	r := b.requests(1)[0]
	if r.Id != opened.Request || r.Id != again.Request || len(r.Id) != requestLength || r.State != "open" || r.Rule != "push" ||
		string(r.Object) != "/usr/bin/git" || r.Uid != 1000 || r.Held || r.Pid != 200 {
		t.Errorf("request %v; events %+v, %+v", r, opened, again)
	}
	for want, req := range map[string]*api.AnswerRequest{
		"no request is called \"nope\"":    {Id: "nope", Count: 1},
		"for a number of operations":       {Id: r.Id},
		"or for the container's life":      {Id: r.Id, Count: 1, ScopeLifetime: true},
		"a denial is for a time":           {Id: r.Id, Denied: true, Count: 1},
		"the limit is 1000":                {Id: r.Id, Count: 1001},
		"an answer is for at most":         {Id: r.Id, ForMs: 1 << 62},
		"a reason is text of at most 4096": {Id: r.Id, Denied: true, ScopeLifetime: true, Because: strings.Repeat("x", 5000)},
	} {
		_, err := b.client.Answer(context.Background(), req)
		wantError(t, err, want)
	}
	by := &api.Operator{Uid: 1001, Name: "ann", Via: "cli"}
	r, err := b.client.Answer(context.Background(), &api.AnswerRequest{Id: r.Id, Count: 1, By: by})
	if err != nil || r.State != "granted" || r.Answered.Count != 1 || r.Answered.By.Name != "ann" {
		t.Fatalf("answered %v, %v", r, err)
	}
	if item := b.last(feedback.Grant); item.Request != r.Id || item.By != "ann (uid 1001) by cli" || !strings.Contains(item.Message(), "was approved by a person") {
		t.Errorf("event %+v", item)
	}
	b.kernel.set(func() {
		if a := b.kernel.answers[b.slot][key]; a.Count != 1 || a.Denied || a.Timed || len(b.kernel.requests) != 0 {
			t.Errorf("the kernel has %+v and %v", a, b.kernel.requests)
		}
	})
	b.ask(kernel.Granted, key, 202)
	b.last(feedback.Used)
	if r := b.requests(1)[0]; r.Answered.Used != 1 {
		t.Errorf("request %v", r)
	}

	// It can be taken back, and the reason reaches who tries again.
	if _, err := b.client.Answer(context.Background(), &api.AnswerRequest{Id: r.Id, Denied: true, ScopeLifetime: true, Because: "not on a Friday", By: by}); err != nil {
		t.Fatal(err)
	}
	b.restart() // the next daemon knows
	b.ask(kernel.Denied, key, 203)
	if item := b.last(feedback.Denied); item.Request != r.Id || !strings.Contains(item.Message(), "The reason given: not on a Friday") {
		t.Errorf("event %+v", item)
	}
	if info, err := os.Stat(b.path("run/scopes/c/requests.json")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("requests.json: %v, %v", info, err)
	}
}

func TestHeldIsWoken(t *testing.T) {
	b := newAskBench(t)
	b.heldProcess(200, "T")
	b.heldProcess(201, "T")
	b.ask(kernel.Held, kernel.AskKey{1}, 200)
	b.ask(kernel.Held, kernel.AskKey{2}, 201)
	rs := b.requests(2)
	if rs[0].UntilUnixMs != b.now().Add(time.Minute).UnixMilli() || !rs[0].Held {
		t.Errorf("request %v", rs[0])
	}
	woken := func() []int {
		b.mu.Lock()
		defer b.mu.Unlock()
		return slices.Compact(slices.Sorted(slices.Values(b.woken)))
	}
	if w := woken(); len(w) != 0 {
		t.Errorf("woken are %v", w)
	}
	one := rs[slices.IndexFunc(rs, func(r *api.Request) bool { return r.Pid == 200 })]
	two := rs[slices.IndexFunc(rs, func(r *api.Request) bool { return r.Pid == 201 })]
	if _, err := b.client.Answer(context.Background(), &api.AnswerRequest{Id: one.Id, ForMs: 3_600_000}); err != nil {
		t.Fatal(err)
	}
	if w := woken(); !slices.Equal(w, []int{200}) {
		t.Errorf("woken are %v", w)
	}
	// The kernel closes the request when the system call is made again.
	_ = b.kernel.CloseRequest(b.slot, kernel.AskKey{1}, 200)
	b.ask(kernel.Granted, kernel.AskKey{1}, 200)
	b.last(feedback.Used)

	// Nobody answers the other, while the daemon is away.
	b.stop()
	b.advance(2 * time.Minute)
	b.restart()
	for end := time.Now().Add(deadline); !slices.Contains(woken(), 201); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("who has waited too long is not woken")
		}
	}
	_ = b.kernel.CloseRequest(b.slot, kernel.AskKey{2}, 201)
	b.ask(kernel.TimedOut, kernel.AskKey{2}, 201)
	if item := b.last(feedback.TimedOut); item.Request != two.Id {
		t.Errorf("event %+v", item)
	}

	// One that is killed withdraws what it asks.
	b.heldProcess(202, "T")
	b.ask(kernel.Held, kernel.AskKey{3}, 202)
	b.last(feedback.Held)
	b.exit("none", 202)
	b.advance(time.Second)
	if item := b.last(feedback.Withdrawn); item.Object != "/usr/bin/git" {
		t.Errorf("event %+v", item)
	}
	b.kernel.set(func() {
		if len(b.kernel.requests) != 0 {
			t.Errorf("requests are left: %v", b.kernel.requests)
		}
	})
}

// A request of which no record came is asked anew, so that somebody can answer.
func TestLostRequest(t *testing.T) {
	b := newAskBench(t)
	b.heldProcess(200, "T")
	b.kernel.set(func() {
		b.kernel.requests = append(b.kernel.requests,
			kernel.Request{Slot: b.slot, Key: kernel.AskKey{1}, Process: 200, PID: 200, Started: 20 * time.Second, Since: b.now(), Until: b.now().Add(time.Hour)},
			kernel.Request{Slot: b.slot, Key: kernel.AskKey{2}, PID: 201, Since: b.now()})
	})
	b.advance(time.Minute)
	for end := time.Now().Add(deadline); ; time.Sleep(time.Millisecond) {
		left, _ := b.kernel.Requests()
		if len(left) == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("left are %v", left)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Contains(b.woken, 200) {
		t.Error("who is held for it is not woken")
	}
}

func TestFollowRequests(t *testing.T) {
	b := newAskBench(t)
	stream, err := b.client.Requests(context.Background(), &api.RequestsRequest{Scope: "c", Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	b.ask(kernel.Opened, kernel.AskKey{1}, 200)
	r, err := stream.Recv()
	if err != nil || r.State != "open" {
		t.Fatalf("%v, %v", r, err)
	}
	if _, err := b.client.Answer(context.Background(), &api.AnswerRequest{Id: r.Id, ScopeLifetime: true}); err != nil {
		t.Fatal(err)
	}
	if again, err := stream.Recv(); err != nil || again.Id != r.Id || again.State != "granted" {
		t.Fatalf("%v, %v", again, err)
	}
}

// The table is bounded, and keeps what is open or in force.
func TestRequestsAreForgotten(t *testing.T) {
	table := newRequests(t.TempDir())
	now := time.Unix(1_700_000_000, 0)
	err := table.change(now, func() {
		for i := range 3 * maxPast {
			r := &request{ID: fmt.Sprint(i), State: requestTimedOut}
			switch i {
			case 5:
				r.State = requestOpen
			case 6:
				r.State, r.Answer = requestDenied, &answer{Denied: true, Lifetime: true}
			case 7:
				r.State, r.Answer = requestGranted, &answer{Until: now}
			}
			table.all = append(table.all, r)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	left := table.list()
	if len(left) != maxPast+2 || left[0].ID != "5" || left[1].ID != "6" || left[2].ID != fmt.Sprint(2*maxPast) {
		t.Errorf("left are %d: %v %v %v", len(left), left[0], left[1], left[2])
	}
}

// Who tried again just before the answer came makes no other request.
func TestLateRecord(t *testing.T) {
	b := newAskBench(t)
	key := kernel.AskKey{1}
	b.ask(kernel.Opened, key, 200)
	id := b.last(feedback.Opened).Request
	b.approve(&api.AnswerRequest{Id: id, Count: 1})
	b.ask(kernel.StillOpen, key, 200)
	if item := b.last(feedback.StillOpen); item.Request != id {
		t.Errorf("event %+v", item)
	}
	b.requests(1)
	b.advance(time.Minute)
	b.ask(kernel.Opened, key, 200) // when it was used up
	if item := b.last(feedback.Opened); item.Request == id {
		t.Errorf("event %+v", item)
	}
	b.requests(2)
}

// A daemon that is killed between an answer and the signal leaves nobody stuck.
func TestAnsweredBeforeTheDaemonDied(t *testing.T) {
	b := newAskBench(t)
	b.heldProcess(200, "T")
	b.heldProcess(201, "T")
	b.ask(kernel.Held, kernel.AskKey{1}, 200)
	b.ask(kernel.Held, kernel.AskKey{2}, 201)
	b.requests(2)
	b.stop()
	for key, said := range map[kernel.AskKey]kernel.Answer{{1}: {Count: 1}, {2}: {Denied: true, Timed: true}} {
		if err := b.kernel.SetAnswer(b.slot, key, said); err != nil {
			t.Fatal(err)
		}
	}
	b.restart()
	for end := time.Now().Add(deadline); ; time.Sleep(time.Millisecond) {
		b.mu.Lock()
		woken := slices.Clone(b.woken)
		b.mu.Unlock()
		if slices.Contains(woken, 200) && slices.Contains(woken, 201) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("woken are %v", woken)
		}
	}
}

// When the daemon is back, who was answered or has waited too long meanwhile goes on at
// once; who still waits is an open request as before, with what is left of its time; and
// who asked meanwhile is one as soon as that is read, and not woken until then.
func TestHeldWhileTheDaemonWasAway(t *testing.T) {
	b := newAskBench(t)
	for pid := 200; pid < 204; pid++ {
		b.heldProcess(pid, "T")
	}
	for pid := 200; pid < 203; pid++ {
		b.ask(kernel.Held, kernel.AskKey{uint64(pid)}, pid)
	}
	before := b.requests(3)
	waits := before[slices.IndexFunc(before, func(r *api.Request) bool { return r.Pid == 202 })]
	b.stop()
	if err := b.kernel.SetAnswer(b.slot, kernel.AskKey{200}, kernel.Answer{Count: 1}); err != nil {
		t.Fatal(err)
	}
	b.kernel.set(func() {
		b.kernel.requests[1].Until = b.now().Add(10 * time.Second)
		b.kernel.requests = append(b.kernel.requests, kernel.Request{Slot: b.slot, Key: kernel.AskKey{203}, Process: 203, PID: 203,
			Started: 20300 * time.Millisecond, Since: b.now(), Until: b.now().Add(time.Minute)})
	})
	b.advance(30 * time.Second)
	b.restart()
	woken := func() []int {
		b.mu.Lock()
		defer b.mu.Unlock()
		return slices.Compact(slices.Sorted(slices.Values(b.woken)))
	}
	for end := time.Now().Add(deadline); len(woken()) < 2; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("woken are %v", woken())
		}
	}
	b.kernel.set(func() { b.kernel.requests = b.kernel.requests[:len(b.kernel.requests)-1] })
	b.ask(kernel.Held, kernel.AskKey{203}, 203) // its record
	after := b.requests(4)
	now := after[slices.IndexFunc(after, func(r *api.Request) bool { return r.Pid == 202 })]
	if now.Id != waits.Id || now.State != "open" || !now.Held || now.UntilUnixMs != waits.UntilUnixMs || now.UntilUnixMs-b.now().UnixMilli() != 30_000 {
		t.Errorf("before %v, now %v", waits, now)
	}
	if w := woken(); !slices.Equal(w, []int{200, 201}) {
		t.Errorf("woken are %v", w)
	}
}

// A table that changes often is saved now and then, and in the end.
func TestRequestsAreSaved(t *testing.T) {
	dir := t.TempDir()
	table := newRequests(dir)
	add := func() {
		t.Helper()
		if err := table.change(time.Now(), func() { table.all = append(table.all, &request{ID: "x", State: requestOpen}) }); err != nil {
			t.Fatal(err)
		}
	}
	add()
	const many = 1000
	began := time.Now()
	for range many {
		add()
	}
	saves := time.Since(began)/askInterval + 1
	loaded := func() int {
		again, err := loadRequests(dir)
		if err != nil {
			t.Fatal(err)
		}
		return len(again.all)
	}
	if n := loaded(); saves < many/10 && n == 1+many {
		t.Errorf("%d requests are saved, each for itself", n)
	}
	if err := table.keepSaved(); err != nil {
		t.Fatal(err)
	}
	if n := loaded(); n != 1+many {
		t.Errorf("%d requests are saved, want %d", n, 1+many)
	}
}
