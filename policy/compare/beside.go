// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/actplane/actplane/policy/dfa"
	"github.com/actplane/actplane/policy/ir"
)

// beside says what differs and is no decision: what the agent is told, and what the
// container is given.
func (c *comparison) beside() (out []string) {
	before, after := c.sides[0].Program, c.sides[1].Program
	for i := range before.Rules {
		r := &before.Rules[i]
		j := slices.IndexFunc(after.Rules, func(x ir.Rule) bool { return x.Name == r.Name && x.Layer == r.Layer })
		if j >= 0 && after.Rules[j].Because != r.Because {
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

// protected says where clauses stand in for `protect`, or the reverse: what is decided
// about a path is the same then, and files have several.
func (c *comparison) protected() (out []string) {
	var told [2]bool
	for _, p := range c.walks[dfa.Path].places {
		if !c.work.spend(16) {
			return out
		}
		var is [2]bool
		for side := range is {
			is[side] = slices.ContainsFunc(rowsOf(c.sides[side].Image, p.rows[side]), func(r *dfa.Row) bool { return len(r.Protects) > 0 })
		}
		if is[0] == is[1] || told[0] && is[0] || told[1] && is[1] || !c.problem(&question{op: ir.Write, place: p}).same() {
			continue
		}
		words := "is, and was not"
		if is[0] {
			words = "was, and now is not"
		}
		told[0], told[1] = told[0] || is[0], told[1] || is[1]
		out = append(out, fmt.Sprintf("What `protect` keeps under whatever name it has, hard links from before too, and clauses only under the names in them: %s %s.", p.object(false), words))
	}
	return out
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
