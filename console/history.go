// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/feedback"
)

// Bounds of what is kept. A container that makes noise pushes out its own rows alone.
const (
	maxRows      = 1000 // shown
	maxScopeRows = 500
	maxFold      = 16 // rows back that an event may be folded into
	maxAnswered  = 200
)

// requestOpen is the state of a request that waits.
const requestOpen = "open"

// Row is an event, and how often the same happened in a row.
type Row struct {
	// ID stays the same when more is folded in; it is this watcher's alone.
	ID    uint64
	Event *api.Event // the newest
	First time.Time
	Count uint64
	key   string
}

// RuleCount is what one rule of one scope did, as far as its events are known.
type RuleCount struct {
	Scope, ScopeName string
	Rule             string // empty: what no rule decided, such as a default
	Denied           uint64 // blocked and killed, and what nobody was asked about
	Asked            uint64 // put to a person
	Noticed          uint64
	Last             time.Time
}

// scopeHistory is what is kept of one scope.
type scopeHistory struct {
	rows    []*Row // oldest first
	rules   map[string]*RuleCount
	last    *api.Event
	missing int // how many lists in a row did not have it
}

// history is all that a watcher knows.
type history struct {
	scopes []*api.Scope
	grants []*api.Grant
	// grantsProblem is why grants are not known.
	grantsProblem string
	requests      map[string]*api.Request
	events        map[string]*scopeHistory
	rows          uint64 // the last row's ID
}

func newHistory() history {
	return history{requests: map[string]*api.Request{}, events: map[string]*scopeHistory{}}
}

// setScopes takes a list of all scopes, and forgets what is of none of them. A scope that
// was made after the list counts as missing once, and no more.
func (h *history) setScopes(scopes []*api.Scope) {
	there := map[string]bool{}
	for _, s := range scopes {
		there[s.Id] = true
	}
	for id, s := range h.events {
		if s.missing++; there[id] {
			s.missing = 0
		}
		if s.missing > 1 {
			delete(h.events, id)
		}
	}
	maps.DeleteFunc(h.requests, func(_ string, r *api.Request) bool {
		return !there[r.Scope] && h.events[r.Scope] == nil && r.State != requestOpen
	})
	h.scopes = slices.Clone(scopes)
	slices.SortStableFunc(h.scopes, func(a, b *api.Scope) int { return cmp.Compare(ended(a), ended(b)) })
}

func ended(s *api.Scope) int {
	if s.State == "closed" {
		return 1
	}
	return 0
}

func (h *history) setRequest(r *api.Request) {
	h.requests[r.Id] = r
	if len(h.requests) <= 2*maxAnswered {
		return
	}
	answered := slices.DeleteFunc(slices.Collect(maps.Values(h.requests)), func(r *api.Request) bool { return r.State == requestOpen })
	slices.SortFunc(answered, newestFirst)
	for _, r := range answered[min(maxAnswered, len(answered)):] {
		delete(h.requests, r.Id)
	}
}

func newestFirst(a, b *api.Request) int {
	return cmp.Or(cmp.Compare(b.OpenedUnixMs, a.OpenedUnixMs), strings.Compare(a.Id, b.Id))
}

// addEvent takes an event, once: what is kept comes again with each connection.
func (h *history) addEvent(e *api.Event) {
	s := h.events[e.Scope]
	if s == nil {
		s = &scopeHistory{rules: map[string]*RuleCount{}}
		h.events[e.Scope] = s
	}
	// A container that comes back after long begins at 1 again, later.
	if s.last != nil && e.Sequence <= s.last.Sequence && e.TimeUnixMs <= s.last.TimeUnixMs {
		return
	}
	s.last = e
	s.count(e)
	at, key := time.UnixMilli(e.TimeUnixMs), foldKey(e)
	row := &Row{Event: e, First: at, Count: 1, key: key}
	if i := s.alike(key); key != "" && i >= 0 {
		row.ID, row.First, row.Count = s.rows[i].ID, s.rows[i].First, s.rows[i].Count+1
		s.rows = slices.Delete(s.rows, i, i+1)
	} else {
		h.rows++
		row.ID = h.rows
	}
	s.rows = append(s.rows, row)
	if len(s.rows) > maxScopeRows {
		s.rows = slices.Delete(s.rows, 0, len(s.rows)-maxScopeRows)
	}
}

// alike finds the row that an event is folded into.
func (s *scopeHistory) alike(key string) int {
	for i := len(s.rows) - 1; i >= max(0, len(s.rows)-maxFold); i-- {
		if s.rows[i].key == key {
			return i
		}
	}
	return -1
}

// foldKey is all of an event but for when and by which process it was. What was lost
// before it is told, so it stays by itself.
func foldKey(e *api.Event) string {
	if e.Lost > 0 || e.Unrecorded > 0 {
		return ""
	}
	parts := append([]string{e.Effect, e.Outcome, e.Operation, e.Object, e.Rule, e.ClausePos, e.Comm, e.Request, e.By}, e.Labels...)
	return strings.Join(append(append(parts, ""), e.Args...), "\x00")
}

// count counts an operation for its rule; answers are none.
func (s *scopeHistory) count(e *api.Event) {
	c := s.rules[e.Rule]
	if c == nil {
		c = &RuleCount{Scope: e.Scope, Rule: e.Rule}
		s.rules[e.Rule] = c
	}
	n := max(e.Unrecorded, 1)
	switch feedback.Outcome(e.Outcome) {
	case feedback.Opened, feedback.StillOpen, feedback.Held:
		c.Asked += n
	case feedback.Unasked, feedback.Denied, feedback.TimedOut:
		c.Denied += n
	case "":
		if e.Effect == "notify" {
			c.Noticed += n
		} else {
			c.Denied += n
		}
	}
	c.ScopeName, c.Last = e.ScopeName, time.UnixMilli(e.TimeUnixMs)
}

// inForce are the grants, newest first, without those that have ended since they were told.
func (h *history) inForce() (grants []*api.Grant) {
	for _, g := range slices.Backward(h.grants) {
		if now := h.requests[g.Request.GetId()]; now == nil || InForce(now) {
			grants = append(grants, g)
		}
	}
	return grants
}

// view copies what there is; events and scopes are never changed, and shared.
func (h *history) view() *View {
	v := &View{Scopes: h.scopes, Grants: h.inForce(), GrantsProblem: h.grantsProblem}
	for _, r := range h.requests {
		v.Requests = append(v.Requests, r)
	}
	slices.SortFunc(v.Requests, func(a, b *api.Request) int {
		switch aOpen, bOpen := a.State == requestOpen, b.State == requestOpen; {
		case aOpen && bOpen:
			return cmp.Or(cmp.Compare(a.OpenedUnixMs, b.OpenedUnixMs), strings.Compare(a.Id, b.Id))
		case aOpen:
			return -1
		case bOpen:
			return 1
		}
		return newestFirst(a, b)
	})
	for _, s := range h.events {
		v.Rows = append(v.Rows, s.rows...)
		for _, c := range s.rules {
			copied := *c
			v.Rules = append(v.Rules, &copied)
		}
	}
	slices.SortFunc(v.Rows, func(a, b *Row) int {
		return cmp.Or(cmp.Compare(b.Event.TimeUnixMs, a.Event.TimeUnixMs), cmp.Compare(b.Event.Sequence, a.Event.Sequence), cmp.Compare(b.ID, a.ID))
	})
	v.Rows = v.Rows[:min(len(v.Rows), maxRows)]
	slices.SortFunc(v.Rules, func(a, b *RuleCount) int {
		return cmp.Or(strings.Compare(a.ScopeName, b.ScopeName), strings.Compare(a.Scope, b.Scope),
			cmp.Compare(b.Denied+b.Asked+b.Noticed, a.Denied+a.Asked+a.Noticed), strings.Compare(a.Rule, b.Rule))
	})
	return v
}
