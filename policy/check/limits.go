// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"

	"github.com/actplane/actplane/policy/diag"
	"github.com/actplane/actplane/policy/ir"
)

// MaxTerms bounds the alternatives of one clause's condition, once it is in
// disjunctive normal form. The engine's tables have their limits in package ir.
const MaxTerms = 64

// room counts what a glob takes, before its braces are expanded: they stand for more
// than they take to write. It returns false when all together take too much, and
// reports where that begins.
func (c *checker) room(l *layer, at diag.Span, what string, used *int, more, limit int) bool {
	if *used > limit {
		return false // reported already
	}
	if *used += more; *used > limit {
		c.report(l.Text.New(diag.OverLimit, at, "the %s up to here take more than %d bytes with their braces expanded", what, limit))
		return false
	}
	return true
}

// tableLimits reports what is more than the engine holds, where it begins to be
// too much.
func (c *checker) tableLimits() {
	for _, t := range []struct {
		what  string
		at    []place
		limit int
	}{
		{"labels", c.labelAt, ir.MaxLabels},
		{"different lineage-includes conditions", c.lineageAt, ir.MaxLineages},
		{"different after conditions", c.gateAt, ir.MaxGates},
		{"clauses", c.clauseAt, ir.MaxClauses},
		{"defaults", c.defaultAt, ir.MaxDefaults},
		{"protected patterns", c.protectAt, ir.MaxClauses},
	} {
		if n := len(t.at); n > t.limit {
			first := t.at[t.limit]
			c.report(first.layer.Text.New(diag.OverLimit, first.span, "the policy has %d %s; the limit is %d", n, t.what, t.limit))
		}
	}
}

// mergeLimits takes the strictest of all layers.
func mergeLimits(layers []Layer) ir.Limits {
	var out ir.Limits
	var capabilities []*ir.Capabilities
	for _, l := range layers {
		out.Pids = stricter(out.Pids, l.Limits.Pids)
		out.Memory = stricter(out.Memory, l.Limits.Memory)
		out.CPUs = stricter(out.CPUs, l.Limits.CPUs)
		out.NoNewPrivileges = out.NoNewPrivileges || l.Limits.NoNewPrivileges
		if l.Limits.Capabilities != nil {
			capabilities = append(capabilities, l.Limits.Capabilities)
		}
	}
	out.Capabilities = mergeCapabilities(capabilities)
	return out
}

func stricter[T int64 | float64](a, b T) T {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// mergeCapabilities drops what any layer drops, and keeps what is added back
// only where every layer lets it.
func mergeCapabilities(all []*ir.Capabilities) *ir.Capabilities {
	if len(all) == 0 {
		return nil
	}
	var drop, add []string
	for _, c := range all {
		drop = append(drop, c.Drop...)
		add = append(add, c.Add...)
	}
	out := &ir.Capabilities{}
	for _, name := range sorted(drop) {
		if name == "ALL" || !slices.Contains(sorted(drop), "ALL") {
			out.Drop = append(out.Drop, name)
		}
	}
	for _, name := range sorted(add) {
		if !slices.ContainsFunc(all, func(c *ir.Capabilities) bool { return drops(c, name) }) {
			out.Add = append(out.Add, name)
		}
	}
	return out
}

func drops(c *ir.Capabilities, name string) bool {
	if slices.Contains(c.Add, name) {
		return false
	}
	return slices.Contains(c.Drop, name) || slices.Contains(c.Drop, "ALL")
}

func sorted(names []string) []string {
	out := slices.Clone(names)
	slices.Sort(out)
	return slices.Compact(out)
}
