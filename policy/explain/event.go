// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/model"
)

// Event is how one step was decided, for people and programs.
type Event struct {
	Event string `json:"event"` // as a line of a policy test, without the verdict
	// Decided: a policy decides it. The others happen.
	Decided bool   `json:"decided"`
	Verdict string `json:"verdict"` // ok, notify, ask, block or kill
	Rule    string `json:"rule"`    // that decides, if any does
	// Reason is which clause decides and on what, or what else does; "" for ok.
	Reason string `json:"reason"`
	// Told is what the agent gets to read, "" for nothing. Who knows the wording
	// sets it.
	Told    string `json:"told"`
	Subject string `json:"subject"`
	// Holds are the labels of the process before, and Brings what it would gain.
	Holds    []string       `json:"holds"`
	Brings   []string       `json:"brings"`
	Clauses  []EventClause  `json:"clauses"`
	Defaults []EventDefault `json:"defaults"`
	Notes    []string       `json:"notes"` // how labels and gates came about
	// Record is what the engine would record of it, nil if nothing.
	Record *Record `json:"-"`
}

// EventClause is what became of one clause.
type EventClause struct {
	Position string `json:"position"`
	Text     string `json:"text"`
	Rule     string `json:"rule"`
	Effect   string `json:"effect"`
	// Event is the one, of those that the step consists of, that the clause comes
	// closest to matching.
	Event   string `json:"event"`
	Matches bool   `json:"matches"`
	Decides bool   `json:"decides"`
	// Conditions are all of the clause's, and of one about another operation that
	// alone.
	Conditions []Condition `json:"conditions"`
}

// Condition is one condition of a clause.
type Condition struct {
	Part string `json:"part"` // operation, pattern, arguments, if or unless
	Met  bool   `json:"met"`
	Text string `json:"text"`
}

// EventDefault is what became of a default that is about the operation.
type EventDefault struct {
	Position string `json:"position"`
	Text     string `json:"text"`
	Event    string `json:"event"`
	LiftedBy string `json:"lifted_by"` // the position of an allow clause, "" if none
}

// Events acts out steps on the reference model and says of each which clauses match
// and which don't, and why. Processes that nothing forked have the labels (bits) from
// their beginning. An error is a step that makes no sense where it stands: the one
// after the events that are returned.
func Events(p *ir.Program, steps []model.Step, labels uint64) ([]Event, error) {
	traces, err := model.Explain(p, steps, labels)
	out := make([]Event, 0, len(traces))
	for i := range traces {
		out = append(out, event(p, &traces[i]))
	}
	return out, err
}

func event(p *ir.Program, t *model.Trace) Event {
	e := Event{
		Event: t.Step.Text, Decided: t.Decided, Verdict: "ok", Rule: t.Rule, Reason: t.Why, Subject: t.Subject,
		Holds: listed(names(p, t.Holds)), Brings: listed(names(p, t.Brings)), Clauses: []EventClause{}, Defaults: []EventDefault{},
		Notes: listed(t.Notes), Record: record(p, t),
	}
	if t.Effect != ir.Allow {
		e.Verdict = t.Effect.String()
	}
	for i := range t.Clauses {
		c := &t.Clauses[i]
		out := EventClause{
			Position: c.Clause.Pos, Text: c.Clause.Text, Rule: p.Rules[c.Clause.Rule].Name, Effect: c.Clause.Effect.String(),
			Event: c.Event, Matches: c.Matches, Decides: c.Decides, Conditions: []Condition{},
		}
		for _, x := range c.Conditions {
			out.Conditions = append(out.Conditions, Condition{Part: x.Part.String(), Met: x.Met, Text: x.Text})
		}
		e.Clauses = append(e.Clauses, out)
	}
	for _, d := range t.Defaults {
		out := EventDefault{Position: d.Default.Pos, Text: d.Default.Text, Event: d.Event}
		if d.Lifted != nil {
			out.LiftedBy = d.Lifted.Pos
		}
		e.Defaults = append(e.Defaults, out)
	}
	return e
}

func listed(list []string) []string { return append([]string{}, list...) }

// Unmet are the conditions that keep a clause from matching.
func (c *EventClause) Unmet() []Condition {
	var out []Condition
	for _, x := range c.Conditions {
		if !x.Met {
			out = append(out, x)
		}
	}
	return out
}

// Record is an event that is fed back, as the engine records it.
type Record struct {
	Effect    ir.Effect
	Operation string
	Object    string // a path with its links resolved, or an endpoint
	// Unresolved: the path cannot be known, and Object is how it was named.
	Unresolved bool
	Args       []string
	Rule       string
	Because    string   // word for word
	Clause     string   // as written
	Labels     []string // those of the process that the clause tests
}

// record is what the engine would record of a step, if a clause decides on it; but
// not of an ask, which is put to a person.
func record(p *ir.Program, t *model.Trace) *Record {
	for i := range t.Clauses {
		c := &t.Clauses[i]
		if !c.Decides || t.Effect == ir.Ask {
			continue
		}
		r := &Record{
			Effect: t.Effect, Operation: c.Op.String(), Object: c.Object, Unresolved: c.Unresolved, Rule: t.Rule, Because: t.Because, Clause: c.Clause.Text,
		}
		if words := t.Step.Words; c.Op == ir.Exec && words[1] != "mapexec" {
			r.Args = words[2:]
		}
		var tested uint64
		for _, term := range c.Clause.If {
			tested |= term.All | term.None
		}
		r.Labels = names(p, c.Labels&tested)
		return r
	}
	return nil
}
