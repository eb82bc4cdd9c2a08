// SPDX-License-Identifier: Apache-2.0

package model

import "github.com/actplane/actplane/policy/ir"

// MaxWork bounds what is acted out at once: steps times the Weight of the program. It is
// some ten seconds, and many times that where most of the patterns match.
const MaxWork = 1 << 27

// Weight is how many patterns an event is held against, with their braces expanded.
func Weight(p *ir.Program) (n int) {
	add := func(list ...ir.Pattern) {
		for _, x := range list {
			n += len(expandGlob(x.Text))
		}
	}
	for _, c := range p.Clauses {
		add(c.Pattern)
		n += len(c.Args)
		for _, t := range c.Unless.Targets {
			add(t.Pattern)
		}
	}
	for _, g := range p.Gates {
		add(g.After.Pattern)
		for _, e := range g.Since {
			add(e.Pattern)
		}
	}
	for _, s := range p.Sources {
		add(s.Pattern)
	}
	for _, t := range p.Transforms {
		add(t.Pattern)
	}
	for _, x := range p.Protects {
		add(x.Pattern)
	}
	add(p.Lineages...)
	return n + len(p.Defaults)
}
