// SPDX-License-Identifier: Apache-2.0

// Package check gives syntax trees their meaning: it resolves names, validates
// patterns, refuses what contradicts itself, and lowers all layers to one
// ir.Program.
//
// The checks are an ordered list; each reports all it finds, and a program
// comes out only when none reported an error.
package check

import (
	"github.com/actplane/actplane/policy/diag"
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/syntax"
)

// Layer is one policy document, parsed.
type Layer struct {
	Name   string
	SHA256 string
	// Domain is the domain that holds, whose rules Parts are.
	Domain string
	// File is the whole document. Parts are its policy texts: one, or one for
	// each rule of the domain.
	File  *diag.Text
	Parts []Part
	// Workspace is the root of the document's relative patterns; Assumed tells
	// that neither the document nor the caller named one.
	Workspace string
	Assumed   bool
	Protects  []Protect
	Feedback  *Feedback // nil: the document says nothing about it
	Limits    ir.Limits
	// Broken tells that the file has errors outside the policy text.
	Broken bool
}

// Part is one policy text, with its place in the file.
type Part struct {
	Text *diag.Text
	Tree *syntax.File
}

// Protect is an entry of `protect:`.
type Protect struct {
	Pattern  syntax.Pattern // in the document's File
	If       syntax.Expr    // nil: always
	CondText *diag.Text     // where If stands
}

// Feedback is `feedback:`, as far as it has a meaning.
type Feedback struct {
	Stderr bool
	At     diag.Span // in the document's File
}

// Check lowers the layers, outermost first. The program is of use only when
// the list has no errors. All tells that no other layer will be added: then a label
// that none of them declares is an error.
func Check(layers []Layer, all bool) (*ir.Program, diag.List) {
	c := newChecker(all)
	for i := range layers {
		c.add(layers[i])
	}
	c.run()
	c.program.Limits = mergeLimits(layers)
	return c.program, c.diags
}

func newChecker(all bool) *checker {
	return &checker{
		tokens:   map[string]bool{},
		all:      all,
		program:  &ir.Program{},
		lineages: map[ir.Pattern]int{},
		gates:    map[string]int{},
	}
}

// add takes in the next layer inwards.
func (c *checker) add(l Layer) {
	d := &document{Layer: l, index: len(c.documents), labels: map[string]label{}}
	c.documents = append(c.documents, d)
	for _, p := range d.Parts {
		c.layers = append(c.layers, &layer{document: d, Text: p.Text, Tree: p.Tree})
	}
	c.program.Layers = append(c.program.Layers, ir.Layer{Name: d.Name, SHA256: d.SHA256, Domain: d.Domain})
}

// run checks and lowers what was added.
func (c *checker) run() {
	for _, check := range []func(*checker){
		(*checker).empty,
		(*checker).duplicateRules,
		(*checker).declareLabels,
		(*checker).lowerSources,
		(*checker).lowerTransforms,
		(*checker).lowerDefaults,
		(*checker).lowerRules,
		(*checker).lowerProtects,
		(*checker).repeatedClauses,
		(*checker).allowsNothing,
		(*checker).halfNetworks,
		(*checker).tableLimits,
		(*checker).feedback,
	} {
		check(c)
	}
}

type checker struct {
	all       bool
	base      int // clauses of the program that is extended
	documents []*document
	layers    []*layer // the texts of all documents
	program   *ir.Program
	diags     diag.List
	reports   [2]int // by severity

	regexps *regexps // made when they are needed

	patternText int             // bytes of all patterns
	tokenText   int             // bytes of all different tokens
	tokens      map[string]bool // those that are valid
	lineages    map[ir.Pattern]int
	gates       map[string]int // by everything that makes gates equal
	// Where each entry of the program's tables comes from.
	labelAt, lineageAt, gateAt, clauseAt, defaultAt, protectAt []place
}

// document is a layer of the language.
type document struct {
	Layer
	index   int
	labels  map[string]label
	assumed bool // the assumed workspace has been reported
}

// layer is one text of a document.
type layer struct {
	*document
	Text *diag.Text
	Tree *syntax.File
}

type label struct {
	bit int
	at  place
}

// place is a span in a text.
type place struct {
	layer  *layer
	span   diag.Span
	broken bool // what stands there could not be read to its end
}

func (p place) String() string {
	if p.layer.Broken && len(p.layer.Text.Body) == 0 { // see take
		return p.layer.Name
	}
	return p.layer.Text.Where(p.span.Start)
}

// maxReports bounds the errors and the warnings of a policy, each by itself.
const maxReports = 1000

func (c *checker) report(d diag.Diagnostic) {
	if c.reports[d.Severity]++; c.reports[d.Severity] <= maxReports {
		c.diags = append(c.diags, d)
	}
}

// notSupported refuses by name what the language has and this version doesn't.
func (c *checker) notSupported(l *layer, at diag.Span, what string) {
	c.report(l.Text.New(diag.NotSupported, at, "not supported by this version: %s", what))
}

func (c *checker) empty() {
	for _, d := range c.documents {
		if d.Broken || len(d.Protects) > 0 || d.Limits != (ir.Limits{}) || d.Feedback != nil {
			continue
		}
		said := 0
		for _, p := range d.Parts {
			said += len(p.Tree.Rules) + len(p.Tree.Defaults)
		}
		if said > 0 {
			continue
		}
		text := d.File
		if len(d.Parts) > 0 {
			text = d.Parts[0].Text
		}
		c.report(text.New(diag.EmptyPolicy, diag.Span{}, "the policy has no rules").
			WithHint("begin one with `rule NAME:`"))
	}
}

func (c *checker) duplicateRules() {
	type key struct {
		document int
		name     string
	}
	seen := map[key]place{}
	for _, l := range c.layers {
		for _, r := range l.Tree.Rules {
			k := key{l.index, r.Name.Text}
			if first, ok := seen[k]; ok {
				c.report(l.Text.New(diag.DuplicateRule, r.Name.Span, "rule %q is there twice", r.Name.Text).
					WithHint("the first is at %s; give one another name", first))
				continue
			}
			if r.Name.Text != "" {
				seen[k] = place{layer: l, span: r.Name.Span}
			}
		}
	}
}

// repeatedClauses warns of clauses that are there twice in one rule.
func (c *checker) repeatedClauses() {
	type key struct {
		rule int
		text string
	}
	seen := map[key]place{}
	for i, clause := range c.program.Clauses {
		at := c.clauseAt[i]
		if i < c.base || at.broken {
			continue
		}
		k := key{clause.Rule, clause.Text}
		if first, ok := seen[k]; ok {
			c.report(at.layer.Text.New(diag.RepeatedClause, at.span, "rule %q has this clause already", c.program.Rules[clause.Rule].Name).
				WithHint("the first is at %s", first))
			continue
		}
		seen[k] = at
	}
}
