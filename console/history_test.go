// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"testing"

	"github.com/actplane/actplane/engine/api"
)

func event(scope string, sequence uint64, object string) *api.Event {
	return &api.Event{Scope: scope, Sequence: sequence, TimeUnixMs: int64(sequence), Effect: "block", Operation: "write", Object: object, Rule: "r"}
}

// What happens again is one row with a count, which keeps its number and moves to the end.
func TestFold(t *testing.T) {
	h := newHistory()
	h.addEvent(event("a", 1, "/x"))
	h.addEvent(event("a", 2, "/y"))
	h.addEvent(event("a", 3, "/x"))
	h.addEvent(event("b", 1, "/x")) // another scope's
	h.addEvent(event("a", 3, "/x")) // told again by another connection
	lost := event("a", 4, "/y")     // before it something was lost
	lost.Lost = 7                   //
	h.addEvent(lost)                //
	h.addEvent(event("a", 5, "/y")) // folded into the row before that
	late := event("a", 1, "/z")     // the container was forgotten, and starts anew
	late.TimeUnixMs = 1_000_000_000 //
	h.addEvent(late)                //
	got := ""
	for _, r := range h.view().Rows {
		got += fmt.Sprintf("%d:%s%sx%d ", r.ID, r.Event.Scope, r.Event.Object, r.Count)
	}
	if want := "5:a/zx1 2:a/yx2 4:a/yx1 1:a/xx2 3:b/xx1 "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	rules := h.view().Rules
	if len(rules) != 2 || rules[0].Denied+rules[1].Denied != 7 {
		t.Errorf("%+v", rules)
	}
}

// A scope that makes noise pushes out its own rows alone, and memory is bounded.
func TestBounds(t *testing.T) {
	h := newHistory()
	h.addEvent(event("quiet", 1, "/x"))
	for i := range 5000 {
		h.addEvent(event("loud", uint64(i+1), fmt.Sprint(i)))
		h.setRequest(&api.Request{Id: fmt.Sprint(i), Scope: "loud", State: "denied", OpenedUnixMs: int64(i)})
	}
	h.setRequest(&api.Request{Id: "waits", Scope: "quiet", State: "open"})
	for i := range 5000 {
		h.setRequest(&api.Request{Id: fmt.Sprint("more", i), Scope: "loud", State: "granted", OpenedUnixMs: int64(i)})
	}
	v := h.view()
	if len(v.Rows) != maxScopeRows+1 || len(v.Requests) > 2*maxAnswered+1 || v.Requests[0].Id != "waits" || v.Open() != 1 || v.Request("nobody") != nil {
		t.Errorf("%d rows, %d requests", len(v.Rows), len(v.Requests))
	}
	// What is of no scope is forgotten, but not at the first list: it may be newer than that.
	h.setScopes([]*api.Scope{{Id: "quiet", State: "closed"}, {Id: "new", State: "enforcing"}})
	if got := len(h.view().Rows); got != maxScopeRows+1 {
		t.Errorf("%d rows after one list", got)
	}
	h.setScopes([]*api.Scope{{Id: "quiet", State: "closed"}, {Id: "new", State: "enforcing"}})
	v = h.view()
	if len(v.Rows) != 1 || len(v.Requests) != 1 || v.Scopes[0].Id != "new" {
		t.Errorf("%d rows, %d requests, %v", len(v.Rows), len(v.Requests), v.Scopes)
	}
}

func TestCounts(t *testing.T) {
	h := newHistory()
	for i, e := range []*api.Event{
		{Effect: "block"}, {Effect: "kill", Unrecorded: 10}, {Effect: "notify"}, {Effect: "ask", Outcome: "opened"}, {Effect: "ask", Outcome: "held"},
		{Effect: "ask", Outcome: "unasked"}, {Effect: "block", Outcome: "blocked"}, {Effect: "ask", Outcome: "timed-out"}, {Effect: "ask", Outcome: "used"},
		{Effect: "ask", Outcome: "granted"}, {Effect: "ask", Outcome: "denied"}, {Effect: "ask", Outcome: "withdrawn"},
	} {
		e.Scope, e.Sequence, e.TimeUnixMs = "s", uint64(i+1), int64(i+1)
		h.addEvent(e)
	}
	if c := h.view().Rules[0]; c.Denied != 14 || c.Asked != 2 || c.Noticed != 1 {
		t.Errorf("%+v", c)
	}
}
