// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/actplane/actplane/policy"
	"github.com/actplane/actplane/policy/diag"
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/model"
)

// Options are what the files to be made depend on.
type Options struct {
	Workspace string // root of relative patterns; "" is Workspace
	Name      string // of the policy file, as its tests name it; "" is PolicyFile
}

// Made is a policy with its tests.
type Made struct {
	Policy, Tests []byte
	Rules, Cases  int
	// Unenforced lists what this version's engine cannot enforce of the policy.
	Unenforced diag.List
	LeftOut    []LeftOut
	// Together names templates of which each wants its own tests to pass: all have to.
	// A case of its own says so.
	Together []string
}

// LeftOut is a case of a template that does not hold where others, or another
// workspace, are there as well.
type LeftOut struct {
	Template, Case string
	Step           string // that would fail
	Want, Got      string // verdicts
}

// Make joins templates into one policy file and one of tests. All the tests that it
// returns pass: those of a template which another, stricter one contradicts are left
// out, and where both refuse, a test names the rule that decides.
func Make(list []Template, opts Options) (*Made, error) {
	if len(list) == 0 {
		return nil, errors.New("make a policy: no template is named")
	}
	if opts.Workspace == "" {
		opts.Workspace = Workspace
	}
	if opts.Name == "" {
		opts.Name = PolicyFile
	}
	if err := checkWorkspace(opts.Workspace); err != nil {
		return nil, err
	}
	out := &Made{Policy: []byte(join(list, opts))}
	compiled, err := policy.Compile([]policy.Document{{Name: opts.Name, Text: out.Policy, Layer: policy.Container}}, policy.Options{})
	if err != nil {
		return nil, fmt.Errorf("join the templates: %w", err)
	}
	out.Unenforced, out.Rules = compiled.Unenforced, len(compiled.Program.Rules)
	return out, out.test(compiled.Program, list, opts)
}

// checkWorkspace refuses what could not stand in a policy and in a trace as it is.
func checkWorkspace(dir string) error {
	switch {
	case !path.IsAbs(dir) || path.Clean(dir) != dir || dir == "/":
		return fmt.Errorf("a workspace is an absolute path below /, such as /workspace, not %q", dir)
	case strings.ContainsFunc(dir, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune("\"'#:{}[]\\&*?!|>%@`", r) }):
		return fmt.Errorf("the workspace %q has characters that a template cannot hold; write the policy with another and change it there", dir)
	}
	return nil
}

// join writes the policy file. One template stays as it is.
func join(list []Template, opts Options) string {
	text := list[0].file
	if len(list) > 1 {
		text = joined(list)
	}
	return strings.Replace(text, "\nworkspace: "+Workspace+"\n", "\nworkspace: "+opts.Workspace+"\n", 1)
}

func joined(list []Template) string {
	var b strings.Builder
	b.WriteString("# Made by `actplane init` from the templates that are named below, and yours to change.\n")
	b.WriteString("version: 1\nworkspace: " + Workspace + "\npolicy: |\n")
	var limits []string
	for i, t := range list {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "  # %s: %s\n  #\n%s", t.Name, t.Summary, t.text)
		for _, line := range t.limits {
			if !slices.Contains(limits, line) {
				limits = append(limits, line)
			}
		}
	}
	if len(limits) > 0 {
		b.WriteString("limits:\n" + strings.Join(limits, ""))
	}
	return b.String()
}

// test fills in the tests that hold.
func (m *Made) test(program *ir.Program, list []Template, opts Options) error {
	var b strings.Builder
	b.WriteString("# What the policy shall do; `actplane test` with the name of this file acts it out.\n")
	b.WriteString("policy: " + opts.Name + "\n")
	for _, t := range list {
		for _, c := range t.cases {
			text := strings.ReplaceAll(c.text, Workspace, opts.Workspace)
			text, failure, err := settle(program, text, t.rules())
			switch {
			case err != nil:
				return fmt.Errorf("case %s of the template %s: %w", c.name, t.Name, err)
			case failure != nil:
				failure.Template, failure.Case = t.Name, c.name
				m.LeftOut = append(m.LeftOut, *failure)
			default:
				m.Cases++
				b.WriteString("\n" + text)
			}
		}
	}
	text, names, err := together(program, list, opts.Workspace)
	if err != nil {
		return fmt.Errorf("join the tests: %w", err)
	}
	if m.Together = names; text != "" {
		m.Cases++
		b.WriteString("\n" + text)
	}
	m.Tests = []byte(b.String())
	if cases, err := model.ParseCases(opts.Name, b.String()); err != nil || cases[0].Path != opts.Name {
		return fmt.Errorf("the name %q cannot stand in a file of tests", opts.Name)
	}
	return nil
}

// settle acts out a case. Where it says that one of these rules refuses, and another
// one does so, the case that it returns names that one: what is refused leaves no
// trace, whoever refuses it.
func settle(program *ir.Program, text string, rules []string) (string, *LeftOut, error) {
	for {
		cases, err := model.ParseCases("the case", "policy: "+PolicyFile+"\n"+text)
		if err != nil {
			return "", nil, err
		}
		failure := model.Run(program, &cases[0])
		if failure == nil {
			return text, nil, nil
		}
		if failure.Err != nil {
			return "", nil, failure.Err
		}
		step, got := &cases[0].Steps[failure.Step], failure.Got
		if step.Rule == "" || got.Rule == "" || got.Effect.String() != step.Verdict || slices.Contains(rules, got.Rule) {
			return "", &LeftOut{Step: step.Text, Want: step.Want(), Got: got.String()}, nil
		}
		lines := strings.SplitAfter(text, "\n")
		line := &lines[step.Line-2] // the first line is the policy's
		i := strings.LastIndex(*line, step.Want())
		if i < 0 {
			return "", nil, fmt.Errorf("%q does not end with its verdict %q", *line, step.Want())
		}
		*line = (*line)[:i] + got.String() + (*line)[i+len(step.Want()):]
		text = strings.Join(lines, "")
	}
}
