// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/actplane/actplane/engine/api"
)

func stateCommand() *cli.Command {
	return &cli.Command{
		Name:      "state",
		Usage:     "list or reset what is kept of containers between two starts",
		ArgsUsage: "ls|reset",
		Description: "What a container's programs did to files (labels, changes) and which gates are open belongs to\n" +
			"the container, not to one start of it. It is saved when the container stops, and is in force\n" +
			"again before its program starts. It is kept until the container is removed, or for the time\n" +
			"that \"retention\" in /etc/actplane/config.yaml says (24h). Where it was lost, all files count as\n" +
			"changed and as carrying every label; \"reset\" takes that back.",
		Subcommands: []*cli.Command{
			{
				Name:  "ls",
				Usage: "list what is kept of containers that do not run",
				Flags: []cli.Flag{
					&cli.BoolFlag{Name: "wide", Aliases: []string{"w"}, Usage: "whole ids"},
					&cli.BoolFlag{Name: "json", Usage: "print a JSON array"},
					runDirFlag(),
				},
				Action:       listStates,
				OnUsageError: onUsageError,
			},
			{
				Name:      "reset",
				Usage:     "let a container forget what it did: its files count as untouched, its gates as closed",
				ArgsUsage: "CONTAINER",
				Description: "CONTAINER is an id, its beginning or a name; it may run. Do this when you know that what it\n" +
					"did to files does no harm: a file with a secret in it is then one like any other, until it is\n" +
					"read by a name that the policy gives a label.",
				Flags:        []cli.Flag{runDirFlag()},
				Action:       resetState,
				OnUsageError: onUsageError,
			},
		},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usageError("state: there is no %q; there are ls and reset", c.Args().First())
			}
			return cli.ShowSubcommandHelp(c)
		},
	}
}

// stateLine is a saved state as state ls --json prints it.
type stateLine struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Saved   time.Time `json:"saved"`
	Expires time.Time `json:"expires"`
	Files   uint64    `json:"files"`
	Gates   uint64    `json:"gates"`
	Bytes   uint64    `json:"bytes"`
	Lost    string    `json:"lost"`
}

func listStates(c *cli.Context) error {
	if c.Args().Present() {
		return usageError("state ls: unexpected argument %q", c.Args().First())
	}
	client, err := engine(c.Context, c)
	if err != nil {
		return err
	}
	defer client.Close()
	response, err := client.States(c.Context, &api.StatesRequest{})
	if err != nil {
		return engineError(err)
	}
	lines := []stateLine{}
	for _, s := range response.States {
		lines = append(lines, stateLine{
			ID: s.Id, Name: s.Name, Saved: time.UnixMilli(s.SavedUnixMs).UTC(), Expires: time.UnixMilli(s.ExpiresUnixMs).UTC(),
			Files: s.Files, Gates: s.Gates, Bytes: s.Size, Lost: s.Lost,
		})
	}
	if c.Bool("json") {
		return writeJSON(c.App.Writer, lines, "  ")
	}
	return writeStates(c.App.Writer, lines, c.Bool("wide"), time.Now())
}

func writeStates(w io.Writer, lines []stateLine, wide bool, now time.Time) error {
	name := short
	if wide {
		name = func(id string) string { return id }
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CONTAINER\tNAME\tSTOPPED\tKEPT FOR\tFILES\tOPEN GATES\tBYTES")
	for _, s := range lines {
		fmt.Fprintf(table, "%s\t%s\t%s ago\t%s\t%d\t%d\t%d\n", clean(name(s.ID)), clean(s.Name), now.Sub(s.Saved).Truncate(time.Second),
			s.Expires.Sub(now).Truncate(time.Second), s.Files, s.Gates, s.Bytes)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, s := range lines {
		if s.Lost == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "warning: %s: not all is known (%s): when it starts, files of which nothing is known count as modified and labelled\n",
			clean(name(s.ID)), clean(s.Lost)); err != nil {
			return err
		}
	}
	return nil
}

func resetState(c *cli.Context) error {
	if c.NArg() != 1 {
		return usageError("state reset: name one container")
	}
	client, err := engine(c.Context, c)
	if err != nil {
		return err
	}
	defer client.Close()
	response, err := client.Reset(c.Context, &api.ResetRequest{Scope: c.Args().First()})
	if err != nil {
		return engineError(err)
	}
	when := "when it starts again"
	if response.Running {
		when = "from now on"
	}
	fmt.Fprintf(c.App.Writer, "%s has forgotten what it did: %s its files count as untouched, and its gates are closed\n", clean(short(response.Id)), when)
	return nil
}
