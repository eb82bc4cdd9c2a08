// SPDX-License-Identifier: Apache-2.0

package dfa

import (
	"fmt"
	"strings"
	"time"

	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/pattern"
)

// validate checks that a program is one that package check could have made.
// Programs also come from files; an index out of range must end here.
func validate(p *ir.Program) error {
	for _, l := range []struct {
		what          string
		figure, limit int
	}{
		{"labels", len(p.Labels), ir.MaxLabels},
		{"lineage conditions", len(p.Lineages), ir.MaxLineages},
		{"gates", len(p.Gates), ir.MaxGates},
		{"clauses", len(p.Clauses), ir.MaxClauses},
		{"defaults", len(p.Defaults), ir.MaxDefaults},
	} {
		if l.figure > l.limit {
			return &LimitError{What: l.what, Figure: l.figure, Limit: l.limit}
		}
	}
	if err := validSize(p); err != nil {
		return err
	}
	for i, s := range p.Sources {
		if s.Label < 0 || s.Label >= len(p.Labels) {
			return fmt.Errorf("source %d: label %d does not exist", i, s.Label)
		}
		if p.Labels[s.Label].Confines {
			return fmt.Errorf("source %d: label %d is the engine's to give", i, s.Label)
		}
		if err := validPattern(s.Pattern, s.Pattern.Kind); err != nil {
			return fmt.Errorf("source %d: %w", i, err)
		}
	}
	for i, l := range p.Lineages {
		if err := validPattern(l, ir.ExecProgram); err != nil {
			return fmt.Errorf("lineage condition %d: %w", i, err)
		}
	}
	for i, g := range p.Gates {
		if err := validGate(g); err != nil {
			return fmt.Errorf("gate %d: %w", i, err)
		}
	}
	if err := validRest(p); err != nil {
		return err
	}
	for i := range p.Clauses {
		if err := validClause(p, &p.Clauses[i]); err != nil {
			return fmt.Errorf("clause %d: %w", i, err)
		}
	}
	return nil
}

// validSize bounds what all globs take with their braces expanded, before any is.
func validSize(p *ir.Program) error {
	patterns, tokens := 0, 0
	known := map[string]bool{}
	args := func(list []string) {
		for _, a := range list {
			if !known[a] {
				known[a] = true
				tokens += pattern.Expanded(a)
			}
		}
	}
	for _, s := range p.Sources {
		patterns += pattern.Expanded(s.Pattern.Text)
	}
	for _, t := range p.Transforms {
		patterns += pattern.Expanded(t.Pattern.Text)
	}
	for _, l := range p.Lineages {
		patterns += pattern.Expanded(l.Text)
	}
	for _, x := range p.Protects {
		patterns += pattern.Expanded(x.Pattern.Text)
	}
	for i := range p.Gates {
		for _, e := range append(p.Gates[i].Since[:len(p.Gates[i].Since):len(p.Gates[i].Since)], p.Gates[i].After) {
			patterns += pattern.Expanded(e.Pattern.Text)
			args(e.Args)
		}
	}
	for i := range p.Clauses {
		patterns += pattern.Expanded(p.Clauses[i].Pattern.Text)
		for _, t := range p.Clauses[i].Unless.Targets {
			patterns += pattern.Expanded(t.Pattern.Text)
		}
		args(p.Clauses[i].Args)
	}
	if tokens > ir.MaxTokenBytes {
		return &LimitError{What: "bytes of argv tokens, with their braces expanded", Figure: tokens, Limit: ir.MaxTokenBytes}
	}
	if most := 2 * ir.MaxPatternBytes; patterns > most { // what the host protects is added to those of the documents
		return &LimitError{What: "bytes of patterns, with their braces expanded", Figure: patterns, Limit: most}
	}
	return nil
}

func validGate(g ir.Gate) error {
	if g.Exit < -1 || g.Exit > 255 || g.Exit >= 0 && g.After.Op != ir.Exec {
		return fmt.Errorf("exit status %d is out of range", g.Exit)
	}
	if err := validEvent(g.After); err != nil {
		return err
	}
	for _, e := range g.Since {
		if err := validEvent(e); err != nil {
			return err
		}
	}
	return nil
}

func validEvent(e ir.Event) error {
	switch e.Op {
	case ir.Exec, ir.Open, ir.Read, ir.Write, ir.Unlink:
	default:
		return fmt.Errorf("operation %d is no event of a gate", e.Op)
	}
	return validObject(e.Op, e.Pattern, e.Args)
}

func validObject(op ir.Op, p ir.Pattern, args []string) error {
	if err := validPattern(p, KindOf(op)); err != nil {
		return err
	}
	if len(args) > 0 && op != ir.Exec {
		return fmt.Errorf("operation %d has no argv", op)
	}
	for _, a := range args {
		if err := noNUL(a); err != nil {
			return err
		}
		if err := pattern.Arg(a); err != nil {
			return err
		}
	}
	return nil
}

func validClause(p *ir.Program, c *ir.Clause) error {
	if c.Op >= ir.NumOps {
		return fmt.Errorf("operation %d does not exist", c.Op)
	}
	if err := validEffect(c.Effect, c.Hold); err != nil {
		return err
	}
	if c.Rule < 0 || c.Rule >= len(p.Rules) {
		return fmt.Errorf("rule %d does not exist", c.Rule)
	}
	if err := validObject(c.Op, c.Pattern, c.Args); err != nil {
		return err
	}
	if err := validTerms(p, c.If); err != nil {
		return err
	}
	return validUnless(p, c)
}

func validEffect(e ir.Effect, hold time.Duration) error {
	if e > ir.Kill {
		return fmt.Errorf("effect %d does not exist", e)
	}
	if hold < 0 || hold > 0 && e != ir.Ask {
		return fmt.Errorf("effect %d cannot hold for %v", e, hold)
	}
	return nil
}

func validTerms(p *ir.Program, terms []ir.Term) error {
	known := ^uint64(0)
	if n := len(p.Labels); n < 64 {
		known = 1<<n - 1
	}
	for _, t := range terms {
		// A term that contradicts itself may name a label that isn't there.
		if (t.All|t.None)&^known != 0 && t.All&t.None == 0 {
			return fmt.Errorf("a condition names a label that does not exist")
		}
	}
	return nil
}

// validRest checks transforms, defaults and protected patterns.
func validRest(p *ir.Program) error {
	for i, t := range p.Transforms {
		if t.Label < 0 || t.Label >= len(p.Labels) {
			return fmt.Errorf("transform %d: label %d does not exist", i, t.Label)
		}
		if p.Labels[t.Label].Confines {
			return fmt.Errorf("transform %d: label %d is the engine's to give", i, t.Label)
		}
		if t.Endorse && !p.Labels[t.Label].Integrity {
			return fmt.Errorf("transform %d: label %d is endorsed and no integrity label", i, t.Label)
		}
		if err := validPattern(t.Pattern, ir.ExecProgram); err != nil {
			return fmt.Errorf("transform %d: %w", i, err)
		}
	}
	for i, d := range p.Defaults {
		if d.Op >= ir.NumOps {
			return fmt.Errorf("default %d: operation %d does not exist", i, d.Op)
		}
		if err := validEffect(d.Effect, d.Hold); err != nil {
			return fmt.Errorf("default %d: %w", i, err)
		}
	}
	for i, e := range p.Protects {
		if err := validPattern(e.Pattern, ir.File); err != nil {
			return fmt.Errorf("protected pattern %d: %w", i, err)
		}
		if err := validTerms(p, e.If); err != nil {
			return fmt.Errorf("protected pattern %d: %w", i, err)
		}
	}
	return nil
}

func validUnless(p *ir.Program, c *ir.Clause) error {
	if (c.Unless.Modified || c.Unless.NotModified) && KindOf(c.Op) == ir.Endpoint {
		return fmt.Errorf("operation %d has no file that could be modified", c.Op)
	}
	for _, t := range c.Unless.Targets {
		if err := validPattern(t.Pattern, KindOf(c.Op)); err != nil {
			return err
		}
	}
	for _, l := range c.Unless.Lineages {
		if l < 0 || l >= len(p.Lineages) {
			return fmt.Errorf("lineage condition %d does not exist", l)
		}
	}
	if n := len(c.Unless.Gates); n > ir.MaxClauseGates {
		return &LimitError{What: "after conditions on one clause", Figure: n, Limit: ir.MaxClauseGates}
	}
	for _, g := range c.Unless.Gates {
		if g < 0 || g >= len(p.Gates) {
			return fmt.Errorf("gate %d does not exist", g)
		}
	}
	return nil
}

// KindOf returns the kind of the objects of an operation.
func KindOf(op ir.Op) ir.Kind {
	switch op {
	case ir.Exec:
		return ir.ExecProgram
	case ir.Connect, ir.Bind, ir.Send, ir.Recv:
		return ir.Endpoint
	}
	return ir.File
}

func baseName(p ir.Pattern) bool {
	return p.Kind == ir.ExecProgram && !strings.Contains(p.Text, "/")
}

func validPattern(p ir.Pattern, kind ir.Kind) error {
	if p.Kind != kind || kind > ir.Endpoint {
		return fmt.Errorf("pattern %q is of the wrong kind", p.Text)
	}
	if p.Host && (p.Any || kind != ir.Endpoint) {
		return fmt.Errorf("pattern %q is no host name", p.Text)
	}
	if p.Any {
		if p.Text != "" {
			return fmt.Errorf("pattern any has the text %q", p.Text)
		}
		return nil
	}
	if err := noNUL(p.Text); err != nil {
		return err
	}
	var err error
	switch {
	case kind == ir.Endpoint:
		var e pattern.Endpoint
		if e, err = pattern.ParseEndpoint(p.Text, "/"); err == nil && e.Host != p.Host {
			err = fmt.Errorf("pattern %q is not marked for what it is", p.Text)
		}
	case baseName(p):
		_, err = pattern.Glob(p.Text, pattern.Name)
	default:
		_, err = pattern.Glob(p.Text, pattern.Path)
	}
	if err == nil && p.Text == "" {
		err = fmt.Errorf("pattern is empty")
	}
	return err
}

func noNUL(s string) error {
	if strings.IndexByte(s, 0) >= 0 {
		return fmt.Errorf("pattern %q has a NUL", s)
	}
	return nil
}
