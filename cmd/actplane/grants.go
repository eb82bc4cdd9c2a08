// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/actplane/actplane/console"
	"github.com/actplane/actplane/engine/api"
)

func grantsCommand() *cli.Command {
	return &cli.Command{
		Name:      "grants",
		Usage:     "list the approvals and denials that hold, with what is left of them",
		ArgsUsage: "[SCOPE]",
		Description: "SCOPE is a container's id, the beginning of one, or its name. An answer holds until it is used up,\n" +
			"its time is over, or its container is gone; \"actplane revoke REQUEST\" ends it at once.",
		Flags:  []cli.Flag{formatFlag(), runDirFlag()},
		Action: grants,
	}
}

const revokeName = "revoke"

func revokeCommand() *cli.Command {
	return &cli.Command{
		Name:      revokeName,
		Usage:     "take an approval or a denial back, so that the operation asks again",
		ArgsUsage: "REQUEST",
		Description: "What begins from then on asks anew, and a connection that was opened with an approval carries no\n" +
			"more without another. What has begun before may still happen, and a file that is open stays so.\n" +
			"To refuse the operation from now on without asking, deny the request instead.",
		Flags:  []cli.Flag{formatFlag(), runDirFlag()},
		Action: revoke,
	}
}

// grantLine is an answer as grants --format json prints it: an object a line.
type grantLine struct {
	Request api.RequestDocument `json:"request"`
	Left    *uint32             `json:"left"`       // of a counted one
	Seconds *float64            `json:"seconds"`    // until its end; null: it has none but the container's
	Used    uint64              `json:"used_total"` // of all answers to this operation
}

func grants(c *cli.Context) error {
	if c.NArg() > 1 {
		return usageError("grants: unexpected argument %q", c.Args().Get(1))
	}
	format, err := formatOf(c)
	if err != nil {
		return err
	}
	client, err := engine(c.Context, c)
	if err != nil {
		return err
	}
	defer client.Close()
	response, err := client.ListGrants(c.Context, &api.ListGrantsRequest{Scope: c.Args().First()})
	if err != nil {
		return engineError(err)
	}
	if format == "json" {
		for _, g := range response.Grants {
			if err := writeJSON(c.App.Writer, grantLineOf(g), ""); err != nil {
				return err
			}
		}
		return nil
	}
	return writeGrants(c.App.Writer, response.Grants)
}

func grantLineOf(g *api.Grant) grantLine {
	line := grantLine{Request: g.Request.Document(), Used: g.Used}
	if g.Request.Answered.GetCount() > 0 {
		line.Left = &g.Left
	}
	if g.LeftMs > 0 {
		seconds := (time.Duration(g.LeftMs) * time.Millisecond).Seconds()
		line.Seconds = &seconds
	}
	return line
}

func writeGrants(w io.Writer, grants []*api.Grant) error {
	if len(grants) == 0 {
		_, err := fmt.Fprintln(w, "No approval and no denial is in force.")
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "REQUEST\tSCOPE\tANSWER\tLEFT\tUSED\tBY\tOPERATION")
	for _, g := range grants {
		r := g.Request
		what := "approved"
		if r.Answered.GetDenied() {
			what = "denied"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%s\t%s\n", clean(r.Id), word(console.ScopeTitle(r.Scope, r.ScopeName)), what, console.GrantLeft(g), g.Used,
			console.OperatorText(r.Answered.GetBy()), console.OperationText(r))
	}
	return table.Flush()
}

func revoke(c *cli.Context) error {
	if c.NArg() != 1 {
		return usageError("revoke: name one request; \"actplane grants\" lists those with an answer")
	}
	format, err := formatOf(c)
	if err != nil {
		return err
	}
	client, err := engine(c.Context, c)
	if err != nil {
		return err
	}
	defer client.Close()
	r, err := client.Revoke(c.Context, &api.RevokeRequest{Id: c.Args().First(), By: whoAnswers()})
	if err != nil {
		return engineError(err)
	}
	return writeRequest(c.App.Writer, r, format)
}
