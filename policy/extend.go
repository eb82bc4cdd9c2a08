// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	"github.com/actplane/actplane/policy/check"
	"github.com/actplane/actplane/policy/diag"
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/syntax"
)

// Addition is a document that is added to a policy while it is in force: the innermost
// layer.
type Addition struct {
	Name string // as diagnostics name it
	// Text is a policy file, or the text of its policy alone.
	Text []byte
	// Confine: the rules hold for those processes alone to which the engine gives the label
	// that Extend makes. Else for all.
	Confine bool
}

// Extend adds a document to a program. What the program says stays as it is, under the
// numbers that it has; what is added holds beside it, and takes nothing from it: its allow
// clauses lift its own defaults, and its transforms are of its own labels. The policy's
// workspace is the document's where that names none. When the document has errors, err is
// a diag.List of all of them, warnings included.
//
// With Confine, the last label of the program that comes back is the one that the engine
// gives.
func Extend(base *ir.Program, a Addition) (*Policy, error) {
	if !layered(base) {
		return nil, errors.New("extend policy: the program names layers that it does not have")
	}
	f, diags := readAddition(a)
	if f == nil {
		return nil, diags.Tidy()
	}
	parts, list := parse(f.policies)
	diags = append(diags, list...)
	f.broken = f.broken || list.Errors() > 0
	if f.domain != "" || len(f.unbound) > 0 {
		diags = append(diags, f.text.New(diag.NotAtRunTime, diag.Span{}, "domains choose between rules when a container is made, and these come while it runs").
			WithHint("write the rules below `policy: |`"))
	}
	diags = append(diags, unfit(base, a, f, parts)...)
	diags = append(diags, washes(base, parts)...)
	layer := layerOf(Document{Name: a.Name, Text: a.Text}, f, Options{Workspace: base.Workspace}, parts)
	program, list := check.Extend(base, layer)
	if diags = append(diags, list...); diags.Errors() > 0 {
		return nil, diags.Tidy()
	}
	if a.Confine {
		if err := confine(program, len(base.Clauses), len(base.Protects)); err != nil {
			return nil, append(diags, f.text.New(diag.OverLimit, diag.Span{}, "%v", err)).Tidy()
		}
	}
	image, err := CompileProgram(program)
	if err != nil {
		return nil, uncompiled(layer, diags, program, err)
	}
	return &Policy{Program: program, Image: image, Warnings: diags.Tidy(), Workspaces: []Workspace{{Document: a.Name, Path: layer.Workspace}}}, nil
}

// layered tells whether all layers that a program names are there.
func layered(p *ir.Program) bool {
	out := func(layer int) bool { return layer < 0 || layer >= len(p.Layers) }
	return !slices.ContainsFunc(p.Labels, func(l ir.Label) bool { return out(l.Layer) }) &&
		!slices.ContainsFunc(p.Rules, func(r ir.Rule) bool { return out(r.Layer) }) &&
		!slices.ContainsFunc(p.Defaults, func(d ir.Default) bool { return out(d.Layer) }) &&
		!slices.ContainsFunc(p.Protects, func(e ir.Protect) bool { return out(e.Layer) })
}

// readAddition reads a policy file, or the text of a policy alone.
func readAddition(a Addition) (*file, diag.List) {
	if !bare(a.Text) {
		return readFile(a.Name, a.Text, 0)
	}
	r := &reader{text: diag.NewText(a.Name, a.Text)}
	if len(a.Text) > MaxFileSize {
		return nil, diag.List{diag.NewText(a.Name, nil).New(diag.TooLarge, diag.Span{}, "the text has more than %d bytes", MaxFileSize)}
	}
	if !r.characters(r.text) {
		return nil, r.diags
	}
	return &file{text: r.text, policies: []*diag.Text{r.text}}, nil
}

// bare tells whether a text begins as that of a policy, and not as a file.
func bare(text []byte) bool {
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		word, _, more := strings.Cut(line, " ")
		return more && syntax.Begins(word)
	}
	return false
}

// unfit reports what rules that are added cannot say.
func unfit(base *ir.Program, a Addition, f *file, parts []check.Part) (out diag.List) {
	refuse := func(text *diag.Text, at diag.Span, hint, format string, args ...any) {
		out = append(out, text.New(diag.NotAtRunTime, at, format, args...).WithHint("%s", hint))
	}
	if f.limits != (ir.Limits{}) {
		refuse(f.text, diag.Span{}, "leave limits out", "limits are set when a container is made, and this one runs")
	}
	if f.feedback != nil {
		refuse(f.text, f.feedback.At, "leave feedback out", "feedback is set when a container is made, and this one runs")
	}
	asks := slices.ContainsFunc(base.Defaults, func(d ir.Default) bool { return d.Effect == ir.Ask })
	for _, p := range parts {
		for _, d := range p.Tree.Defaults {
			if asks { // answers to it are known by its number among all defaults
				refuse(p.Text, d.Span, "write a clause: block exec any unless target \"git\"", "the policy has a default that asks, beside which no other can be added")
			}
			if a.Confine {
				refuse(p.Text, d.Span, "write a clause: block exec any unless target \"git\"", "a default holds for all processes, and these rules are for some")
			}
		}
		for _, r := range p.Tree.Rules {
			for _, c := range r.Clauses {
				if a.Confine && c.Effect != nil && c.Effect.Text == "allow" {
					refuse(p.Text, c.Span, "write what is excepted behind unless: block exec any unless target \"git\"", "an allow lifts a default, and these rules can have none")
				}
			}
		}
	}
	return out
}

// washes refuses labels that a flow would bring where the policy has endorsed ones: who
// gains a label by a flow loses those, and with them what the policy refuses because of
// them.
func washes(base *ir.Program, parts []check.Part) (out diag.List) {
	if !slices.ContainsFunc(base.Labels, func(l ir.Label) bool { return l.Integrity }) {
		return nil
	}
	for _, p := range parts {
		for _, s := range p.Tree.Sources {
			out = append(out, p.Text.New(diag.NotAtRunTime, s.Span, "the policy has an endorsed label, which a process would lose with the first label that comes from this source").
				WithHint("leave the source out, and name what the rules are about by patterns"))
		}
	}
	return out
}

// confine makes what was added to a program hold for those who carry a label of its own.
func confine(p *ir.Program, clauses, protects int) error {
	bit := len(p.Labels)
	if bit >= ir.MaxLabels {
		return errors.New("the policy has no label left by which the engine could tell for whom these rules are")
	}
	p.Labels = append(p.Labels, ir.Label{Name: p.Layers[len(p.Layers)-1].Name, Layer: len(p.Layers) - 1, Confines: true})
	for i := clauses; i < len(p.Clauses); i++ {
		p.Clauses[i].If = carrying(bit, p.Clauses[i].If)
	}
	for i := protects; i < len(p.Protects); i++ {
		p.Protects[i].If = carrying(bit, p.Protects[i].If)
	}
	return nil
}

func carrying(bit int, terms []ir.Term) []ir.Term {
	if len(terms) == 0 {
		return []ir.Term{{All: 1 << bit}}
	}
	out := make([]ir.Term, 0, len(terms))
	for _, t := range terms {
		out = append(out, ir.Term{All: t.All | 1<<bit, None: t.None})
	}
	return out
}

// uncompiled says why a program that was extended is too much for the engine.
func uncompiled(l check.Layer, diags diag.List, program *ir.Program, err error) error {
	layers := []check.Layer{l}
	if list := Unenforced(program); len(list) > 0 {
		return append(diags, located(layers, list)...).Tidy()
	}
	return append(diags, largest(layers).New(diag.OverLimit, diag.Span{}, "%v", err)).Tidy()
}

// Sum names the text of a document.
func Sum(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
