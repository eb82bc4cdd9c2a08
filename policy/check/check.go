// SPDX-License-Identifier: Apache-2.0

// Package check gives syntax trees their meaning: it resolves names, validates
// patterns, refuses what contradicts itself or is not built yet, and lowers all
// layers to one ir.Program.
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
	// Text is the policy text, with its place in the file.
	Text *diag.Text
	File *syntax.File
	// Workspace is the root of the document's relative patterns; Assumed tells
	// that neither the document nor the caller named one.
	Workspace string
	Assumed   bool
	Limits    ir.Limits
	// Broken tells that the file has errors outside the policy text.
	Broken bool
}

// Check lowers the layers, outermost first. The program is of use only when
// the list has no errors.
func Check(layers []Layer) (*ir.Program, diag.List) {
	c := &checker{
		program:  &ir.Program{},
		lineages: map[ir.Pattern]int{},
		gates:    map[string]int{},
	}
	for i := range layers {
		c.layers = append(c.layers, &layer{Layer: layers[i], index: i, labels: map[string]label{}})
		c.program.Layers = append(c.program.Layers, ir.Layer{Name: layers[i].Name, SHA256: layers[i].SHA256})
	}
	for _, check := range []func(*checker){
		(*checker).unsupported,
		(*checker).empty,
		(*checker).duplicateRules,
		(*checker).declareLabels,
		(*checker).lowerSources,
		(*checker).lowerRules,
		(*checker).repeatedClauses,
		(*checker).tableLimits,
	} {
		check(c)
	}
	c.program.Limits = mergeLimits(layers)
	return c.program, c.diags
}

type checker struct {
	layers  []*layer
	program *ir.Program
	diags   diag.List
	reports [2]int // by severity

	patternText int // bytes of all canonical patterns
	lineages    map[ir.Pattern]int
	gates       map[string]int // by everything that makes gates equal
	// Where each entry of the program's tables comes from.
	labelAt, lineageAt, gateAt, clauseAt []place
}

type layer struct {
	Layer
	index   int
	labels  map[string]label
	assumed bool // the assumed workspace has been reported
}

type label struct {
	bit int
	at  diag.Span
}

// place is a span in a layer's text.
type place struct {
	layer *layer
	span  diag.Span
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

// unsupported refuses whole declarations.
func (c *checker) unsupported() {
	for _, l := range c.layers {
		for _, t := range l.File.Transforms {
			c.notSupported(l, t.Verb.Span, t.Verb.Text)
		}
		for _, d := range l.File.Defaults {
			c.notSupported(l, diag.Span{Start: d.Span.Start, End: d.Effect.Span.Start}, "default")
		}
	}
}

func (c *checker) empty() {
	for _, l := range c.layers {
		f := l.File
		if !l.Broken && len(f.Rules) == 0 && len(f.Defaults) == 0 && l.Limits == (ir.Limits{}) {
			c.report(l.Text.New(diag.EmptyPolicy, diag.Span{}, "the policy has no rules").
				WithHint("begin one with `rule NAME:`"))
		}
	}
}

func (c *checker) duplicateRules() {
	for _, l := range c.layers {
		seen := map[string]diag.Span{}
		for _, r := range l.File.Rules {
			first, ok := seen[r.Name.Text]
			if ok {
				c.report(l.Text.New(diag.DuplicateRule, r.Name.Span, "rule %q is there twice", r.Name.Text).
					WithHint("the first is at %s; give one another name", l.Text.Where(first.Start)))
				continue
			}
			if r.Name.Text != "" {
				seen[r.Name.Text] = r.Name.Span
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
		k := key{clause.Rule, clause.Text}
		if first, ok := seen[k]; ok {
			c.report(at.layer.Text.New(diag.RepeatedClause, at.span, "rule %q has this clause already", c.program.Rules[clause.Rule].Name).
				WithHint("the first is at %s", first.layer.Text.Where(first.span.Start)))
			continue
		}
		seen[k] = at
	}
}
