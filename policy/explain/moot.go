// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/actplane/actplane/policy/ir"
)

// reading is where reading is denied to everyone, by one clause for each place.
func reading(p *ir.Program) *held {
	h := newHeld()
	for i := range p.Clauses {
		c := &p.Clauses[i]
		u := &c.Unless
		always := len(c.If) == 0 && len(u.Targets)+len(u.Lineages)+len(u.Gates) == 0 && !u.Modified && !u.NotModified
		if always && c.Effect >= ir.Block && (c.Op == ir.Read || c.Op == ir.Open) {
			h.add(c.Pattern)
		}
	}
	return h
}

// unread says of a source of files that nobody can read them, so that nobody gets its
// label by that; "" where somebody can.
func (x *explainer) unread(s *ir.Source) string {
	if s.Pattern.Kind != ir.File || s.Pattern.Any {
		return ""
	}
	for _, glob := range alternatives(s.Pattern.Text) {
		if !x.unreadable.has(glob) {
			return ""
		}
	}
	label := x.program.Labels[s.Label].Name
	return fmt.Sprintf("A clause here keeps everyone from reading it, and what is refused gives no label: no rule about %s comes to bear on who tries. "+
		"Where reading shall have consequences, let it happen and be told: `notify read` in place of `block read`.", label)
}

// spoils says of a clause whose gate a program arms and a folder makes stale that the
// program itself can write there; "" where it has none.
func (x *explainer) spoils(c *ir.Clause) string {
	for _, i := range c.Unless.Gates {
		g := &x.program.Gates[i]
		if g.After.Op != ir.Exec || g.After.Pattern.Any {
			continue
		}
		for _, e := range g.Since {
			folder := func(glob string) bool { return strings.HasSuffix(strings.TrimSuffix(glob, "/*"), "/**") }
			if e.Op == ir.Write && !e.Pattern.Any && slices.ContainsFunc(alternatives(e.Pattern.Text), folder) {
				return fmt.Sprintf("What %s writes below a folder that its gate names, while it runs, makes it count no more: caches and reports, too.",
					object(g.After.Pattern)+arguments(g.After.Args))
			}
		}
	}
	return ""
}
