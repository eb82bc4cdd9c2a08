// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"

	"github.com/actplane/actplane/policy/diag"
	"github.com/actplane/actplane/policy/ir"
)

// Extend adds one more layer, the innermost, to a program that was checked before. What
// the program has keeps its numbers, and stands before what the layer brings: labels,
// gates and lineages that are remembered under them mean the same in both. The layer can
// test the labels that there are. The program is of use only when the list has no errors.
func Extend(base *ir.Program, l Layer) (*ir.Program, diag.List) {
	c := newChecker(true)
	c.take(base)
	c.add(l)
	c.program.Layers[len(c.program.Layers)-1].Added = true
	c.run()
	return c.program, c.diags
}

// take begins with a program, whose documents are not there: names are all that is known
// of their places.
func (c *checker) take(base *ir.Program) {
	p := *base
	p.Layers, p.Labels, p.Lineages, p.Gates = slices.Clip(p.Layers), slices.Clip(p.Labels), slices.Clip(p.Lineages), slices.Clip(p.Gates)
	p.Sources, p.Transforms, p.Defaults = slices.Clip(p.Sources), slices.Clip(p.Transforms), slices.Clip(p.Defaults)
	p.Rules, p.Clauses, p.Protects = slices.Clip(p.Rules), slices.Clip(p.Clauses), slices.Clip(p.Protects)
	c.program, c.base = &p, len(p.Clauses)
	var places []place
	for i, l := range p.Layers {
		text := diag.NewText(l.Name, nil)
		d := &document{Layer: Layer{Name: l.Name, File: text, Broken: true}, index: i, labels: map[string]label{}}
		c.documents = append(c.documents, d)
		places = append(places, place{layer: &layer{document: d, Text: text}, broken: true})
	}
	for bit, l := range p.Labels {
		if !l.Confines { // nothing tests those by their names
			c.documents[l.Layer].labels[l.Name] = label{bit: bit, at: places[l.Layer]}
		}
		c.labelAt = append(c.labelAt, places[l.Layer])
	}
	for i, pattern := range p.Lineages {
		c.lineages[pattern] = i
	}
	for i, g := range p.Gates {
		c.gates[gateKey(g)] = i
	}
	// These are within the limits, and only counted.
	c.lineageAt, c.gateAt = make([]place, len(p.Lineages)), make([]place, len(p.Gates))
	c.clauseAt, c.defaultAt = make([]place, len(p.Clauses)), make([]place, len(p.Defaults))
	c.protectAt = make([]place, len(p.Protects))
}
