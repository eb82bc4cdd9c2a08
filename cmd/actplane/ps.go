// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/actplane/actplane/engine/api"
)

func psCommand() *cli.Command {
	return &cli.Command{
		Name:  "ps",
		Usage: "list what is under policy",
		Flags: []cli.Flag{
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
	response, err := client.List(c.Context, &api.ListRequest{})
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
	return writeScopes(c.App.Writer, scopes, time.Now())
}

// scopeLine is a scope as ps --json prints it.
type scopeLine struct {
	ID        string     `json:"id"`
	Name      string     `json:"name"`
	State     string     `json:"state"`
	Mode      string     `json:"mode"`
	Cgroup    string     `json:"cgroup"`
	Started   *time.Time `json:"started"`
	Layers    []string   `json:"layers"`
	Rules     uint32     `json:"rules"`
	Denied    uint64     `json:"denied"`
	Notified  uint64     `json:"notified"`
	Lost      uint64     `json:"lost"`
	Processes uint32     `json:"processes"`
	Degraded  []string   `json:"degraded"`
}

func lineOf(s *api.Scope) scopeLine {
	line := scopeLine{
		ID: s.Id, Name: s.Name, State: s.State, Mode: s.Mode, Cgroup: s.Cgroup,
		Layers: append([]string{}, s.Layers...), Rules: s.Rules,
		Denied: s.Denied, Notified: s.Notified, Lost: s.Lost, Processes: s.Processes,
		Degraded: append([]string{}, s.Degraded...),
	}
	if s.StartedUnixMs != 0 {
		started := time.UnixMilli(s.StartedUnixMs).UTC()
		line.Started = &started
	}
	return line
}

func writeScopes(w io.Writer, scopes []scopeLine, now time.Time) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SCOPE\tNAME\tSTATE\tAGE\tPROCESSES\tRULES\tDENIED\tNOTIFIED\tLOST\tPOLICY")
	for _, s := range scopes {
		age := "-"
		if s.Started != nil {
			age = now.Sub(*s.Started).Truncate(time.Second).String()
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%s\n", clean(short(s.ID)), clean(s.Name), s.State, age,
			s.Processes, s.Rules, s.Denied, s.Notified, s.Lost, clean(strings.Join(s.Layers, ", ")))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, s := range scopes {
		for _, sentence := range s.Degraded {
			fmt.Fprintf(w, "warning: %s: %s\n", clean(short(s.ID)), clean(sentence))
		}
	}
	return nil
}

// short is how Docker shows an id.
func short(id string) string {
	const length = 12
	if len(id) == 64 {
		return id[:length]
	}
	return id
}
