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
	"errors"
	"fmt"
	"path"
	"slices"

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
	// Above is how many lines of a larger file stand above the text, 0 for a file of its
	// own: positions are those of the larger file.
	Above int
}

// Options are what the documents don't say themselves.
type Options struct {
	// Workspace is the root of relative patterns in documents that name none.
	Workspace string
	// Protect lists absolute paths that nothing in the scope may change: the
	// policy files themselves.
	Protect []string
	// Enforce: the policy is to be enforced, so that what this version's engine
	// cannot do is an error.
	Enforce bool
	// DocumentFirst: the program's workspace is that of the outermost document which
	// names one, and Workspace where none does.
	DocumentFirst bool
}

// Policy is the result of a compilation.
type Policy struct {
	Program  *ir.Program
	Image    *dfa.Image
	Warnings diag.List
	// Unenforced lists, as errors, what this version's engine cannot enforce; it
	// is empty where Options.Enforce was set.
	Unenforced diag.List
	// Workspaces are the roots of the documents' relative patterns, one for each
	// document, outermost first.
	Workspaces []Workspace
}

// Workspace is where the relative patterns of a document begin.
type Workspace struct {
	Document string // its name
	Path     string // absolute
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
	var unbound [][]check.Part
	var diags diag.List
	for _, d := range docs {
		f, list := readFile(d.Name, d.Text, d.Above)
		diags = append(diags, list...)
		if f == nil {
			continue
		}
		bound, list := parse(f.policies)
		diags = append(diags, list...)
		f.broken = f.broken || list.Errors() > 0
		others, list := parse(f.unbound)
		diags = append(diags, list...)
		layers = append(layers, layerOf(d, f, opts, bound))
		unbound = append(unbound, others)
	}
	program, list := check.Check(layers, opts.Enforce)
	diags = append(diags, list...)
	if diags.Errors() == 0 {
		diags = append(diags, checkUnbound(layers, unbound)...)
	}
	if diags.Errors() > 0 {
		return nil, diags.Tidy()
	}
	program.Workspace = workspaceOf(layers, opts)
	protect(program, opts.Protect)
	image, err := dfa.Compile(program)
	if err != nil {
		return nil, limitDiagnostic(layers, diags, err)
	}
	diags = append(diags, idleClauses(layers, program, image, diags)...)
	unenforced := located(layers, append(Unenforced(program), tooLarge(image)...))
	if opts.Enforce && len(unenforced) > 0 {
		return nil, append(diags, unenforced...).Tidy()
	}
	compiled := &Policy{Program: program, Image: image, Warnings: diags.Tidy(), Unenforced: unenforced}
	for _, l := range layers {
		compiled.Workspaces = append(compiled.Workspaces, Workspace{Document: l.Name, Path: l.Workspace})
	}
	return compiled, nil
}

func parse(texts []*diag.Text) (parts []check.Part, diags diag.List) {
	for _, text := range texts {
		tree, list := syntax.Parse(text)
		diags = append(diags, list...)
		diags = append(diags, foldedComments(text, tree)...)
		parts = append(parts, check.Part{Text: text, Tree: tree})
	}
	return parts, diags
}

// foldedComments refuses comments that go on over a line end of the file: YAML has
// joined the lines, and what was meant to hold would be a comment.
func foldedComments(text *diag.Text, tree *syntax.File) diag.List {
	var out diag.List
	for _, c := range tree.Comments {
		if end := c.Span.End - 1; text.Pos(c.Span.Start).Line != text.Pos(end).Line {
			out = append(out, text.New(diag.FoldedComment, c.Span, "YAML has joined the lines of this text, so the comment takes in the lines that follow").
				WithHint("write `policy: |`, which keeps the lines"))
		}
	}
	return out
}

func layerOf(d Document, f *file, opts Options, parts []check.Part) check.Layer {
	l := check.Layer{
		Name: d.Name, SHA256: Sum(d.Text), Domain: f.domain,
		File: f.text, Parts: parts, Workspace: f.workspace,
		Protects: f.protects, Feedback: f.feedback, Limits: f.limits,
		Broken: f.broken,
	}
	if l.Workspace == "" {
		l.Workspace = opts.Workspace
	}
	if l.Workspace == "" {
		l.Workspace, l.Assumed = "/", true
	}
	return l
}

// checkUnbound reports what is wrong with the rules that the domains which hold
// don't bind, together with all other rules of their file: another domain may
// bind them. What is only too much together is not reported.
func checkUnbound(layers []check.Layer, unbound [][]check.Part) diag.List {
	all := slices.Clone(layers)
	any := false
	for i, parts := range unbound {
		all[i].Parts = slices.Concat(all[i].Parts, parts)
		any = any || len(parts) > 0
	}
	if !any {
		return nil
	}
	_, list := check.Check(all, false)
	return slices.DeleteFunc(list, func(d diag.Diagnostic) bool {
		return d.Code == diag.OverLimit || d.Code == diag.DuplicateRule || d.Code == diag.DuplicateDefault ||
			d.Code == diag.SourceOfEndorsed || d.Severity == diag.Warning
	})
}

// CompileProgram makes the image of a program that was stored or received, for
// an engine to enforce. It trusts nothing in it, and refuses what this version's
// engine cannot enforce.
func CompileProgram(p *ir.Program) (*dfa.Image, error) {
	if p == nil {
		return nil, errors.New("compile program: there is none")
	}
	if list := Unenforced(p); len(list) > 0 {
		return nil, fmt.Errorf("compile program: %w", list)
	}
	image, err := dfa.Compile(p)
	if err != nil {
		return nil, fmt.Errorf("compile program: %w", err)
	}
	if list := tooLarge(image); len(list) > 0 {
		return nil, fmt.Errorf("compile program: %s", list.First().Message)
	}
	return image, nil
}

// workspaceOf returns the program's workspace: the caller's or else that of the
// outermost document which names one.
func workspaceOf(layers []check.Layer, opts Options) string {
	if opts.Workspace != "" && !opts.DocumentFirst {
		return opts.Workspace
	}
	for _, l := range layers {
		if !l.Assumed {
			return l.Workspace
		}
	}
	return cmp.Or(opts.Workspace, "/")
}
