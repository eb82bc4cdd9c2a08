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
		b.WriteString(" was blocked " + before(i.Operation) + ": a person denied " + request + i.until(", which holds until ") + i.said())
	case Used:
		b.WriteString(" was allowed: a person had approved " + request + ".")
	case Grant:
		b.WriteString(" was approved by a person: " + request + i.until(", until ") + ". The very same operation succeeds now.")
	case Denial:
		b.WriteString(" was denied by a person: " + request + i.until(", until ") + i.said())
	case Withdrawn:
		b.WriteString(" waits no longer: the process that was stopped for " + request + " is gone.")
	default:
		b.WriteString(" met the outcome " + quote(string(i.Outcome), maxNameShown) + ".")
	}
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
