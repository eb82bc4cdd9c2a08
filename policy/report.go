// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/actplane/actplane/policy/check"
	"github.com/actplane/actplane/policy/dfa"
	"github.com/actplane/actplane/policy/diag"
	"github.com/actplane/actplane/policy/ir"
)

// limitDiagnostic turns a limit of the image into a diagnostic of the document
// with the most text: the last straw was somewhere in all of them together.
func limitDiagnostic(layers []check.Layer, diags diag.List, err error) error {
	var limit *dfa.LimitError
	if !errors.As(err, &limit) || len(layers) == 0 {
		return fmt.Errorf("compile policy: %w", err)
	}
	d := largest(layers).New(diag.OverLimit, diag.Span{}, "%v", limit)
	if strings.Contains(limit.What, "automaton") {
		d = d.WithHint(`use fewer patterns with several wildcards; "**/{a,b}/**" is one, and so are lines of one rule that only differ in their patterns`)
	}
	return append(diags, d).Tidy()
}

// largest returns the text that most of a policy stands in.
func largest(layers []check.Layer) *diag.Text {
	l := slices.MaxFunc(layers, func(a, b check.Layer) int { return len(a.File.Body) - len(b.File.Body) })
	if len(l.Parts) > 0 {
		return l.Parts[0].Text
	}
	return l.File
}

// idleClauses warns of clauses that no object can match, unless that has been
// said of their line.
func idleClauses(layers []check.Layer, p *ir.Program, image *dfa.Image, said diag.List) diag.List {
	var out diag.List
	for _, i := range image.Idle {
		clause := &p.Clauses[i]
		file, first, _ := splitPos(clause.Pos)
		end := math.MaxInt
		if i+1 < len(p.Clauses) {
			if next, line, _ := splitPos(p.Clauses[i+1].Pos); next == file {
				end = line
			}
		}
		known := func(d diag.Diagnostic) bool {
			return d.Code == diag.ClauseNeverMatches && d.File == file && d.Line >= first && (d.Line < end || d.Line == first)
		}
		if slices.ContainsFunc(said, known) {
			continue
		}
		d := diag.Diagnostic{Code: diag.ClauseNeverMatches, Severity: diag.Warning, Length: 1, Source: clause.Text}
		d.Message = "the target conditions hold for all that the pattern matches, so the clause never matches"
		d.File, d.Line, d.Col = splitPos(clause.Pos)
		d.Length = max(1, len([]rune(clause.Text)))
		out = append(out, d)
	}
	return located(layers, out)
}

// located gives diagnostics about a program the source lines of the documents
// that it was made of.
func located(layers []check.Layer, list diag.List) diag.List {
	for i, d := range list {
		if d.File == "" && len(layers) > 0 {
			list[i] = largest(layers).New(d.Code, diag.Span{}, "%s", d.Message).WithHint("%s", d.Hint)
			continue
		}
		for _, l := range layers {
			if l.Name != d.File || d.Line <= l.File.Above() || d.Line > l.File.Above()+l.File.Lines() {
				continue
			}
			at := l.File.Offset(diag.Pos{Line: d.Line - l.File.Above(), Col: d.Col})
			there := l.File.New(d.Code, diag.Span{Start: at, End: at + d.Length}, "%s", d.Message).WithHint("%s", d.Hint)
			there.Severity = d.Severity
			list[i] = there
			break
		}
	}
	return list
}
