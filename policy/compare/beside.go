// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"slices"
	"strings"

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
