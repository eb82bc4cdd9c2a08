// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/actplane/actplane/console"
	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/internal/daemon"
)

func requestsCommand() *cli.Command {
	return &cli.Command{
		Name:      "requests",
		Usage:     "show what waits for a person's approval",
		ArgsUsage: "[SCOPE]",
		Description: "SCOPE is a container's id, the beginning of one, or its name.\n" +
			"What programs in a container chose, such as names of files and arguments, is shown with escapes,\n" +
			"and in quotes where it is not one plain word. \"approve\" and \"deny\" answer a request.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "go on with what is asked and answered from now on"},
			&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "also what was answered, timed out or withdrawn"},
			formatFlag(),
			runDirFlag(),
		},
		Action: requests,
	}
}

func requests(c *cli.Context) error {
	if c.NArg() > 1 {
		return usageError("requests: unexpected argument %q", c.Args().Get(1))
	}
	format, err := formatOf(c)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(c.Context, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	client, err := engine(ctx, c)
	if err != nil {
		return err
	}
	show := &requestPrinter{out: c.App.Writer, json: format == "json", follow: c.Bool("follow"), seen: map[string]string{}}
	for {
		err = followRequests(ctx, client, c, show)
		client.Close()
		if err == nil || ctx.Err() != nil {
			return show.end()
		}
		if !c.Bool("follow") || !lostConnection(err) {
			return engineError(err)
		}
		fmt.Fprintln(c.App.ErrWriter, "actplane: the engine has stopped; waiting for it to come back (who is held stays so)")
		if client, err = reconnect(ctx, engineOptions(c)); err != nil {
			return environmentError("the engine did not come back: %v", err)
		}
	}
}

func followRequests(ctx context.Context, client *daemon.Client, c *cli.Context, show *requestPrinter) error {
	stream, err := client.Requests(ctx, &api.RequestsRequest{Scope: c.Args().First(), Follow: c.Bool("follow"), All: c.Bool("all")})
	if err != nil {
		return err
	}
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if show.print(r) != nil {
			return nil // nobody reads us any more
		}
	}
}

func formatFlag() cli.Flag {
	return &cli.StringFlag{Name: "format", Value: "text", Usage: "`FORMAT` of the output: text or json"}
}

func formatOf(c *cli.Context) (string, error) {
	format := c.String("format")
	if format != "text" && format != "json" {
		return "", usageError("%s: unknown format %q; it is text or json", c.Command.Name, format)
	}
	return format, nil
}

// requestPrinter prints each request once in each state, also over reconnections.
type requestPrinter struct {
	out          io.Writer
	json, follow bool
	printed      int
	seen         map[string]string
}

func (p *requestPrinter) print(r *api.Request) error {
	line := r.Document()
	key := fmt.Sprint(line.State, line.Deciding, len(line.Warnings))
	if line.Answer != nil {
		key += line.Answer.Time.String() + line.Answer.Over
	}
	if p.seen[r.Id] == key {
		return nil
	}
	p.seen[r.Id] = key
	p.printed++
	if p.json {
		return writeJSON(p.out, line, "")
	}
	if p.printed > 1 {
		fmt.Fprintln(p.out)
	}
	_, err := io.WriteString(p.out, describeRequest(r, time.Now(), time.Local))
	return err
}

func (p *requestPrinter) end() error {
	if p.printed > 0 || p.json || p.follow {
		return nil
	}
	_, err := fmt.Fprintln(p.out, "Nothing waits for an answer.")
	return err
}

// writeRequest prints a request that was changed.
func writeRequest(w io.Writer, r *api.Request, format string) error {
	if format == "json" {
		return writeJSON(w, r.Document(), "  ")
	}
	_, err := io.WriteString(w, describeRequest(r, time.Now(), time.Local))
	return err
}

// describeRequest is a request on some lines. Only the words at their beginnings and
// the policy's own stand outside of quotes.
func describeRequest(r *api.Request, now time.Time, zone *time.Location) string {
	var out strings.Builder
	name := console.ScopeTitle(r.Scope, r.ScopeName)
	fmt.Fprintf(&out, "%s  %s  %s\n", clean(r.Id), word(name), console.RequestState(r, now, zone))
	for _, f := range console.RequestFields(r, zone) {
		fmt.Fprintf(&out, "  %-9s %s\n", f.Key, f.Text)
	}
	return out.String()
}
