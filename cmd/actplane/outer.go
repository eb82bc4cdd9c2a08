// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/actplane/actplane/policy"
	"github.com/actplane/actplane/policy/dfa"
	"github.com/actplane/actplane/policy/diag"
	"github.com/actplane/actplane/policy/ir"
)

// compileFiles compiles each of the command's files by itself, as compileOpen does.
func compileFiles(c *cli.Context) ([]*policy.Policy, error) {
	return compileOpen(c, slices.Collect(slices.Chunk(c.Args().Slice(), 1))...)
}

// compileOpen compiles policies, each of the files that are named for it: outermost
// first. What is wrong with any of them is printed; warnings are check's business. A
// label that only an outer policy can declare, one that is not here, is a label that a
// process has or has not: otherwise what asks for it would never match.
func compileOpen(c *cli.Context, names ...[]string) ([]*policy.Policy, error) {
	var policies [][]policy.Document
	var labels []string
	for _, files := range names {
		var documents []policy.Document
		for _, name := range files {
			text, err := readInput(c, name)
			if err != nil {
				return nil, err
			}
			documents = append(documents, policy.Document{Name: inputName(name), Text: text, Layer: policy.Container})
		}
		policies = append(policies, documents)
	}
	compiled, err := compileEach(c, policies, nil)
	if err != nil {
		return nil, err
	}
	for _, p := range compiled {
		labels = append(labels, undeclared(p.Warnings)...)
	}
	if len(labels) == 0 {
		return compiled, nil
	}
	slices.Sort(labels)
	return compileEach(c, policies, slices.Compact(labels))
}

func compileEach(c *cli.Context, policies [][]policy.Document, outer []string) (out []*policy.Policy, err error) {
	broken := false
	for _, documents := range policies {
		p, err := compileUnder(outer, documents, policy.Options{Workspace: c.String("workspace")})
		var diags diag.List
		switch {
		case errors.As(err, &diags):
			broken = true
			if err := diags.WriteText(c.App.ErrWriter); err != nil {
				return nil, environmentError("print diagnostics: %v", err)
			}
		case err != nil:
			return nil, environmentError("compile %q: %v", documents[0].Name, err)
		}
		out = append(out, p)
	}
	if broken {
		return nil, &failure{code: exitDiagnostics}
	}
	return out, nil
}

// compileUnder compiles documents below one that declares labels which nothing gives.
func compileUnder(labels []string, documents []policy.Document, opts policy.Options) (*policy.Policy, error) {
	if len(labels) == 0 {
		return policy.Compile(documents, opts)
	}
	var text strings.Builder
	text.WriteString("policy: |\n")
	for _, l := range labels {
		fmt.Fprintf(&text, "  source %s = file \"/%[1]s\"\n", l)
	}
	outer := policy.Document{Name: "an outer policy", Text: []byte(text.String()), Layer: policy.Host}
	p, err := policy.Compile(append([]policy.Document{outer}, documents...), opts)
	if err != nil {
		return nil, err
	}
	p.Program.Sources = slices.DeleteFunc(p.Program.Sources, func(s ir.Source) bool { return p.Program.Labels[s.Label].Layer == 0 })
	if p.Image, err = dfa.Compile(p.Program); err != nil {
		return nil, err
	}
	return p, nil
}

// undeclared lists the labels that the warnings of a policy say nothing produces.
func undeclared(warnings diag.List) (labels []string) {
	for _, d := range warnings {
		if line := []rune(d.Source); d.Code == diag.LabelNeverProduced && d.Col > 0 && d.Col-1+d.Length <= len(line) {
			labels = append(labels, string(line[d.Col-1:d.Col-1+d.Length]))
		}
	}
	return labels
}
