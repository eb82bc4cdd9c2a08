// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"maps"
	"math/bits"

	"github.com/actplane/actplane/policy/ir"
)

// history keeps by which steps of a case the state became what it is: for people
// who read why a case failed. Steps are indexes of steps.
type history struct {
	scope   *Scope
	steps   []Step
	labels  map[string]uint64
	gained  map[string]map[int]int // by process and label: the step
	touched []*Process             // since the last note
	gates   []gate
	armed   []int // by gate: the step that made it fresh last, -1 for none
	stale   []int // and stale
}

func newHistory(s *Scope, steps []Step) *history {
	h := &history{
		scope: s, steps: steps, labels: map[string]uint64{}, gained: map[string]map[int]int{},
		gates: append([]gate(nil), s.gates...), armed: make([]int, len(s.gates)), stale: make([]int, len(s.gates)),
	}
	for i := range h.gates {
		h.armed[i], h.stale[i] = -1, -1
	}
	s.watch = func(p *Process) { h.touched = append(h.touched, p) }
	return h
}

// note compares the state after a step with that before it.
func (h *history) note(step int) {
	if w := h.steps[step].Words; isScope(w) {
		clear(h.labels)
		clear(h.gained)
		h.touched = nil
	} else if w[1] == "fork" {
		h.gained[w[2]], h.labels[w[2]] = maps.Clone(h.gained[w[0]]), h.labels[w[0]]
	}
	for _, p := range h.touched {
		for set := p.Labels &^ h.labels[p.Name]; set != 0; set &= set - 1 {
			if h.gained[p.Name] == nil {
				h.gained[p.Name] = map[int]int{}
			}
			h.gained[p.Name][bits.TrailingZeros64(set)] = step
		}
		h.labels[p.Name] = p.Labels
	}
	h.touched = h.touched[:0]
	for i, g := range h.scope.gates {
		if g.epoch != h.gates[i].epoch {
			h.stale[i] = step
		}
		if g.armed != h.gates[i].armed {
			h.armed[i] = step
		}
		h.gates[i] = g
	}
}

// led says of the labels and gates that a clause names how they came about.
func (h *history) led(c *ir.Clause, o *operation) (notes []string) {
	p, named := o.subject, uint64(0)
	for _, t := range c.If {
		named |= t.All | t.None
	}
	for set := named & p.Labels; set != 0; set &= set - 1 {
		label := bits.TrailingZeros64(set)
		if step, ok := h.gained[p.Name][label]; ok {
			notes = append(notes, fmt.Sprintf("%s holds %s from %s", p.Name, h.scope.program.Labels[label].Name, h.where(step)))
		}
	}
	brought := uint64(0)
	for _, e := range o.events {
		brought |= h.scope.wouldHold(p, e)
	}
	if brought &= named &^ p.Labels; brought != 0 {
		notes = append(notes, fmt.Sprintf("this step would give %s %s", p.Name, h.scope.LabelNames(brought)))
	}
	for _, g := range c.Unless.Gates {
		name := "its gate"
		if len(c.Unless.Gates) > 1 {
			name = "`" + h.scope.program.Gates[g].Text + "`"
		}
		notes = append(notes, name+" "+h.gate(g))
	}
	return notes
}

// gate says whether an `after` condition holds, and since when.
func (h *history) gate(i int) string {
	switch g := h.gates[i]; {
	case h.scope.Fresh(i):
		return "holds since " + h.where(h.armed[i])
	case g.isFresh():
		return "does not hold: a file that makes it stale is mapped for writing"
	case g.armed == 0:
		return "does not hold: it has not happened"
	}
	if h.stale[i] < 0 {
		return "does not hold: what ran is not the program any more"
	}
	return "does not hold since " + h.where(h.stale[i])
}

func (h *history) where(step int) string {
	if step < 0 || step >= len(h.steps) {
		return "the beginning"
	}
	if h.steps[step].Line == 0 {
		return fmt.Sprintf("event %d: `%s`", step+1, h.steps[step].Text)
	}
	return fmt.Sprintf("line %d: `%s`", h.steps[step].Line, h.steps[step].Text)
}
