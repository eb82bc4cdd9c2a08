// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"strings"
	"time"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/feedback"
	"github.com/actplane/actplane/internal/plain"
)

// Operation is an operation on one line, for a list: argv[0] is left out, and stands in
// the fields.
func Operation(operation, object string, args []string) string {
	text := plain.Text(operation) + " " + plain.Word(object)
	if len(args) > 1 {
		text += " " + plain.Words(args[1:])
	}
	return text
}

// EventOperation is what an event is about, on one line.
func EventOperation(e *api.Event) string {
	if e.Unrecorded > 0 {
		return fmt.Sprintf("%s %d times", plain.Text(e.Operation), e.Unrecorded)
	}
	text := Operation(e.Operation, e.Object, e.Args)
	if e.ArgsCut {
		text += " …"
	}
	return text
}

// RuleTitle is a rule's name.
func RuleTitle(rule string) string {
	if rule == "" {
		return "(no rule)"
	}
	return plain.Text(rule)
}

// RowFields tell all of a row that its line does not.
func RowFields(row *Row, zone *time.Location) []Field {
	e := row.Event
	var fields []Field
	add := func(key, format string, args ...any) {
		fields = append(fields, Field{key, fmt.Sprintf(format, args...)})
	}
	at := time.UnixMilli(e.TimeUnixMs).In(zone).Format(time.DateTime)
	if row.Count > 1 {
		at = fmt.Sprintf("%d times, first at %s, last at %s", row.Count, row.First.In(zone).Format(time.DateTime), at)
	}
	add("when", "%s", at)
	add("what", "%s %s", Happened(e), strings.TrimSpace(plain.Text(e.Operation)+" "+objectOf(e)))
	if len(e.Args) > 0 {
		more := ""
		if e.ArgsCut {
			more = " … and more that is not shown here"
		}
		add("argv", "%s%s", plain.Words(e.Args), more)
	}
	if e.Unrecorded == 0 {
		add("who", "%s[%d]", plain.Word(e.Comm), e.Pid)
	}
	if len(e.Labels) > 0 {
		add("carries", "%s", plain.Text(strings.Join(e.Labels, ", ")))
	}
	for _, origin := range Chain(e) {
		add("by way of", "%s", plain.Text(origin.Title()+": "+origin.Text(time.UnixMilli(e.TimeUnixMs), true)))
	}
	if e.Clause != "" {
		add("clause", "%s (%s)", plain.Text(e.Clause), plain.Text(e.ClausePos))
	}
	if e.Rule != "" {
		add("rule", "%s", strings.TrimSuffix(RuleText(e.Rule, e.RuleAdded), ","))
	}
	if len(e.Also) > 0 {
		more := ""
		if e.AlsoCut {
			more = " and others"
		}
		add("also", "%s%s", plain.Text(strings.Join(e.Also, ", ")), more)
	}
	if e.Because != "" {
		add("because", "%s", BecauseText(e.Because, e.RuleAdded))
	}
	if e.Request != "" {
		by := ""
		if e.By != "" {
			by = ", answered by " + plain.Text(e.By)
		}
		if e.Reason != "" {
			by += ": " + plain.Text(e.Reason)
		}
		add("request", "%s%s", plain.Text(e.Request), by)
	}
	for _, w := range e.Warnings {
		add("warning", "%s", plain.Text(w))
	}
	if e.Lost > 0 {
		add("lost", "%d earlier events", e.Lost)
	}
	return fields
}

func objectOf(e *api.Event) string {
	if e.Unrecorded > 0 {
		return fmt.Sprintf("%d times (too many at once: on what, is lost)", e.Unrecorded)
	}
	return plain.Word(e.Object)
}

// ScopeFields tell all of a scope that its line does not; without a time, not its age.
func ScopeFields(s *api.Scope, now time.Time) []Field {
	fields := []Field{{"id", plain.Text(s.Id)}}
	add := func(key, format string, args ...any) {
		fields = append(fields, Field{key, fmt.Sprintf(format, args...)})
	}
	if s.StartedUnixMs != 0 && !now.IsZero() {
		add("started", "%s", Ago(now.Sub(time.UnixMilli(s.StartedUnixMs))))
	}
	add("mode", "%s", plain.Text(s.Mode))
	add("policy", "%s (%d rules)", plain.Text(strings.Join(s.Layers, ", ")), s.Rules)
	if s.Lost > 0 {
		add("lost", "%d records did not fit", s.Lost)
	}
	for _, sentence := range append(append([]string{}, s.Degraded...), s.Warnings...) {
		add("warning", "%s", plain.Text(sentence))
	}
	return fields
}

// GrantFields tell of an answer that holds what is left of it, and what it is for.
func GrantFields(g *api.Grant, zone *time.Location) []Field {
	return append([]Field{{"left", GrantLeft(g)}}, RequestFields(g.Request, zone)...)
}

// AnswerWord is what an answer was.
func AnswerWord(g *api.Grant) string {
	if g.Request.GetAnswered().GetDenied() {
		return "denied"
	}
	return "granted"
}

// LockText says what became of a scope that was locked or unlocked.
func LockText(lock *api.Lock, unlocked bool) string {
	title := plain.Word(ScopeTitle(lock.Id, lock.Name))
	switch {
	case unlocked && lock.Running:
		return fmt.Sprintf("%s is unlocked; %d operations were refused.", title, lock.Refused)
	case unlocked:
		return title + " is unlocked."
	case !lock.Running:
		return title + " is locked: it does not run, and cannot be started."
	}
	return title + " is locked: everything that it does is refused."
}

// SameLock tells whether two pictures of one scope have it locked by the same word, or both
// not at all.
func SameLock(a, b *api.Scope) bool {
	return a != nil && b != nil && (a.Lock == nil) == (b.Lock == nil) && a.Lock.GetSinceUnixMs() == b.Lock.GetSinceUnixMs()
}

// Kind is what sort of thing an event is: "bad" for what was denied, "ask", "good" for
// what was approved, and "note" for the rest.
func Kind(e *api.Event) string {
	switch feedback.Outcome(e.Outcome) {
	case feedback.Opened, feedback.StillOpen, feedback.Held:
		return "ask"
	case feedback.Used, feedback.Grant:
		return "good"
	case feedback.Withdrawn:
		return "note"
	case "":
		if e.Effect == "notify" {
			return "note"
		}
	}
	return "bad"
}
