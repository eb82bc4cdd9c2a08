// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"math/bits"
	"slices"
	"time"

	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/feedback"
	"github.com/actplane/actplane/policy/ir"
)

// noteGates puts a passage that is about gates into the index. mu is held.
func (p *provenance) noteGates(i int) {
	next := &p.passages[i]
	for left := next.Labels; left != 0; left &= left - 1 {
		gate := bits.TrailingZeros64(left)
		p.gates[gate] = append(p.gates[gate], i)
	}
}

// newestMove is the last passage before a time that has opened a gate, or the last one that
// is something else; -1 is none. mu is held.
func (p *provenance) newestMove(gate int, opened bool, at time.Time) int {
	for _, i := range slices.Backward(p.gates[gate]) {
		if next := &p.passages[i]; (next.Gate == kernel.GateOpened) == opened && !next.Time.After(at) {
			return i
		}
	}
	return -1
}

// gateOrigins tell of each gate that could have excused from a clause what opened it last,
// if anything did, and what it is that it is not open.
func (s *scope) gateOrigins(rec kernel.Record, clause ir.Clause) []feedback.Origin {
	var out []feedback.Origin
	known := s.numbers(rec).program.Gates
	s.provenance.mu.Lock()
	defer s.provenance.mu.Unlock()
	for _, gate := range clause.Unless.Gates {
		if gate >= len(known) || len(out) == maxOrigins {
			break
		}
		if origin := s.provenance.gateOrigin(gate, known[gate], rec); len(origin.Steps) > 0 {
			out = append(out, origin)
		}
	}
	return out
}

// gateOrigin is what became of a gate until a record; without steps nothing is known. mu is
// held.
func (p *provenance) gateOrigin(number int, gate ir.Gate, rec kernel.Record) feedback.Origin {
	origin := feedback.Origin{Gate: gate.Text}
	for _, opened := range []bool{true, false} {
		if i := p.newestMove(number, opened, rec.Time); i >= 0 {
			origin.Steps = append(origin.Steps, p.gateStep(i, gate, rec.Process.ID))
		}
	}
	// A gate that was opened last was open: what ended that was not recorded.
	if last := len(origin.Steps) - 1; last >= 0 && (last == 0 || origin.Steps[1].Time.Before(origin.Steps[0].Time)) {
		origin.Unrecorded = origin.Steps[0].Way == feedback.WayOpened
		origin.Steps = origin.Steps[:1]
	}
	return origin
}

func (p *provenance) gateStep(i int, gate ir.Gate, self kernel.ProcessID) feedback.Step {
	next := &p.passages[i]
	step := (&trace{p: p, self: self}).show(next, next.Process.ID)
	step.Way, step.Time, step.Object, step.Cut = gateWays[next.Gate], next.Time, next.Object, next.Cut
	step.Thing = thing(next.Objects[0])
	if next.Gate == kernel.GateLate || next.Gate == kernel.GateMissed || next.Gate == kernel.GateOpened && gate.Exit >= 0 {
		if step.Signal = int(next.Status & 0x7f); step.Signal == 0 {
			status := int(next.Status >> 8 & 0xff)
			step.Status = &status
		}
	}
	return step
}

// gateWays are what can become of a gate in the words of feedback.
var gateWays = [...]feedback.Way{
	kernel.GateOpened: feedback.WayOpened, kernel.GateStaled: feedback.WayStaled, kernel.GateLate: feedback.WayLate,
	kernel.GateMissed: feedback.WayMissed, kernel.GateClosed: feedback.WayClosed,
}
