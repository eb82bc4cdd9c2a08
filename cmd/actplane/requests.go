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
	line := requestLineOf(r)
	key := line.State
	if line.Answer != nil {
		key += line.Answer.Time.String()
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

// requestLine is a request as --format json prints it.
type requestLine struct {
	ID        string      `json:"id"`
	Scope     string      `json:"scope"`
	Name      string      `json:"name"`
	State     string      `json:"state"`
	Opened    time.Time   `json:"opened"`
	Held      bool        `json:"held"`
	Until     *time.Time  `json:"until"` // when a held one is refused
	Operation string      `json:"operation"`
	Object    string      `json:"object"`
	Args      []string    `json:"args"`
	ArgsCut   bool        `json:"args_cut"`
	Mapped    bool        `json:"mapped"`
	Rule      string      `json:"rule"`
	Because   string      `json:"because"`
	Clause    string      `json:"clause"`
	Position  string      `json:"position"`
	UID       uint32      `json:"uid"`
	PID       int64       `json:"pid"`
	Comm      string      `json:"comm"`
	Labels    []string    `json:"labels"`
	Answer    *answerLine `json:"answer"`
}

type answerLine struct {
	Denied        bool       `json:"denied"`
	Count         uint32     `json:"count"`
	Until         *time.Time `json:"until"`
	ScopeLifetime bool       `json:"scope_lifetime"`
	Because       string     `json:"because"`
	UID           uint32     `json:"uid"`
	Name          string     `json:"name"`
	Via           string     `json:"via"`
	Time          time.Time  `json:"time"`
	Used          uint64     `json:"used"`
}

func requestLineOf(r *api.Request) requestLine {
	line := requestLine{
		ID: r.Id, Scope: r.Scope, Name: r.ScopeName, State: r.State, Opened: time.UnixMilli(r.OpenedUnixMs).UTC(),
		Held: r.Held, Until: instant(r.UntilUnixMs), Operation: r.Operation, Object: string(r.Object),
		Args: texts(r.Args), ArgsCut: r.ArgsCut, Mapped: r.Mapped,
		Rule: r.Rule, Because: r.Because, Clause: r.Clause, Position: r.ClausePos,
		UID: r.Uid, PID: r.Pid, Comm: string(r.Comm), Labels: append([]string{}, r.Labels...),
	}
	if a := r.Answered; a != nil {
		line.Answer = &answerLine{
			Denied: a.Denied, Count: a.Count, Until: instant(a.UntilUnixMs), ScopeLifetime: a.ScopeLifetime, Because: a.Because,
			UID: a.By.GetUid(), Name: a.By.GetName(), Via: a.By.GetVia(), Time: time.UnixMilli(a.TimeUnixMs).UTC(), Used: a.Used,
		}
	}
	return line
}

func texts(list [][]byte) []string {
	out := make([]string, len(list))
	for i, text := range list {
		out[i] = string(text)
	}
	return out
}

func instant(ms int64) *time.Time {
	if ms == 0 {
		return nil
	}
	t := time.UnixMilli(ms).UTC()
	return &t
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
