// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"time"

	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/feedback"
)

// Bounds of what a decision tells of a label.
const (
	maxTraced  = 32 // steps that are followed back
	maxSteps   = 8  // of these, that are told: the first and the last ones
	maxOrigins = 8  // labels
)

// origins tells how a process came by each of a set of labels, at the time of a record.
func (s *scope) origins(rec kernel.Record, labels uint64) []feedback.Origin {
	var out []feedback.Origin
	known := s.numbers(rec).program.Labels
	for ; labels != 0 && len(out) < maxOrigins; labels &= labels - 1 {
		bit := bits.TrailingZeros64(labels)
		if bit < len(known) && !known[bit].Confines {
			out = append(out, s.origin(rec, bit, known[bit].Name))
		}
	}
	return out
}

func (s *scope) origin(rec kernel.Record, bit int, name string) feedback.Origin {
	s.provenance.mu.Lock()
	defer s.provenance.mu.Unlock()
	t := trace{p: s.provenance, label: 1 << bit, self: rec.Process.ID}
	origin := feedback.Origin{Label: name, Steps: []feedback.Step{}}
	if rec.Carried&t.label != 0 {
		t.process(bearer{rec.Process.ID, rec.Process.Ancestors, rec.Started}, rec.Time, who(rec))
	} else {
		t.brought(rec, rec.Sources&t.label != 0)
	}
	slices.Reverse(t.steps)
	origin.Steps = append(origin.Steps, t.steps...)
	origin.Unrecorded = !t.known
	if excess := len(origin.Steps) - maxSteps; excess > 0 {
		origin.Left = excess
		origin.Steps = slices.Delete(origin.Steps, 1, 1+excess)
	}
	return origin
}

// trace follows a label back; its steps are the newest first.
type trace struct {
	p     *provenance
	label uint64
	self  kernel.ProcessID
	steps []feedback.Step
	known bool // where the label came from, and not only some of the way
}

// process follows how a label came to a process; itself is how it shows.
func (t *trace) process(to bearer, at time.Time, itself feedback.Step) {
	for len(t.steps) < maxTraced {
		found, inherited := t.p.toProcess(to, t.label, at)
		if found == nil {
			return
		}
		if inherited {
			itself.Way, itself.Time = feedback.WayInherit, time.Time{}
			t.add(itself, to.id)
		}
		t.gained(found)
		next, from := t.from(found)
		if next == nil {
			return
		}
		to, at = *next, found.Time
		itself = t.show(from, to.id)
	}
}

// from is who had a label before a passage: nil when nobody is known, or none is needed.
func (t *trace) from(found *passage) (*bearer, *passage) {
	switch {
	case found.Way <= kernel.BySourceEndpoint || found.Way == kernel.ByEndorsement:
		t.known = true
	case found.Gives && found.Process.ID != found.Other: // another process passed it on
		giver := found.actor()
		return &giver, found
	case found.Other != 0 && !found.Gives:
		by, giver := t.p.known(found.Other)
		return &giver, by
	case !found.Gives:
		given := t.p.toObject(found.Objects, found.Object, t.label, found.Time)
		if given == nil {
			return nil, nil
		}
		return t.given(given)
	}
	return nil, nil
}

// given adds how a label came to a file or a channel, and returns from whom.
func (t *trace) given(given *passage) (*bearer, *passage) {
	switch given.Way {
	case kernel.BySourceFile:
		t.known = true
		t.steps = append(t.steps, feedback.Step{Way: feedback.WayNamed, Source: true, Thing: thing(given.Objects[0])})
		return nil, nil
	case kernel.ByFile:
		step := t.show(given, given.Process.ID)
		step.Way, step.Time, step.Object, step.Cut = feedback.WayWrote, given.Time, given.Object, given.Cut
		step.Thing = thing(given.Objects[0])
		if given.Earlier { // by a process that is none of this start's
			step.Earlier, step.Self, step.Process = true, false, ""
			t.steps = append(t.steps, step)
			return nil, nil
		}
		t.add(step, given.Process.ID)
	}
	giver := given.actor()
	return &giver, given
}

// brought adds that an operation would have brought a label in with its object.
func (t *trace) brought(rec kernel.Record, source bool) {
	t.known = source
	t.steps = append(t.steps, feedback.Step{Way: feedback.WayBrought, Source: source, Object: rec.Object, Thing: thing(rec.File)})
	if source {
		return
	}
	given := t.p.toObject([2]kernel.FileID{rec.File}, rec.Object, t.label, rec.Time)
	if given == nil {
		return
	}
	if to, from := t.given(given); to != nil {
		t.process(*to, given.Time, t.show(from, to.id))
	}
}

// gained adds the step by which a process gained a label.
func (t *trace) gained(found *passage) {
	to, by := found.Process.ID, found
	if found.Gives {
		to = found.Other
		by, _ = t.p.known(to)
	}
	step := t.show(by, to)
	step.Way, step.Time = way(found.Gain), found.Time
	step.Source = found.Way <= kernel.BySourceEndpoint
	step.Object, step.Cut = found.Object, found.Cut
	step.Thing = thing(found.Objects[0])
	t.add(step, to)
}

func (t *trace) add(step feedback.Step, process kernel.ProcessID) {
	step.Self = process == t.self
	t.steps = append(t.steps, step)
}

// show is a process as a step shows it, by a passage in which it acted; nil is unknown.
func (t *trace) show(by *passage, id kernel.ProcessID) feedback.Step {
	step := feedback.Step{Process: strconv.FormatUint(uint64(id), 10), Self: id == t.self}
	if by != nil && by.Process.ID == id {
		step.Program, step.PID, step.HostPID = by.Comm, by.Inside, by.PID
	}
	return step
}

// who is the process of a record as a step shows it.
func who(rec kernel.Record) feedback.Step {
	return feedback.Step{Process: strconv.FormatUint(uint64(rec.Process.ID), 10), Program: rec.Comm, HostPID: rec.PID, Self: true}
}

// thing names a file or channel, "" for none.
func thing(id kernel.FileID) string {
	if id == (kernel.FileID{}) {
		return ""
	}
	return fmt.Sprintf("%x:%x:%x", id.Device, id.Inode, id.Generation)
}

// way is a way of the kernel's in the words of feedback.
func way(g kernel.Gain) feedback.Way {
	switch g.Way {
	case kernel.BySourceFile, kernel.ByFile:
		return feedback.WayRead
	case kernel.BySourceExec, kernel.ByProgram:
		return feedback.WayRan
	case kernel.BySourceEndpoint, kernel.ByEndpoint:
		return feedback.WayReached
	case kernel.ByEndorsement:
		return feedback.WayEndorsed
	case kernel.BySocket:
		return feedback.WaySocket
	case kernel.ByPipe:
		return feedback.WayPipe
	case kernel.ByTerminal:
		return feedback.WayTerminal
	case kernel.ByQueue:
		return feedback.WayQueue
	case kernel.ByLooking:
		if g.Gives {
			return feedback.WayEntered
		}
		return feedback.WayLooked
	case kernel.BySharedFile:
		return feedback.WayMapped
	case kernel.BySharedChannel:
		return feedback.WayChannel
	}
	return feedback.WayMemory
}
