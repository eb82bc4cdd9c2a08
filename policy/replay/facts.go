// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/model"
)

// fact is something that a record does not tell and a decision depends on.
type fact struct {
	phrase string
	set    func(q *model.Query)
	// gate is what the fact is about, or as which a lineage counts; nil for others.
	gate    *ir.Gate
	lineage bool
}

// facts puts into words what the record does not tell.
func (q *question) facts(labels, lineages, gates uint64, modified bool) (out []fact) {
	carried := q.carried()
	for i, l := range q.program.Labels {
		if bit := uint64(1) << i; labels&bit != 0 && carried&bit == 0 && !q.told.labels[l.Name] {
			out = append(out, fact{phrase: "the process carries " + l.Name, set: func(x *model.Query) { x.Labels |= bit }})
		}
	}
	for i, l := range q.program.Lineages {
		g := run(l)
		if bit := uint64(1) << i; lineages&bit != 0 && !excludes(q.told.ran, &g) {
			out = append(out, fact{phrase: "it or an ancestor has run " + l.String(), set: func(x *model.Query) { x.Lineage |= bit }, gate: &g, lineage: true})
		}
	}
	for i := range q.program.Gates {
		g := &q.program.Gates[i]
		if bit := uint64(1) << i; gates&bit != 0 && !excludes(q.told.gates, g) {
			out = append(out, fact{phrase: "`" + g.Text + "` holds", set: func(x *model.Query) { x.Gates |= bit }, gate: g})
		}
	}
	if modified && !q.told.written && !q.told.unwritten {
		out = append(out, fact{phrase: "the file was written inside the container", set: func(x *model.Query) { x.Modified = true }})
	}
	return out
}

// implied tells for each fact which others hold when it does, as bits.
func implied(facts []fact) []uint {
	out := make([]uint, len(facts))
	for i, f := range facts {
		for j, g := range facts {
			if i != j && f.gate != nil && g.gate != nil && f.lineage == g.lineage && model.Implies(f.gate, g.gate) {
				out[i] |= 1 << j
			}
		}
	}
	return out
}

// possible tells whether a set of facts has all that they imply.
func possible(implied []uint, set uint) bool {
	for i, others := range implied {
		if set>>i&1 == 1 && others&^set != 0 {
			return false
		}
	}
	return true
}

// cleared are the facts on labels that the operation would bring, were it not for the
// program which clears them and runs.
func (q *question) cleared(labels uint64) (out []fact) {
	if q.op == ir.Exec { // it ends that program
		return nil
	}
	for _, t := range q.program.Transforms {
		if bit := uint64(1) << t.Label; !t.Endorse && labels&bit != 0 {
			labels &^= bit
			out = append(out, fact{phrase: "the process runs what `" + t.Text + "` names", set: func(x *model.Query) { x.Cleared |= bit }})
		}
	}
	return out
}

func tested(terms []ir.Term) (labels uint64) {
	for _, t := range terms {
		if t.All&t.None == 0 {
			labels |= t.All | t.None
		}
	}
	return labels
}
