// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"strings"
	"time"
)

// writeAsked says what became of an operation that a person is asked about: by which
// request people know it, and what an answer changes.
func (i Item) writeAsked(b *strings.Builder) {
	request := "request " + plain(i.Request, maxNameShown)
	asking := ". What asks is " + i.reason()
	switch i.Outcome {
	case Opened:
		b.WriteString(" was stopped " + before(i.Operation) + " and needs a person's approval: " + request +
			" is open. Once it is approved, the very same operation succeeds" + asking)
	case StillOpen:
		b.WriteString(" was stopped " + before(i.Operation) + " again: " + request +
			" is still open, and nobody has answered it yet" + asking)
	case Held:
		b.WriteString(" needs a person's approval: " + request + " is open, and the process is stopped until it is answered" +
			i.until(", at most until ") + asking)
	case TimedOut:
		b.WriteString(" was blocked " + before(i.Operation) + ": nobody answered " + request + " in time" + asking)
	case Unasked:
		b.WriteString(" was blocked " + before(i.Operation) + ": it needs a person's approval, and nobody can be asked, because " +
			plain(i.Reason, maxClauseShown) + asking)
	case Denied:
		b.WriteString(" was blocked " + before(i.Operation) + ": " + i.who() + " denied " + request + i.until(", which holds until ") + i.said())
	case Used:
		b.WriteString(" was allowed: " + i.who() + " had approved " + request + ".")
	case Grant:
		b.WriteString(" was approved by " + i.who() + ": " + request + i.until(", until ") + ". The very same operation succeeds now." + i.warned())
	case Denial:
		b.WriteString(" was denied by " + i.who() + ": " + request + i.until(", until ") + i.said() + i.warned())
	case Withdrawn:
		b.WriteString(" waits no longer: the process that was stopped for " + request + " is gone.")
	case Warned:
		b.WriteString(" waits for a person's approval: " + request + " is open." + i.warned())
	case Revoked, UsedUp, Expired:
		b.WriteString(i.over(request))
	default:
		b.WriteString(" met the outcome " + quote(string(i.Outcome), maxNameShown) + ".")
	}
}

// who is who answered.
func (i Item) who() string {
	if i.Approver != "" {
		return "approver " + quote(i.Approver, maxNameShown)
	}
	return "a person"
}

// over says why an answer holds no longer, and what that changes.
func (i Item) over(request string) string {
	text := " is no longer approved: the approval of "
	if i.WasDenied {
		text = " is no longer denied: the denial of "
	}
	switch i.Outcome {
	case Revoked:
		return text + request + " was taken back. Tried again, it asks anew."
	case UsedUp:
		return text + request + " is used up. Tried again, it asks anew."
	}
	return text + request + " is over, its time is up. Tried again, it asks anew."
}

// warned are the approvers' warnings, each a sentence of its own.
func (i Item) warned() string {
	var b strings.Builder
	for _, warning := range i.Warnings {
		b.WriteString(" Warning: " + ended(plain(warning, maxBecauseShown)))
	}
	return b.String()
}

// said is the reason that the person gave.
func (i Item) said() string {
	if reason := plain(i.Reason, maxBecauseShown); reason != "" {
		return ". The reason given: " + reason
	}
	return ". No reason was given."
}

func (i Item) until(before string) string {
	if i.Until.IsZero() {
		return ""
	}
	return before + i.Until.UTC().Format(time.RFC3339)
}
