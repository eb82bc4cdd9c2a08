// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"fmt"
	"strings"
	"time"
)

// Way is how a process came by a label, or passed it on.
type Way string

// The ways.
const (
	WayRead     Way = "read"    // a file
	WayRan      Way = "ran"     // a program
	WayReached  Way = "reached" // an address or a socket with a name
	WayEndorsed Way = "endorsed"
	WayWrote    Way = "wrote" // a file: the step before what others read of it
	WayNamed    Way = "named" // nobody wrote it there: a file has the label by another name
	WaySocket   Way = "socket"
	WayPipe     Way = "pipe"
	WayTerminal Way = "terminal"
	WayQueue    Way = "queue"
	WayMapped   Way = "mapped-file"
	WayChannel  Way = "channel" // what it was reading when the label came
	WayMemory   Way = "memory"  // that is shared
	WayLooked   Way = "looked-into"
	WayEntered  Way = "written-into" // another process wrote into its memory
	WayBrought  Way = "brought"      // the operation itself, with its object
	WayInherit  Way = "inherited"    // from the process of the step before
)

// What became of a condition `after …`, by which process.
const (
	WayOpened Way = "opened" // it held from then on; with a status, because the program ended so
	WayStaled Way = "staled" // it held no longer
	WayLate   Way = "late"   // the program ended as it should, and what it is about had changed
	WayMissed Way = "missed" // the program ended otherwise than it should
	WayClosed Way = "closed" // what had made it hold was changed or traced
)

// Origin is how a process came by a label that a decision was about: facts that the
// kernel side has recorded.
type Origin struct {
	Label string `json:"label,omitempty"`
	// Gate is set instead where it is about a condition of the clause, `after …`, as
	// written: the steps are what made it hold last, and what it is that it does not.
	Gate string `json:"gate,omitempty"`
	// Steps are in the order in which they happened; the last ends at the process.
	Steps []Step `json:"steps"`
	// Unrecorded: how the label came to where the first step takes it from, or without
	// steps to the process, was not recorded.
	Unrecorded bool `json:"unrecorded,omitempty"`
	// Left counts steps that are left out behind the first.
	Left int `json:"left,omitempty"`
}

// Step is one passage of a label. Its texts are from inside the container.
type Step struct {
	Way  Way       `json:"way"`
	Time time.Time `json:"time,omitzero"`
	// Source: the policy names the object as a source of the label.
	Source  bool   `json:"source,omitempty"`
	Object  string `json:"object,omitempty"`
	Cut     bool   `json:"object_cut,omitempty"` // the object's name has more in front
	Program string `json:"program,omitempty"`    // what the process called itself
	Process string `json:"process,omitempty"`    // its ID; "" is unknown
	PID     int    `json:"pid,omitempty"`        // as its own pid namespace numbers it
	HostPID int    `json:"host_pid,omitempty"`   // not told inside
	// Self: it is the process of the decision.
	Self bool `json:"self,omitempty"`
	// Earlier: it was in an earlier start of the container.
	Earlier bool `json:"earlier,omitempty"`
	// Status is what the program ended with, or Signal the one that ended it; of gates.
	Status *int `json:"status,omitempty"`
	Signal int  `json:"signal,omitempty"`
	// Thing names the object where its name does not, for who draws a graph.
	Thing string `json:"thing,omitempty"`
}

// Bounds of the sentences on origins, in bytes as shown.
const (
	maxOriginObject = 120
	maxOrigins      = 3
	maxOriginsShown = 900
)

// origins are the sentences of a message; they begin with a space.
func (i Item) origins() string {
	text := i.lineage()
	for n, origin := range i.Origins {
		label := " Label " + i.words(origin.Label, maxNameShown) + ": "
		if origin.Gate != "" {
			label = " Condition `" + plain(origin.Gate, maxNameShown) + "`: "
			if i.RuleAdded {
				label = " Condition " + quote(origin.Gate, maxNameShown) + ": "
			}
		}
		next := label + origin.Text(i.Time, false) + "."
		if len(text)+len(next) > maxOriginsShown {
			next = label + origin.ends().Text(i.Time, false) + "."
		}
		if n >= maxOrigins || len(text)+len(next) > maxOriginsShown {
			return text + " …"
		}
		text += next
	}
	return text
}

// lineage tells who is in the process's lineage, where a clause excuses by that.
func (i Item) lineage() string {
	if _, exceptions := conditions(i.Clause); len(i.Parents) == 0 || i.Effect == Notify || !strings.Contains(exceptions, "lineage-includes ") {
		return ""
	}
	var names []string
	for _, parent := range i.Parents {
		names = append(names, Step{Program: parent.Program, PID: parent.PID}.who(false))
	}
	return " Nothing that excuses it has run in its lineage, which is " + strings.Join(names, ", started by ") + "."
}

// Title is what an origin is about: a label, or a condition as written.
func (o Origin) Title() string {
	if o.Gate != "" {
		return o.Gate
	}
	return o.Label
}

// ends leaves out all steps but the first and the last.
func (o Origin) ends() Origin {
	if n := len(o.Steps); n > 2 {
		o.Left += n - 2
		o.Steps = []Step{o.Steps[0], o.Steps[n-1]}
	}
	return o
}

// Text puts an origin into words, for a decision at a time. With host, processes have
// the host's numbers.
func (o Origin) Text(at time.Time, host bool) string {
	if len(o.Steps) == 0 {
		return "how the process came by it was not recorded"
	}
	if o.Gate != "" && o.Unrecorded {
		return o.Steps[0].text(at, host) + "; what ended that was not recorded"
	}
	var parts []string
	for n, step := range o.Steps {
		if n == 1 && o.Left > 0 {
			parts = append(parts, fmt.Sprintf("then %d more", o.Left))
		}
		parts = append(parts, step.text(at, host))
	}
	if o.Unrecorded {
		parts[0] += " (how it came there was not recorded)"
	}
	return strings.Join(parts, "; ")
}

func (s Step) text(at time.Time, host bool) string {
	when := ""
	if !s.Time.IsZero() {
		when = " at " + moment(s.Time, at)
	}
	if s.Earlier {
		when += ", in an earlier start of the container"
	}
	object := s.object()
	source := ""
	if s.Source {
		source = ", a source of it,"
		when = strings.TrimPrefix(when, ",")
	}
	who := s.who(host)
	switch s.Way {
	case WayRead, WayRan, WayReached, WayWrote:
		return who + " " + string(s.Way) + " " + object + source + when
	case WayEndorsed:
		return who + " ran " + object + ", which endorses with it," + when
	case WayNamed:
		return "the file has it by a name that is a source of it"
	case WaySocket, WayPipe, WayTerminal, WayQueue:
		return who + " got it through a " + string(s.Way) + when
	case WayMapped:
		return who + " got it through a file that it had mapped" + when
	case WayChannel:
		return who + " got it through what it was reading" + when
	case WayMemory:
		return who + " got it through memory that it shares" + when
	case WayLooked:
		return who + " got it by looking into another process" + when
	case WayEntered:
		return who + " got it when another process wrote into its memory" + when
	case WayBrought:
		if s.Source {
			return object + " is a source of it"
		}
		return object + " carries it"
	case WayInherit:
		return who + " descends from that one"
	}
	return s.gate(who, when)
}

// gate is the text of a step of a condition.
func (s Step) gate(who, when string) string {
	ended := " ran"
	switch {
	case s.Signal != 0:
		ended = fmt.Sprintf(" was ended by signal %d", s.Signal)
	case s.Status != nil:
		ended = fmt.Sprintf(" ended with status %d", *s.Status)
	case s.Object != "":
		ended = " did what it asks for to " + s.object()
	}
	switch s.Way {
	case WayOpened:
		return who + ended + when + ", and it held"
	case WayMissed:
		return who + ended + when + ", which is not what it asks for"
	case WayLate:
		return who + ended + when + ", and what it depends on had been changed meanwhile"
	case WayStaled:
		if s.Object == "" {
			return who + " ended that" + when
		}
		return who + " ended that with " + s.object() + when
	case WayClosed:
		return who + " changed or traced what had done that" + when
	}
	return who + " came by it"
}

// who names the process of a step.
func (s Step) who(host bool) string {
	if s.Self {
		return "this process"
	}
	pid := s.PID
	if host {
		pid = s.HostPID
	}
	name := "a process"
	if s.Program != "" {
		name = quote(s.Program, maxCommShown)
	}
	if pid != 0 {
		name += fmt.Sprintf(" (pid %d)", pid)
	}
	return name
}

func (s Step) object() string {
	switch {
	case s.Object == "":
		return "something without a name here"
	case s.Cut:
		return "… " + quote(s.Object, maxOriginObject)
	}
	return quote(s.Object, maxOriginObject)
}

// moment is a time of the day, with the day where that is another.
func moment(t, at time.Time) string {
	t, at = t.UTC(), at.UTC()
	if t.Format(time.DateOnly) == at.Format(time.DateOnly) {
		return t.Format("15:04:05Z")
	}
	return t.Format(time.RFC3339)
}

// parentsInside leaves out what means nothing in a container.
func parentsInside(parents []Parent) []Parent {
	var out []Parent
	for _, parent := range parents {
		out = append(out, Parent{Program: cut(parent.Program, maxRawArg), PID: parent.PID})
	}
	return out
}

// inside leaves out of origins what means nothing in a container.
func inside(origins []Origin) []Origin {
	out := make([]Origin, len(origins))
	for i, origin := range origins {
		out[i] = origin
		out[i].Label, out[i].Gate = cut(origin.Label, maxRawArg), cut(origin.Gate, maxRawArg)
		out[i].Steps = make([]Step, len(origin.Steps))
		for n, step := range origin.Steps {
			step.HostPID = 0
			step.Thing = ""
			step.Object, step.Program = cut(step.Object, maxRawArg), cut(step.Program, maxRawArg)
			out[i].Steps[n] = step
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}
