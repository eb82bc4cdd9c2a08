// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"
)

// replayReport is the outcome of a replay as JSON has it.
type replayReport struct {
	Log        string         `json:"log"`
	Policies   []string       `json:"policies"`
	Records    int            `json:"records"`
	Alike      int            `json:"alike"`
	OtherRule  int            `json:"alike_by_another_rule"`
	Itself     int            `json:"by_actplane_itself"`
	NotShown   int            `json:"not_shown"`
	Unreadable int            `json:"unreadable"` // lines
	Lost       uint64         `json:"lost"`       // before they came into the log
	Missing    uint64         `json:"missing"`    // by the gaps between their numbers
	Added      int            `json:"added"`      // times that rules were added at run time
	ByAdded    int            `json:"by_added"`   // records that such rules decided
	Scopes     int            `json:"scopes"`
	From       *time.Time     `json:"from"` // null without records
	To         *time.Time     `json:"to"`
	Changes    []replayChange `json:"changes"`
}

// replayChange is an operation that gets, or may get, another effect.
type replayChange struct {
	Kind      string         `json:"kind"` // allowed, denied, otherwise, depends or unclear
	Count     int            `json:"count"`
	First     time.Time      `json:"first"`
	Last      time.Time      `json:"last"`
	Operation string         `json:"operation"`
	Object    string         `json:"object"`
	Args      []string       `json:"args"`
	ArgsCut   bool           `json:"args_cut"`
	Scopes    []string       `json:"scopes"` // the first ten, by name or id
	Comm      string         `json:"comm"`
	Labels    []string       `json:"labels"`
	Was       decisionLine   `json:"was"`
	Now       []replayAnswer `json:"now"`
	Why       string         `json:"why"` // it is unclear, else ""
}

// replayAnswer is a decision with what must hold for it of what is not recorded.
type replayAnswer struct {
	decisionLine
	When []string   `json:"when"`
	Or   [][]string `json:"or"` // other lists like When
}

func (r *replayer) report(log string, policies []string) *replayReport {
	out := &replayReport{
		Log: log, Policies: policies, Records: r.records, Alike: r.alike, OtherRule: r.otherRule, Itself: r.itself,
		NotShown: r.unshown, Unreadable: r.broken, Lost: r.lost, Missing: r.missing, Added: r.added, ByAdded: r.byAdded, Scopes: len(r.scopes), Changes: []replayChange{},
	}
	if r.records > 0 {
		out.From, out.To = &r.first, &r.last
	}
	for _, g := range r.groups {
		e := &g.event
		change := replayChange{
			Kind: g.kind(), Count: g.count, First: g.first, Last: g.last, Operation: e.Operation, Object: e.Object,
			Args: append([]string{}, e.Args...), ArgsCut: e.ArgsCut, Scopes: append([]string{}, g.scopes...), Comm: e.Comm, Labels: append([]string{}, e.Labels...),
			Was: decisionLine{e.Effect, e.Rule, e.Because, e.Clause, e.Position}, Now: []replayAnswer{},
		}
		change.Why = g.outcome.Why
		for i := range g.outcome.Answers {
			a := &g.outcome.Answers[i]
			change.Now = append(change.Now, replayAnswer{newDecisionLine(&a.Decision), append([]string{}, a.When...), append([][]string{}, a.Or...)})
		}
		out.Changes = append(out.Changes, change)
	}
	return out
}
