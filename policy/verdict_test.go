// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/actplane/actplane/policy/dfa"
	"github.com/actplane/actplane/policy/ir"
)

// ruling is what a clause, a default or a protected pattern says.
type ruling struct {
	effect ir.Effect
	rule   string
}

func (r ruling) String() string {
	switch {
	case r.effect == ir.Allow:
		return "ok"
	case r.rule == "":
		return r.effect.String()
	}
	return r.effect.String() + " " + r.rule
}

// decide finds the strictest ruling on all events of an operation; when it does
// not deny them, they reach the gates.
func (w *world) decide(p *process, events ...event) string {
	var best ruling
	for _, e := range events {
		for _, r := range []ruling{w.clauses(p, e), w.defaults(p, e), w.protects(p, e)} {
			if r.effect > best.effect {
				best = r
			}
		}
	}
	if best.effect < ir.Ask {
		for _, e := range events {
			w.gates(p, e)
		}
	}
	return best.String()
}

func (w *world) clauses(p *process, e event) (best ruling) {
	reached := w.reached(e.argv)
	var seen []uint16 // in the row of the other key
	for _, r := range e.rows {
		for _, i := range r.Clauses[e.op] {
			c := &w.img.Clauses[i]
			if slices.Contains(seen, i) || !w.matches(c, p, e, reached) {
				continue
			}
			seen = append(seen, i)
			found := ruling{c.Effect, w.rules[c.Rule].Name}
			if c.Effect == ir.Ask {
				found.effect = w.ask(found.rule, e)
			}
			if found.effect > best.effect {
				best = found
			}
		}
	}
	return best
}

// ask returns what has become of a request, which it makes if there is none.
func (w *world) ask(rule string, e event) ir.Effect {
	request := fmt.Sprint(rule, e.op, e.key, e.argv)
	switch {
	case w.denied[request]:
		return ir.Block
	case w.granted[request] > 0:
		w.granted[request]--
		return ir.Allow
	}
	if !slices.Contains(w.open, request) {
		w.open = append(w.open, request)
	}
	return ir.Ask
}

// defaults returns the strictest default that no allow clause lifts.
func (w *world) defaults(p *process, e event) ruling {
	lifted := uint64(0)
	reached := w.reached(e.argv)
	for _, r := range e.rows {
		for _, i := range r.Allows[e.op] {
			if c := &w.img.Clauses[i]; w.matches(c, p, e, reached) {
				lifted |= c.Lifts
			}
		}
	}
	for i, d := range w.img.Defaults {
		if ir.Governs(d.Op, e.op) && lifted>>i&1 == 0 {
			return ruling{effect: d.Effect}
		}
	}
	return ruling{}
}

func (w *world) protects(p *process, e event) ruling {
	if e.op != ir.Write && e.op != ir.Append && e.op != ir.Unlink {
		return ruling{}
	}
	for _, i := range e.rows[0].Protects {
		if x := w.img.Protects[i]; p.labels&x.All == x.All && p.labels&x.None == 0 {
			return ruling{effect: ir.Block}
		}
	}
	return ruling{}
}

func (w *world) matches(c *dfa.Clause, p *process, e event, reached []uint64) bool {
	labels := p.labels | e.in&^p.cleared&^w.img.Integrity
	switch {
	case c.UnlessModified && w.modified[e.key], c.UnlessUnmodified && !w.modified[e.key],
		labels&c.All != c.All || labels&c.None != 0,
		c.Arg >= 0 && reached[c.Arg/64]>>(c.Arg%64)&1 == 0,
		p.lineage&c.UnlessLineage != 0,
		c.Target >= 0 && e.rows[0].Targets>>c.Target&1 == 1:
		return false
	}
	return !slices.ContainsFunc(c.UnlessGates, func(g int) bool { return w.armed[g] == w.epoch[g] })
}

// reached is the recurrence over argv that the design prescribes.
func (w *world) reached(argv []string) []uint64 {
	set := make([]uint64, w.img.ArgWords)
	for _, a := range argv[min(1, len(argv)):] {
		mask := w.row(dfa.Token, a).Tokens
		carry := uint64(0)
		for i := range set {
			out := set[i] >> 63
			if mask != nil {
				set[i] |= (set[i]<<1 | carry | w.img.ArgStart[i]) & mask[i]
			}
			carry = out
		}
	}
	return set
}

func (w *world) gates(p *process, e event) {
	reached := w.reached(e.argv)
	for _, arm := range []bool{false, true} {
		for _, r := range e.rows {
			for _, g := range r.Gates[e.op] {
				switch {
				case g.Arm != arm || arm && e.forged || g.Arg >= 0 && reached[g.Arg/64]>>(g.Arg%64)&1 == 0:
				case !g.Arm:
					w.epoch[g.Gate]++
				case g.Exit >= 0:
					p.pending = append(p.pending, pendingGate{g.Gate, g.Exit, w.epoch[g.Gate]})
				default:
					w.armed[g.Gate] = w.epoch[g.Gate]
				}
			}
		}
	}
}

func denied(verdict string) bool {
	return strings.HasPrefix(verdict, "ask") || strings.HasPrefix(verdict, "block") || strings.HasPrefix(verdict, "kill")
}
