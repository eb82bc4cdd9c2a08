// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/replay"
)

func replayCommand() *cli.Command {
	return &cli.Command{
		Name:      "replay",
		Usage:     "tell what would become of recorded operations under another policy",
		ArgsUsage: "LOG POLICY…",
		Description: "Decides again what is recorded in LOG, events as \"actplane events --json\" prints them, under\n" +
			"another policy: that of one file, or of several that hold together, outermost first. One of them\n" +
			"that is called - is standard input:\n\n" +
			"   sudo actplane events --json | actplane replay - actplane.yaml\n\n" +
			"A log has what was denied or noticed, so that this says nothing of what was allowed without a\n" +
			"word; \"actplane diff\" compares all of two policies. The exit status is 0 when every operation\n" +
			"would get the effect that it got, 1 when one would or might get another, 2 for a wrong command\n" +
			"line, a file that cannot be read, a policy with errors and a line of the log that is no event.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "scope", Usage: "only the events of `SCOPE`: a container's id, the beginning of one, or its name"},
			&cli.StringFlag{Name: "format", Value: "text", Usage: "`FORMAT` of the output: text or json"},
			&cli.StringFlag{Name: "workspace", Usage: "the `DIRECTORY` in the container where relative patterns begin, for files that name none"},
		},
		Action: replayLog,
	}
}

func replayLog(c *cli.Context) error {
	format, err := policyFlags(c)
	if err != nil {
		return err
	}
	if c.NArg() < 2 {
		return usageError("replay: name a log and a policy file")
	}
	if err := inputOnce(c); err != nil {
		return err
	}
	policies, err := compileOpen(c, c.Args().Tail())
	if err != nil {
		return trouble(err)
	}
	log, err := openInput(c, c.Args().First())
	if err != nil {
		return trouble(err)
	}
	defer log.Close()
	r := newReplayer(policies[0].Program, c.String("scope"))
	if err := r.read(log); err != nil {
		return &failure{exitUsage, fmt.Sprintf("read log: %v", err)}
	}
	for _, text := range r.unreadable {
		fmt.Fprintf(c.App.ErrWriter, "%s:%s\n", clean(inputName(c.Args().First())), clean(text))
	}
	var names []string
	for _, name := range c.Args().Tail() {
		names = append(names, inputName(name))
	}
	if format == "json" {
		err = writeJSON(c.App.Writer, r.report(inputName(c.Args().First()), names), "  ")
	} else {
		err = writePage(c, func(p *page) { p.replay(inputName(c.Args().First()), strings.Join(names, ", "), r) })
	}
	switch {
	case err != nil:
		return &failure{exitUsage, fmt.Sprintf("print outcomes: %v", err)}
	case r.records == 0 && r.scope != "":
		return &failure{exitUsage, fmt.Sprintf("replay: the log has no record of %q", r.scope)}
	case r.broken > 0:
		return &failure{exitUsage, fmt.Sprintf("%s of the log could not be read", count(r.broken, "line"))}
	case len(r.groups) > 0 || r.unshown > 0:
		return &failure{code: exitDiagnostics}
	}
	return nil
}

// replay writes the outcomes for people: those that are alike as a number.
func (p *page) replay(log, policies string, r *replayer) {
	p.text("", "%s under %s: %s%s. %s.", log, policies, count(r.records, "record"), r.span(), strings.Join(r.tally(), ", "))
	for _, s := range outcomeKinds() {
		first := true
		for _, g := range r.groups {
			if g.kind() != s.kind {
				continue
			}
			if first {
				p.blank()
				p.line("%s", s.heading)
			}
			first = false
			p.outcomes(g, len(r.scopes) > 1)
		}
	}
	p.blank()
	p.text("", "Only what was denied or noticed is in a log: of what was allowed without a word this says nothing.")
	if r.added > 0 || r.byAdded > 0 {
		p.text("", "Rules were added at run time (%s in the log), which no policy here has, and which hold for the one process or container only: %s that they decided %s replayed without them.",
			count(r.added, "time"), count(r.byAdded, "record"), map[bool]string{true: "is", false: "are"}[r.byAdded == 1])
	}
	if r.lost > 0 {
		p.text("", "Lost before they came into the log: %d.", r.lost)
	}
	if r.missing > 0 {
		p.text("", "Missing from the log, by the gaps between the numbers of its records: %d.", r.missing)
	}
	if r.unshown > 0 {
		p.text("", "Decided otherwise, counted and not shown, since there are too many different ones: %d.", r.unshown)
	}
}

// outcomeKind is a kind of outcomes with its heading.
type outcomeKind struct{ kind, heading string }

func outcomeKinds() []outcomeKind {
	return []outcomeKind{
		{"allowed", "Would be allowed"},
		{"denied", "Would be denied"},
		{"otherwise", "Would be decided in another way"},
		{"depends", "It depends on what is not recorded"},
		{"unclear", "Cannot be told"},
	}
}

// outcomes writes one operation with what it got and what it would get; of a log of
// several containers, in which.
func (p *page) outcomes(g *replayGroup, several bool) {
	p.blank()
	what := g.event.Operation + " " + word(g.event.Object)
	if g.event.Unrecorded > 0 {
		what = g.event.Operation + " (on what, is lost)"
	}
	if len(g.event.Args) > 1 {
		what += " " + words(g.event.Args[1:])
	}
	if g.event.Comm != "" {
		what += "     (by " + word(g.event.Comm)
		if len(g.event.Labels) > 0 {
			what += " carrying " + strings.Join(g.event.Labels, ", ")
		}
		what += ")"
	}
	if g.count > 1 {
		what = fmt.Sprintf("%d times ", g.count) + what
	}
	p.line("  %s", what)
	if several {
		p.hanging("      in   ", "%s", strings.Join(g.scopes, ", "))
	}
	p.hanging("      was  ", "%s", decided(g.event.Effect, g.event.Rule, g.event.Position, g.event.Clause))
	mark := "      now  "
	if g.outcome.Kind == replay.Unclear {
		p.hanging(mark, "unclear: %s", g.outcome.Why)
	}
	for i := range g.outcome.Answers {
		a := &g.outcome.Answers[i]
		text := "allowed"
		if statement, position := statement(&a.Decision); statement != "" {
			text = decided(a.Effect.String(), a.Rule, position, statement)
		} else if a.Effect != ir.Allow {
			text = a.Effect.String() + ": " + a.Why
		}
		if i > 0 {
			mark, text = "       or, ", ways(a)+": "+text
		}
		p.hanging(mark, "%s", text)
	}
}

// maxWays bounds how many ways to an answer are shown.
const maxWays = 8

// ways says what must hold for an answer of what is not recorded.
func ways(a *replay.Answer) string {
	text := "if " + strings.Join(a.When, " and ")
	for i, way := range a.Or {
		if i+1 == maxWays && len(a.Or) > maxWays {
			return fmt.Sprintf("%s, or in one of %d other ways (--format json has all)", text, len(a.Or)-i)
		}
		text += ", or if " + strings.Join(way, " and ")
	}
	return text
}

// decided says what was decided, by which statement.
func decided(effect, rule, position, statement string) string {
	if rule != "" {
		effect += " by rule " + rule
	}
	if statement == "" {
		return effect
	}
	if i := strings.LastIndexByte(position, ':'); i > 0 { // the line will do
		position = position[:i]
	}
	return effect + ", " + position + ": " + statement
}
