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

// Short is an id as Docker shows it.
func Short(id string) string {
	const length = 12
	if len(id) == 64 {
		return id[:length]
	}
	return id
}

// ScopeTitle is what people know a scope by: its name, or its id if it has none.
func ScopeTitle(id, name string) string {
	if name != "" {
		return name
	}
	return Short(id)
}

// Happened is what became of an operation, or of a request, in words that go before it.
func Happened(e *api.Event) string {
	switch feedback.Outcome(e.Outcome) {
	case "":
		return pastTense(e.Effect)
	case feedback.Opened:
		return "asks for"
	case feedback.StillOpen:
		return "still asks for"
	case feedback.Held:
		return "is stopped, and asks for"
	case feedback.TimedOut:
		return "timed out:"
	case feedback.Unasked:
		return "blocked, and could not ask for"
	case feedback.Denied:
		return "blocked, as it was denied:"
	case feedback.Used:
		return "went on, as it was approved:"
	case feedback.Grant:
		return "approved:"
	case feedback.Denial:
		return "denied:"
	case feedback.Locked:
		return "locked:"
	case feedback.Unlocked:
		return "unlocked:"
	case feedback.Withdrawn:
		return "withdrawn:"
	case feedback.Warned:
		return "an approver warns of"
	case feedback.Revoked:
		return "taken back:"
	case feedback.UsedUp:
		return "used up:"
	case feedback.Expired:
		return "expired:"
	case feedback.Added:
		return "added:"
	}
	return plain.Text(e.Outcome) + ":"
}

func pastTense(effect string) string {
	switch effect {
	case "block":
		return "blocked"
	case "kill":
		return "killed"
	case "notify":
		return "noticed"
	}
	return plain.Text(effect)
}

// Field is a line of what is told of something: what it is about, and a text that can be
// shown as it is.
type Field struct{ Key, Text string }

// RequestFields tell of a request all that a person should know who answers it. Only the
// policy's own words and ours stand outside of quotes.
func RequestFields(r *api.Request, zone *time.Location) []Field {
	var fields []Field
	add := func(key, format string, args ...any) {
		fields = append(fields, Field{key, fmt.Sprintf(format, args...)})
	}
	add("wants to", "%s %s", plain.Text(r.Operation), plain.Exact(string(r.Object)))
	switch {
	case r.Mapped:
		add("argv", "not known: the code is loaded by another program, which gives it arguments")
	case r.Operation == "exec":
		more := ""
		if r.ArgsCut {
			more = " … and more that is not shown here; it is granted with the rest"
		}
		add("argv", "%s%s", plain.Exact(texts(r.Args)...), more)
	}
	add("who", "%s[%d], uid %d", plain.Word(string(r.Comm)), r.Pid, r.Uid)
	if len(r.Cwd) > 0 {
		add("in", "%s", plain.Exact(string(r.Cwd)))
	}
	if len(r.Ancestors) > 0 {
		add("below", "%s", ancestors(r.Ancestors))
	}
	if r.Image != "" {
		add("image", "%s", plain.Word(r.Image))
	}
	if len(r.Labels) > 0 {
		add("carries", "%s", plain.Text(strings.Join(r.Labels, ", ")))
	}
	rule := "a default"
	if r.Rule != "" {
		rule = "rule " + RuleText(r.Rule, r.RuleAdded)
	}
	add("asked by", "%s (%s)", rule, plain.Text(r.ClausePos))
	if r.Because != "" {
		add("because", "%s", BecauseText(r.Because, r.RuleAdded))
	}
	for _, w := range r.Warnings {
		add("warning", "approver %s: %s", plain.Word(w.Approver), plain.Text(w.Text))
	}
	if r.Answered != nil {
		add("answer", "%s", answerText(r.Answered, zone))
	}
	return fields
}

// RuleText names a rule, and tells if a program in the container added it.
func RuleText(rule string, added bool) string {
	if added {
		return plain.Word(rule) + ", which a program in the container added,"
	}
	return plain.Text(rule)
}

// BecauseText is a rule's reason. What a program in the container added is quoted: people take
// the policy's words for its author's.
func BecauseText(because string, added bool) string {
	if added {
		return plain.Word(because)
	}
	return plain.Text(because)
}

// ancestors are the processes above one, the nearest first.
func ancestors(list []*api.Ancestor) string {
	var names []string
	for _, a := range list {
		names = append(names, fmt.Sprintf("%s[%d]", plain.Word(string(a.Comm)), a.Pid))
	}
	return strings.Join(names, " < ")
}

// OperationText is what a request is about on one line.
func OperationText(r *api.Request) string {
	text := plain.Text(r.Operation) + " " + plain.Word(string(r.Object))
	if r.Operation == "exec" && len(r.Args) > 1 {
		text += " " + plain.Words(texts(r.Args[1:]))
	}
	if r.ArgsCut {
		text += " …"
	}
	return text
}

// OperatorText is who answered.
func OperatorText(by *api.Operator) string {
	text := operatorName(by)
	if by.GetLogin() != "" {
		text += ", logged in as " + plain.Text(by.Login)
	}
	return text
}

func operatorName(by *api.Operator) string {
	switch {
	case by == nil:
		return "?"
	case by.Via == "approver":
		return "approver " + plain.Word(by.Name)
	case by.Name == "":
		return fmt.Sprintf("uid %d", by.Uid)
	}
	return fmt.Sprintf("%s (uid %d)", plain.Word(by.Name), by.Uid)
}

// GrantLeft is what is left of an answer that holds.
func GrantLeft(g *api.Grant) string {
	during := "the container's life"
	if g.LeftMs > 0 {
		during = (time.Duration(g.LeftMs) * time.Millisecond).Round(time.Second).String()
	}
	if g.Request.GetAnswered().GetCount() == 0 {
		return during
	}
	uses := fmt.Sprintf("%d uses", g.Left)
	if g.Left == 1 {
		uses = "1 use"
	}
	if g.LeftMs > 0 {
		uses += " in " + during
	}
	return uses
}

// RequestState is a request's state, and since when and until when it is in it.
func RequestState(r *api.Request, now time.Time, zone *time.Location) string {
	asked := "asked " + Ago(now.Sub(time.UnixMilli(r.OpenedUnixMs)))
	if r.Deciding {
		asked += ", the approvers are at it"
	}
	switch {
	case r.State == "open" && r.Held:
		return fmt.Sprintf("open, %s; stopped until it is answered, at most until %s", asked,
			time.UnixMilli(r.UntilUnixMs).In(zone).Format(time.DateTime))
	case r.State == "open":
		return fmt.Sprintf("open, %s; was refused, and succeeds when it is tried again after an approval", asked)
	}
	return plain.Text(r.State) + ", " + asked
}

// Ago is a time that has passed, in whole seconds.
func Ago(d time.Duration) string {
	return max(d, 0).Truncate(time.Second).String() + " ago"
}

// answerText is who said what for how long.
func answerText(a *api.Answered, zone *time.Location) string {
	what := "approved"
	if a.Denied {
		what = "denied"
	}
	text := what + " " + answerTime(a, zone)
	if a.By != nil {
		text += " by " + OperatorText(a.By)
	}
	text += fmt.Sprintf(", used %d times", a.Used)
	if a.Used == 1 {
		text = strings.TrimSuffix(text, "s")
	}
	switch {
	case a.Over == "revoked":
		text += ", revoked by " + OperatorText(a.OverBy)
	case a.Over != "":
		text += ", now " + plain.Text(a.Over)
	}
	if a.Because != "" {
		text += ": " + plain.Text(a.Because)
	}
	return text
}

func answerTime(a *api.Answered, zone *time.Location) string {
	text := ""
	switch {
	case a.ScopeLifetime:
		return "as long as the container lives"
	case a.Count == 1:
		text = "once"
	case a.Count > 1:
		text = fmt.Sprintf("%d times", a.Count)
	}
	if a.UntilUnixMs == 0 {
		return text
	}
	return strings.TrimSpace(text + " until " + time.UnixMilli(a.UntilUnixMs).In(zone).Format(time.DateTime))
}

func texts(list [][]byte) []string {
	out := make([]string, len(list))
	for i, text := range list {
		out[i] = string(text)
	}
	return out
}
