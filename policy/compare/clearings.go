// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"slices"

	"github.com/actplane/actplane/policy/dfa"
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/model"
)

// clearing is a set of labels that a program clears under either policy, as each of them
// numbers them: while it runs, what it reads does not bring them.
type clearing [2]uint64

// clearingOf is what the program at a place clears.
func (c *comparison) clearingOf(p *place) (out clearing) {
	for side := range c.sides {
		for _, r := range rowsOf(c.sides[side].Image, p.rows[side]) {
			out[side] |= r.Declassify
			for label, atom := range c.atoms.labels[side] {
				if at := c.atoms.list[atom].at[1-side]; r.Declassify>>label&1 == 1 && at >= 0 {
					out[1-side] |= 1 << at
				}
			}
		}
	}
	return out
}

// findClearings finds what programs there are to clear labels.
func (c *comparison) findClearings() {
	known := map[clearing]bool{{}: true}
	for i := range c.walks[dfa.Path].places {
		p := &c.walks[dfa.Path].places[i]
		if !c.work.spend(64) {
			return
		}
		if x := c.clearingOf(p); p.kind == model.Ordinary && !known[x] {
			known[x] = true
			c.clearings = append(c.clearings, x)
		}
	}
}

// whileCleared are the questions about an event by programs that clear labels which it
// would bring, one for each set of labels that is left.
func (c *comparison) whileCleared(q *question) (out []*question) {
	if q.manner != plainly || q.op == ir.Exec { // an exec ends the image that would not regain them
		return nil
	}
	brought := clearing{c.brought(0, q), c.brought(1, q)}
	var known []clearing
	for _, x := range c.clearings {
		less := clearing{x[0] & brought[0], x[1] & brought[1]}
		if c.work.spend(8 + len(known)); less != (clearing{}) && !slices.Contains(known, less) {
			known = append(known, less)
			again := *q
			again.cleared = x
			out = append(out, &again)
		}
	}
	return out
}

// clears returns a step after which the subject runs a program that clears just some
// labels.
func (c *comparison) clears(x clearing) [][]string {
	return c.seek(nil, dfa.Path, [2]int{-1, -1}, nil, func(p *place) [][]string {
		if c.clearingOf(p) != x {
			return nil
		}
		return doing(ir.Exec)(p)
	})
}
