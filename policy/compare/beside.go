// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/actplane/actplane/policy/dfa"
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/model"
)

// beside says what differs and is no decision: what the agent is told, and what the
// container is given.
func (c *comparison) beside() (out []string) {
	before, after := c.sides[0].Program, c.sides[1].Program
	for i := range before.Rules {
		r := &before.Rules[i]
		j := slices.IndexFunc(after.Rules, func(x ir.Rule) bool { return x.Name == r.Name && x.Layer == r.Layer })
		if j >= 0 && after.Rules[j].Because != r.Because && !c.retold(r.Name) {
			out = append(out, fmt.Sprintf("The reason of rule %s: %s, and now %s.", r.Name, reason(r.Because), reason(after.Rules[j].Because)))
		}
	}
	a, b := before.Limits, after.Limits
	changed := func(what, x, y string) {
		if x != y {
			out = append(out, fmt.Sprintf("%s: %s, and now %s.", what, x, y))
		}
	}
	changed("The limit of processes", figure(a.Pids), figure(b.Pids))
	changed("The limit of memory in bytes", figure(a.Memory), figure(b.Memory))
	changed("The limit of processors", figure(a.CPUs), figure(b.CPUs))
	changed("Capabilities", capabilities(a.Capabilities), capabilities(b.Capabilities))
	changed("no_new_privileges", fmt.Sprint(a.NoNewPrivileges), fmt.Sprint(b.NoNewPrivileges))
	changed("feedback.stderr", fmt.Sprint(before.Feedback.Stderr), fmt.Sprint(after.Feedback.Stderr))
	return append(out, c.protected()...)
}

// protected says what one policy's `protect` keeps under whatever name it has, and the
// other's does not: what is decided about its path can be the same then, by clauses, and
// files have several. What is told among the differences already is left out.
func (c *comparison) protected() (out []string) {
	var first [2]string
	var others [2]map[int]bool
	for _, p := range c.walks[dfa.Path].places {
		if p.kind != model.Ordinary {
			continue
		}
		kept := &problem{c.keeps(0, &p), c.keeps(1, &p)}
		if !c.work.spend(kept[0].size() + kept[1].size()) {
			return out
		}
		if kept.same() {
			continue
		}
		for side := range kept {
			for _, x := range kept[side].clauses {
				if others[side][x.order] || c.shownProtect(side, x.order) {
					continue
				}
				for _, a := range c.stricter(unlifted{predicate: x}, &kept[side], &kept[1-side]) {
					if len(others[side]) == 0 {
						others[side] = map[int]bool{}
						first[side] = c.keptWhere(&p, a)
					}
					others[side][x.order] = true
				}
			}
		}
	}
	for side, when := range []string{"before, and now", "now, and before"} {
		if n := len(others[side]); n > 0 {
			text := fmt.Sprintf("Kept by `protect` %s at most by clauses (`protect` keeps a file under all its names, hard links from before too, and a clause only under the names in it): %s", when, first[side])
			if n > 1 {
				text += fmt.Sprintf(", and what %d more entries of the list name", n-1)
			}
			out = append(out, text+".")
		}
	}
	return out
}

// keeps are the protected patterns alone that name a place, numbered as the program does.
func (c *comparison) keeps(side int, p *place) (v verdicts) {
	img := c.sides[side].Image
	for _, r := range rowsOf(img, p.rows[side]) {
		for _, i := range r.Protects {
			x := &img.Protects[i]
			kept := &dfa.Clause{Clause: -1, Effect: ir.Block, All: x.All, None: x.None, Arg: -1, Target: -1}
			if y, ok := c.predicate(side, kept, &question{op: ir.Write, place: *p}, 0, 0); ok {
				y.order = x.Protect
				v.clauses = append(v.clauses, y)
			}
		}
	}
	return v
}

// shownProtect tells whether a difference shows that a policy keeps a file by one of its
// protected patterns, which the other one does not keep.
func (c *comparison) shownProtect(side, protect int) bool {
	x := &c.sides[side].Program.Protects[protect]
	return slices.ContainsFunc(c.findings, func(f *finding) bool {
		by, other := &f.Old, &f.New
		if side == 1 {
			by, other = other, by
		}
		return by.Protect != nil && by.Protect.Pos == x.Pos && by.Protect.Text == x.Text && !other.Denied()
	})
}

// keptWhere names a place, and the state in which it is kept.
func (c *comparison) keptWhere(p *place, a answer) string {
	where := p.object(false)
	if state := c.supposed(&finding{question: question{op: ir.Write, place: *p}, answer: a}); len(state) > 0 {
		where += ", where " + strings.Join(state, " and ")
	}
	return where
}

func reason(text string) string {
	if text == "" {
		return "none"
	}
	return fmt.Sprintf("%q", text)
}

func figure[N int64 | float64](n N) string {
	if n == 0 {
		return "none"
	}
	return fmt.Sprint(n)
}

func capabilities(c *ir.Capabilities) string {
	if c == nil {
		return "as they are"
	}
	drop, add := slices.Sorted(slices.Values(c.Drop)), slices.Sorted(slices.Values(c.Add))
	return fmt.Sprintf("without [%s], with [%s]", strings.Join(drop, " "), strings.Join(add, " "))
}
