// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/actplane/actplane/console"
	"github.com/actplane/actplane/engine/api"
)

func psCommand() *cli.Command {
	return &cli.Command{
		Name:  "ps",
		Usage: "list what is under policy",
		Description: "Below the table stands what is not as it should be, and what was noticed about each policy\n" +
			"and container when it was started: three lines for each, or all of them with --wide.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "wide", Aliases: []string{"w"}, Usage: "whole ids, all warnings, whether the programs inside are told, and what each clause does on this host"},
			&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "also what was closed in the last hour"},
			&cli.BoolFlag{Name: "json", Usage: "print a JSON array"},
			runDirFlag(),
		},
		Action: ps,
	}
}

func ps(c *cli.Context) error {
	if c.Args().Present() {
		return usageError("ps: unexpected argument %q", c.Args().First())
	}
	client, err := engine(c.Context, c)
	if err != nil {
		return err
	}
	defer client.Close()
	response, err := client.List(c.Context, &api.ListRequest{Clauses: c.Bool("wide") || c.Bool("json")})
	if err != nil {
		return engineError(err)
	}
	scopes := []scopeLine{}
	for _, s := range response.Scopes {
		if s.State != "closed" || c.Bool("all") {
			scopes = append(scopes, lineOf(s))
		}
	}
	if c.Bool("json") {
		return writeJSON(c.App.Writer, scopes, "  ")
	}
	if err := writeScopes(c.App.Writer, scopes, c.Bool("wide"), time.Now()); err != nil {
		return err
	}
	for _, notice := range client.Status.Notices {
		if _, err := fmt.Fprintf(c.App.Writer, "warning: %s\n", clean(notice)); err != nil {
			return err
		}
	}
	return nil
}

// scopeLine is a scope as ps --json prints it.
type scopeLine struct {
	ID        string     `json:"id"`
	Name      string     `json:"name"`
	State     string     `json:"state"`
	Mode      string     `json:"mode"`
	Feedback  string     `json:"feedback"` // "socket", "socket,stderr" or "none"
	Cgroup    string     `json:"cgroup"`
	Started   *time.Time `json:"started"`
	Layers    []string   `json:"layers"`
	Rules     uint32     `json:"rules"`
	Denied    uint64     `json:"denied"`
	Notified  uint64     `json:"notified"`
	Lost      uint64     `json:"lost"`
	Processes uint32     `json:"processes"`
	Degraded  []string   `json:"degraded"`
	Warnings  []string   `json:"warnings"`
	Lock      *lockLine  `json:"lock"` // null when it is not locked
	// Clauses are those of the policy, with what they really do on this host.
	Clauses     []clauseLine `json:"clauses"`
	ClausesLeft uint32       `json:"clauses_left"` // that did not fit into the engine's answer
}

type clauseLine struct {
	Rule     string `json:"rule"`
	Clause   string `json:"clause"`
	Position string `json:"position"`
	Mode     string `json:"mode"`
}

func lineOf(s *api.Scope) scopeLine {
	line := scopeLine{
		ID: s.Id, Name: s.Name, State: s.State, Mode: s.Mode, Feedback: s.Feedback, Cgroup: s.Cgroup,
		Layers: append([]string{}, s.Layers...), Rules: s.Rules,
		Denied: s.Denied, Notified: s.Notified, Lost: s.Lost, Processes: s.Processes,
		Degraded: append([]string{}, s.Degraded...), Warnings: append([]string{}, s.Warnings...),
	}
	line.Lock = lockLineOf(s.Lock)
	line.Clauses, line.ClausesLeft = []clauseLine{}, s.ClausesLeft
	for _, c := range s.Clauses {
		line.Clauses = append(line.Clauses, clauseLine{c.Rule, c.Text, c.Position, c.Mode})
	}
	if s.StartedUnixMs != 0 {
		started := time.UnixMilli(s.StartedUnixMs).UTC()
		line.Started = &started
	}
	return line
}

// fewWarnings is how many of a scope are shown without --wide.
const fewWarnings = 3

func writeScopes(w io.Writer, scopes []scopeLine, wide bool, now time.Time) error {
	name, feedbackTitle := short, ""
	if wide {
		name, feedbackTitle = func(id string) string { return id }, "FEEDBACK\t"
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SCOPE\tNAME\tSTATE\tAGE\tPROCESSES\tRULES\tDENIED\tNOTIFIED\tLOST\tWARNINGS\t"+feedbackTitle+"POLICY")
	for _, s := range scopes {
		age := "-"
		if s.Started != nil {
			age = now.Sub(*s.Started).Truncate(time.Second).String()
		}
		feedback := ""
		if wide {
			feedback = s.Feedback + "\t"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%s%s\n", clean(name(s.ID)), clean(s.Name), s.State, age,
			s.Processes, s.Rules, s.Denied, s.Notified, s.Lost, len(s.Degraded)+len(s.Warnings), feedback, clean(strings.Join(s.Layers, ", ")))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, s := range scopes {
		sentences := slices.Concat(s.Degraded, s.Warnings)
		if n := len(sentences) - fewWarnings; n > 1 && !wide {
			sentences = append(sentences[:fewWarnings], fmt.Sprintf("%d more; \"actplane ps --wide\" shows them", n))
		}
		for _, sentence := range sentences {
			if _, err := fmt.Fprintf(w, "warning: %s: %s\n", clean(name(s.ID)), clean(sentence)); err != nil {
				return err
			}
		}
	}
	if wide {
		return writeClauses(w, scopes)
	}
	return nil
}

// writeClauses tells what each clause really does on this host.
func writeClauses(w io.Writer, scopes []scopeLine) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range scopes {
		if len(s.Clauses) == 0 {
			continue
		}
		fmt.Fprintf(table, "\nON THIS HOST\tRULE\tCLAUSE OF %s\n", clean(s.title()))
		for _, c := range s.Clauses {
			rule := c.Rule
			if rule == "" {
				rule = "-"
			}
			fmt.Fprintf(table, "%s\t%s\t%s (%s)\n", clean(c.Mode), clean(rule), clean(c.Clause), clean(c.Position))
		}
		if s.ClausesLeft > 0 {
			fmt.Fprintf(table, "%d more\t\t\n", s.ClausesLeft)
		}
	}
	return table.Flush()
}

func (s *scopeLine) title() string { return console.ScopeTitle(s.ID, s.Name) }

func short(id string) string { return console.Short(id) }
