// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/actplane/actplane/feedback"
	"github.com/actplane/actplane/policy"
	"github.com/actplane/actplane/policy/diag"
	"github.com/actplane/actplane/policy/explain"
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/model"
)

// mostEvents bounds a command line.
const mostEvents = 1000

// eventLines are the values of a flag that may have commas, at which a StringSlice
// would be cut.
type eventLines []string

// Set takes one more.
func (e *eventLines) Set(line string) error {
	*e = append(*e, line)
	return nil
}

func (e *eventLines) String() string { return strings.Join(*e, "; ") }

// explainedEvents are the events under one policy.
type explainedEvents struct {
	File       string          `json:"file"`
	Unenforced int             `json:"not_enforced"` // statements
	Events     []explain.Event `json:"events"`
}

// explainEvents says what policies decide about the events of the command line.
func explainEvents(c *cli.Context, policies []*policy.Policy, lines []string, format string) error {
	if n := len(lines); n > mostEvents {
		return usageError("explain: %d events; the limit is %d", n, mostEvents)
	}
	out := []explainedEvents{}
	for i, p := range policies {
		name := inputName(c.Args().Get(i))
		events, err := eventsUnder(c, p.Program, lines)
		if err != nil {
			return err
		}
		out = append(out, explainedEvents{name, explain.Explain(p.Program, p.Unenforced, explain.Host{}).Unenforced(), events})
	}
	var err error
	if format == "json" {
		err = writeJSON(c.App.Writer, out, "  ")
	} else {
		err = writePage(c, func(p *page) {
			for i := range out {
				p.events(&out[i], len(out) > 1, c.Bool("all"))
			}
		})
	}
	if err != nil {
		return environmentError("print explanation: %v", err)
	}
	return nil
}

func eventsUnder(c *cli.Context, p *ir.Program, lines []string) ([]explain.Event, error) {
	labels, err := labelsNamed(p, c.StringSlice("with"))
	if err != nil {
		return nil, usageError("explain: --with: %v", err)
	}
	var steps []model.Step
	for _, line := range lines {
		step, err := model.ParseEvent(line, p.Workspace)
		if err != nil {
			return nil, usageError("explain: --event %q: %v", line, err)
		}
		steps = append(steps, step)
	}
	events, err := explain.Events(p, steps, labels)
	if err != nil {
		return nil, usageError("explain: --event %q: %v", steps[len(events)].Text, err)
	}
	for i := range events {
		events[i].Told = told(events[i].Record)
	}
	return events, nil
}

// labelsNamed returns the labels of a program, as bits, that have one of the names.
func labelsNamed(p *ir.Program, names []string) (set uint64, err error) {
	var known []string
	bits := map[string]uint64{}
	for i, l := range p.Labels {
		bits[l.Name] |= 1 << i
		known = append(known, l.Name)
	}
	for _, name := range names {
		if bits[name] == 0 {
			text := fmt.Sprintf("the policy has no label %q", name)
			if near := diag.Suggest(name, known); near != "" {
				text += fmt.Sprintf("; did you mean %q?", near)
			}
			return 0, fmt.Errorf("%s", text)
		}
		set |= bits[name]
	}
	return set, nil
}

// told is what the agent gets to read of what was recorded.
func told(r *explain.Record) string {
	if r == nil {
		return ""
	}
	return feedback.Item{
		Effect: feedback.Effect(r.Effect.String()), Operation: r.Operation, Object: r.Object, Args: r.Args,
		Rule: r.Rule, Because: r.Because, Clause: r.Clause, Labels: r.Labels,
	}.Message()
}

// events writes what one policy decides, and of the clauses that don't match all if
// that is asked for.
func (p *page) events(e *explainedEvents, named, all bool) {
	if named {
		p.blank()
		p.line("%s", e.File)
	}
	if e.Unenforced > 0 {
		p.text("", "This is what the policy means; this version does not enforce %s of it, and refuses to start a container with it.",
			count(e.Unenforced, "statement"))
	}
	for i := range e.Events {
		p.blank()
		p.event(&e.Events[i], all)
	}
}

const eventIndent = "    "

func (p *page) event(e *explain.Event, all bool) {
	if !e.Decided {
		p.line("%s: no policy decides it", e.Event)
		return
	}
	verdict := e.Verdict
	if e.Rule != "" {
		verdict += ", by rule " + e.Rule
	}
	p.line("%s: %s", e.Event, verdict)
	p.deciding(e)
	p.matching(e)
	if text := carried(e); text != "" {
		p.text(eventIndent, "%s", text)
	}
	for _, n := range e.Notes {
		p.text(eventIndent, "%s", n)
	}
	switch {
	case e.Told != "":
		p.text(eventIndent, "The agent is told: %s", e.Told)
	case e.Verdict == ir.Ask.String():
		p.text(eventIndent, "A person is asked.")
	}
	p.missing(e, all)
}

// deciding writes the clause, the default or what else decides.
func (p *page) deciding(e *explain.Event) {
	for i := range e.Clauses {
		if c := &e.Clauses[i]; c.Decides {
			p.outcome(c.Position, c.Text, "decides, rule "+c.Rule+": "+conditions(c.Conditions[1:]))
			return
		}
	}
	for _, d := range e.Defaults {
		if defaultDecides(e, d) {
			p.outcome(d.Position, d.Text, "decides: no allow clause matches "+d.Event)
			return
		}
	}
	if e.Rule == "" && e.Reason != "" {
		p.text(eventIndent, "It is refused: %s.", strings.TrimSuffix(e.Reason, "."))
	}
}

// matching writes what matches and does not decide.
func (p *page) matching(e *explain.Event) {
	verb := "matches"
	if e.Rule != "" {
		verb = "matches too"
	}
	for i := range e.Clauses {
		if c := &e.Clauses[i]; !c.Decides && len(c.Unmet()) == 0 {
			p.outcome(c.Position, c.Text, verb+", rule "+c.Rule+": "+conditions(c.Conditions[1:]))
		}
	}
	for _, d := range e.Defaults {
		switch {
		case defaultDecides(e, d):
		case d.LiftedBy == "":
			p.outcome(d.Position, d.Text, "holds: no allow clause matches "+d.Event)
		default:
			p.outcome(d.Position, d.Text, fmt.Sprintf("is lifted by line %s, for %s", lineOfPosition(d.LiftedBy), d.Event))
		}
	}
}

func defaultDecides(e *explain.Event, d explain.EventDefault) bool {
	return d.LiftedBy == "" && e.Rule == "" && strings.HasPrefix(e.Reason, d.Position+":")
}

func carried(e *explain.Event) string {
	var out []string
	if len(e.Holds) > 0 {
		out = append(out, "carries "+strings.Join(e.Holds, ", "))
	}
	if len(e.Brings) > 0 {
		out = append(out, "would carry "+strings.Join(e.Brings, ", ")+" by this")
	}
	if len(out) == 0 {
		return ""
	}
	return e.Subject + " " + strings.Join(out, ", and ") + "."
}

// fewMisses is how many clauses about other objects are shown.
const fewMisses = 8

// missing writes of the clauses that don't match why: those that are about this
// object, all of them; few that are about others; and none about other operations,
// unless all are asked for.
func (p *page) missing(e *explain.Event, all bool) {
	objects, others := 0, 0
	for i := range e.Clauses {
		c := &e.Clauses[i]
		unmet := c.Unmet()
		if len(unmet) == 0 {
			continue
		}
		why := unmet
		switch unmet[0].Part {
		case model.Operation.String():
			if !all {
				others++
				continue
			}
		case model.Object.String():
			if why = unmet[:1]; objects == fewMisses && !all {
				others++
				continue
			}
			objects++
		}
		p.outcome(c.Position, c.Text, "does not match: "+conditions(why))
	}
	switch {
	case others == 1:
		p.text(eventIndent, "1 clause is about other operations or objects; --all shows it.")
	case others > 1:
		p.text(eventIndent, "%d clauses are about other operations or objects; --all shows them.", others)
	}
}

func conditions(list []explain.Condition) string {
	var out []string
	for _, x := range list {
		out = append(out, x.Text)
	}
	return strings.Join(out, "; ")
}

// outcome writes a line of the policy, and below it what became of it.
func (p *page) outcome(position, text, what string) {
	mark := fmt.Sprintf("%s%4s  ", eventIndent, lineOfPosition(position))
	p.hanging(mark, "%s", text)
	p.text(strings.Repeat(" ", len(mark)), "%s", what)
}
