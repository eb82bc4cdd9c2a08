// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/actplane/actplane/policy"
	"github.com/actplane/actplane/policy/compare"
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/model"
)

func diffCommand() *cli.Command {
	return &cli.Command{
		Name:      "diff",
		Usage:     "show what two policies decide differently, with examples",
		ArgsUsage: "OLD NEW",
		Description: "Shows what NEW allows that OLD does not, the reverse, and where only the agent is told something\n" +
			"else, each with an example and with what decides it under either policy. It compares what they\n" +
			"mean, not their texts: all paths, programs, arguments and addresses, on the automata of both. A file\n" +
			"that is called - is standard input:\n\n" +
			"   git show main:actplane.yaml | actplane diff - actplane.yaml\n\n" +
			"The exit status is that of diff: 0 when both mean the same, 1 when they differ, 2 when that could\n" +
			"not be found out: a wrong command line, a file that cannot be read or has errors, or policies too\n" +
			"large to compare all of them.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "format", Value: "text", Usage: "`FORMAT` of the output: text or json"},
			&cli.StringFlag{Name: "workspace", Usage: "the `DIRECTORY` in the container where relative patterns begin, for files that name none"},
		},
		Action: diff,
	}
}

// trouble is a failure of commands whose status 1 says that something differs.
func trouble(err error) error {
	var f *failure
	if errors.As(err, &f) {
		return &failure{exitUsage, f.text}
	}
	return err
}

func diff(c *cli.Context) error {
	format, err := policyFlags(c)
	if err != nil {
		return err
	}
	if c.NArg() != 2 {
		return usageError("diff: name two policy files, the old one and the new one")
	}
	if err := inputOnce(c); err != nil {
		return err
	}
	policies, err := compileFiles(c)
	if err != nil {
		return trouble(err)
	}
	side := func(p *policy.Policy) compare.Policy { return compare.Policy{Program: p.Program, Image: p.Image} }
	result := compare.Compare(side(policies[0]), side(policies[1]))
	names := [2]string{inputName(c.Args().Get(0)), inputName(c.Args().Get(1))}
	if format == "json" {
		err = writeJSON(c.App.Writer, newDifferenceReport(names, result), "  ")
	} else {
		err = writePage(c, func(p *page) { p.differences(names, result) })
	}
	switch {
	case err != nil:
		return &failure{exitUsage, fmt.Sprintf("print differences: %v", err)}
	case !result.Same():
		return &failure{code: exitDiagnostics}
	case len(result.Missed) > 0:
		return &failure{code: exitUsage}
	}
	return nil
}

// differences writes a comparison for people.
func (p *page) differences(names [2]string, r *compare.Result) {
	switch {
	case !r.Same():
		p.line("%s", strings.Join(summary(names, r), ", ")+".")
	case len(r.Missed) == 0:
		p.line("%s and %s mean the same.", names[0], names[1])
	default:
		p.line("No difference between %s and %s was found.", names[0], names[1])
	}
	for direction, heading := range []string{
		compare.Allows:    names[1] + " allows what " + names[0] + " does not",
		compare.Denies:    names[1] + " denies what " + names[0] + " does not",
		compare.Otherwise: "Both allow it or both deny it, in another way",
		compare.Told:      "Both decide the same, and the agent is told otherwise",
	} {
		first := true
		for i := range r.Differences {
			if d := &r.Differences[i]; d.Direction == compare.Direction(direction) {
				if first {
					p.blank()
					p.line("%s", heading)
				}
				first = false
				p.difference(names, d)
			}
		}
	}
	p.labelChanges(names, r.Labels)
	p.list("Beside what is decided", r.Beside)
	p.list("Not all was compared", r.Missed)
}

// summary says how much there is of each kind.
func summary(names [2]string, r *compare.Result) (out []string) {
	var n [compare.Told + 1]int
	for _, d := range r.Differences {
		n[d.Direction]++
	}
	add := func(n int, format string) {
		if n > 0 {
			out = append(out, fmt.Sprintf(format, n))
		}
	}
	add(n[compare.Allows], "%d allowed now")
	add(n[compare.Denies], "%d denied now")
	add(n[compare.Otherwise], "%d decided in another way")
	add(n[compare.Told], "%d told otherwise")
	if k := len(r.Labels); k > 0 {
		out = append(out, count(k, "change")+" of who has a label")
	}
	if k := len(r.Beside); k > 0 {
		out = append(out, count(k, "other change"))
	}
	out[0] = names[0] + " and " + names[1] + ": " + out[0]
	return out
}

func (p *page) list(heading string, sentences []string) {
	if len(sentences) == 0 {
		return
	}
	p.blank()
	p.line("%s", heading)
	for _, s := range sentences {
		p.hanging("  - ", "%s", s)
	}
}

// difference writes the example, and below it what decides it under each policy.
func (p *page) difference(names [2]string, d *compare.Difference) {
	p.blank()
	for i, step := range d.Trace {
		if more := otherOperations(d, step); i == len(d.Trace)-1 && more != "" {
			step += "     (" + more + ")"
		}
		p.line("  %s", step)
	}
	for _, s := range d.Supposed {
		p.hanging("  if ", "%s", s)
	}
	if len(d.Supposed) > 0 {
		p.text("     ", "No way was found in which this comes about; there may be none.")
	}
	if d.Note != "" {
		p.text("  ", "%s", d.Note)
	}
	width := max(len([]rune(clean(names[0]))), len([]rune(clean(names[1]))))
	for side, decision := range []*model.Decision{&d.Old, &d.New} {
		text := decisionText(decision)
		if d.Direction == compare.Told {
			text = toldText(decision)
		}
		p.hanging(fmt.Sprintf("      %-*s  ", width, clean(names[side])), "%s", text)
	}
}

// otherOperations says for what else the same decisions differ.
func otherOperations(d *compare.Difference, step string) string {
	var more []string
	for _, op := range d.Ops {
		if words := strings.Fields(step); len(words) > 1 && op.String() != words[1] && !(op == ir.Exec && words[1] == "mapexec") {
			more = append(more, op.String())
		}
	}
	if len(more) == 0 {
		return ""
	}
	return "also: " + strings.Join(more, ", ")
}

// decisionText is a verdict with what decides it.
func decisionText(d *model.Decision) string {
	text, position := statement(d)
	verdict := verdictOf(d)
	switch {
	case text == "" && d.Effect == ir.Allow:
		return verdict
	case text == "":
		return verdict + ": " + d.Why
	case d.Rule != "":
		verdict += " by rule " + d.Rule
	}
	return fmt.Sprintf("%s, line %s: %s", verdict, lineOfPosition(position), text)
}

// toldText is a verdict with what the agent is told of it.
func toldText(d *model.Decision) string {
	_, position := statement(d)
	switch {
	case d.Rule == "":
		return decisionText(d)
	case d.Because == "":
		return fmt.Sprintf("%s by rule %s, line %s, without a reason", verdictOf(d), d.Rule, lineOfPosition(position))
	}
	return fmt.Sprintf("%s by rule %s, line %s: %q", verdictOf(d), d.Rule, lineOfPosition(position), d.Because)
}

func verdictOf(d *model.Decision) string {
	if d.Effect == ir.Allow {
		return "ok"
	}
	return d.Effect.String()
}

// statement is what decides, as written, and where it stands; "" for nothing.
func statement(d *model.Decision) (text, position string) {
	switch {
	case d.Clause != nil:
		return d.Clause.Text, d.Clause.Pos
	case d.Default != nil:
		return d.Default.Text, d.Default.Pos
	case d.Protect != nil:
		return "protect: " + d.Protect.Text, d.Protect.Pos
	}
	return "", ""
}

// labelChanges writes what gives or takes labels under one policy only.
func (p *page) labelChanges(names [2]string, list []compare.LabelChange) {
	if len(list) == 0 {
		return
	}
	p.blank()
	p.line("Who has a label")
	for _, l := range list {
		name := names[0]
		if l.New {
			name = names[1]
		}
		p.hanging("  - ", "Only under %s, `%s` %s %s.", name, strings.Join(l.Trace, "`, then `"), l.Verb, l.Label)
	}
}

// differenceReport is a comparison as JSON has it.
type differenceReport struct {
	Old         string            `json:"old"`
	New         string            `json:"new"`
	Same        bool              `json:"same"`
	Complete    bool              `json:"complete"`
	Differences []differenceLine  `json:"differences"`
	Labels      []labelDifference `json:"labels"`
	Beside      []string          `json:"beside"`
	Missed      []string          `json:"missed"`
}

type differenceLine struct {
	Direction  string       `json:"direction"` // allows, denies, otherwise or told
	Operations []string     `json:"operations"`
	Trace      []string     `json:"trace"`
	Supposed   []string     `json:"supposed"`
	Note       string       `json:"note"`
	Old        decisionLine `json:"old"`
	New        decisionLine `json:"new"`
}

// decisionLine is a decision as JSON has it.
type decisionLine struct {
	Verdict   string `json:"verdict"` // ok, notify, ask, block or kill
	Rule      string `json:"rule"`
	Because   string `json:"because"`
	Statement string `json:"statement"` // that decides, as written; "" if none does
	Position  string `json:"position"`
}

type labelDifference struct {
	Label string   `json:"label"`
	Verb  string   `json:"verb"` // gives, takes or endorses
	Trace []string `json:"trace"`
	Under string   `json:"under"` // old or new: under that policy alone
}

func newDifferenceReport(names [2]string, r *compare.Result) *differenceReport {
	out := &differenceReport{
		Old: names[0], New: names[1], Same: r.Same() && len(r.Missed) == 0, Complete: len(r.Missed) == 0, Differences: []differenceLine{},
		Labels: []labelDifference{}, Beside: append([]string{}, r.Beside...), Missed: append([]string{}, r.Missed...),
	}
	for i := range r.Differences {
		d := &r.Differences[i]
		line := differenceLine{
			Direction: [...]string{"allows", "denies", "otherwise", "told"}[d.Direction], Operations: []string{},
			Trace: d.Trace, Supposed: append([]string{}, d.Supposed...), Note: d.Note, Old: newDecisionLine(&d.Old), New: newDecisionLine(&d.New),
		}
		for _, op := range d.Ops {
			line.Operations = append(line.Operations, op.String())
		}
		out.Differences = append(out.Differences, line)
	}
	for _, l := range r.Labels {
		out.Labels = append(out.Labels, labelDifference{l.Label, l.Verb, l.Trace, map[bool]string{true: "new", false: "old"}[l.New]})
	}
	return out
}

func newDecisionLine(d *model.Decision) decisionLine {
	text, position := statement(d)
	return decisionLine{verdictOf(d), d.Rule, d.Because, text, position}
}
