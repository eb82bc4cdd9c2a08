// SPDX-License-Identifier: Apache-2.0

// Package policy is the front door of the compiler: it reads policy documents,
// reports what is wrong with them, and makes the program and the image that the
// engine enforces.
//
// A policy is compiled whole or refused; nothing in a document is ignored. The
// package and those below it know nothing of kernels and build anywhere.
package policy

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/actplane/actplane/policy/check"
	"github.com/actplane/actplane/policy/dfa"
	"github.com/actplane/actplane/policy/diag"
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/syntax"
)

// Layer tells who wrote a document. Outer layers come first, and inner ones can
// add to them but take nothing away.
type Layer int

// The layers, outermost first.
const (
	Host      Layer = iota // the host's floor
	Operator               // whoever starts the container: annotations
	Container              // what the container or its image brings
)

// Document is one policy text and where it came from.
type Document struct {
	Name  string // as diagnostics name it
	Text  []byte
	Layer Layer
}

// Options are what the documents don't say themselves.
type Options struct {
	// Workspace is the root of relative patterns in documents that name none.
	Workspace string
	// Protect lists absolute paths that nothing in the scope may change: the
	// policy files themselves.
	Protect []string
}

// Policy is the result of a compilation.
type Policy struct {
	Program  *ir.Program
	Image    *dfa.Image
	Warnings diag.List
}

// Compile makes one policy of the documents, outermost first. When they have
// errors, err is a diag.List of all of them, warnings included.
func Compile(docs []Document, opts Options) (*Policy, error) {
	if opts.Workspace != "" {
		opts.Workspace = path.Join("/", opts.Workspace)
	}
	docs = slices.Clone(docs)
	slices.SortStableFunc(docs, func(a, b Document) int { return cmp.Compare(a.Layer, b.Layer) })
	var layers []check.Layer
	var diags diag.List
	for _, d := range docs {
		f, list := readFile(d.Name, d.Text)
		diags = append(diags, list...)
		if f == nil {
			continue
		}
		broken := list.Errors() > 0
		tree, list := syntax.Parse(f.policy)
		diags = append(diags, list...)
		sum := sha256.Sum256(d.Text)
		l := check.Layer{
			Name: d.Name, SHA256: hex.EncodeToString(sum[:]),
			Text: f.policy, File: tree, Workspace: f.workspace, Limits: f.limits,
			Broken: broken,
		}
		if l.Workspace == "" {
			l.Workspace = opts.Workspace
		}
		if l.Workspace == "" {
			l.Workspace, l.Assumed = "/", true
		}
		layers = append(layers, l)
	}
	program, list := check.Check(layers)
	diags = append(diags, list...)
	if diags.Errors() > 0 {
		return nil, diags.Tidy()
	}
	program.Workspace = workspaceOf(layers, opts)
	protect(program, opts.Protect)
	image, err := dfa.Compile(program)
	if err != nil {
		return nil, limitDiagnostic(layers, diags, err)
	}
	return &Policy{Program: program, Image: image, Warnings: diags.Tidy()}, nil
}

// CompileProgram makes the image of a program that was stored or received, for
// an engine to enforce. It trusts nothing in it, and refuses what this version's
// engine cannot enforce.
func CompileProgram(p *ir.Program) (*dfa.Image, error) {
	if p == nil {
		return nil, errors.New("compile program: there is none")
	}
	if err := Enforceable(p); err != nil {
		return nil, fmt.Errorf("compile program: %w", err)
	}
	image, err := dfa.Compile(p)
	if err != nil {
		return nil, fmt.Errorf("compile program: %w", err)
	}
	return image, nil
}

// workspaceOf returns the program's workspace: the caller's or else that of the
// outermost document which names one.
func workspaceOf(layers []check.Layer, opts Options) string {
	if opts.Workspace != "" {
		return opts.Workspace
	}
	for _, l := range layers {
		if !l.Assumed {
			return l.Workspace
		}
	}
	return "/"
}

// limitDiagnostic turns a limit of the image into a diagnostic of the document
// with the most text: the last straw was somewhere in all of them together.
func limitDiagnostic(layers []check.Layer, diags diag.List, err error) error {
	var limit *dfa.LimitError
	if !errors.As(err, &limit) || len(layers) == 0 {
		return fmt.Errorf("compile policy: %w", err)
	}
	largest := slices.MaxFunc(layers, func(a, b check.Layer) int { return len(a.Text.Body) - len(b.Text.Body) })
	d := largest.Text.New(diag.OverLimit, diag.Span{}, "%v", limit)
	if strings.Contains(limit.What, "automaton") {
		d = d.WithHint("use fewer patterns with several wildcards")
	}
	return append(diags, d).Tidy()
}
