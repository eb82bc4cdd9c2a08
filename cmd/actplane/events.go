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
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/actplane/actplane/console"
	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/feedback"
	"github.com/actplane/actplane/internal/daemon"
)

func eventsCommand() *cli.Command {
	return &cli.Command{
		Name:      "events",
		Usage:     "show what was denied and noticed, and why",
		ArgsUsage: "[SCOPE]",
		Description: "SCOPE is a container's id, the beginning of one, or its name.\n" +
			"What is kept is shown first: the newest 4,096 events of a scope at most, in 4 MiB.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "go on with what happens from now on"},
			&cli.BoolFlag{Name: "json", Usage: "print a JSON object a line"},
			runDirFlag(),
		},
		Action: events,
	}
}

const (
	reconnectTime = time.Minute
	reconnectPoll = 200 * time.Millisecond
	queueLength   = 1 << 16
)

func events(c *cli.Context) error {
	if c.NArg() > 1 {
		return usageError("events: unexpected argument %q", c.Args().Get(1))
	}
	ctx, stop := signal.NotifyContext(c.Context, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	client, err := engine(ctx, c)
	if err != nil {
		return err
	}
	show := &eventPrinter{out: c.App.Writer, json: c.Bool("json"), seen: map[string]*api.Event{}}
	for {
		err = follow(ctx, client, c.Args().First(), c.Bool("follow"), show)
		client.Close()
		if err == nil || ctx.Err() != nil {
			return nil
		}
		if !c.Bool("follow") || !lostConnection(err) {
			return engineError(err)
		}
		fmt.Fprintln(c.App.ErrWriter, "actplane: the engine has stopped; waiting for it to come back (what runs stays under policy)")
		if client, err = reconnect(ctx, engineOptions(c)); err != nil {
			return environmentError("the engine did not come back: %v", err)
		}
	}
}

// lostConnection tells an engine that went from one that refused.
func lostConnection(err error) bool {
	s, ok := status.FromError(err)
	return !ok || s.Code() == codes.Unknown || s.Code() == codes.Unavailable || s.Code() == codes.Canceled
}

// reconnect starts the engine again if nothing else does.
func reconnect(ctx context.Context, options daemon.Options) (*daemon.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, reconnectTime)
	defer cancel()
	ticker := time.NewTicker(reconnectPoll)
	defer ticker.Stop()
	for {
		client, err := daemon.Ensure(ctx, options)
		if err == nil {
			return client, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-ticker.C:
		}
	}
}

// follow prints one stream. It reads ahead of a slow terminal: the protocol ends
// a stream that nobody reads for a second.
func follow(ctx context.Context, client *daemon.Client, scope string, on bool, show *eventPrinter) error {
	stream, err := client.Events(ctx, &api.EventsRequest{Scope: scope, Follow: on, History: true})
	if err != nil {
		return err
	}
	queue := make(chan *api.Event, queueLength)
	ended := make(chan error, 1)
	go func() {
		defer close(queue)
		var lost uint64
		for {
			event, err := stream.Recv()
			if err != nil {
				ended <- err
				return
			}
			event.Lost += lost
			select {
			case queue <- event:
				lost = 0
			default:
				lost = event.Lost + 1
			}
		}
	}()
	for event := range queue {
		if err := show.print(event); err != nil {
			return nil // nobody reads us any more
		}
	}
	if err := <-ended; !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// eventPrinter prints each event once, also over reconnections.
type eventPrinter struct {
	out  io.Writer
	json bool
	seen map[string]*api.Event // the last one printed, by scope
}

// eventLine is an event as events --json prints it.
type eventLine struct {
	Scope     string    `json:"scope"`
	Name      string    `json:"name"`
	Sequence  uint64    `json:"sequence"`
	Time      time.Time `json:"time"`
	Effect    string    `json:"effect"`
	Operation string    `json:"operation"`
	Object    string    `json:"object"`
	Args      []string  `json:"args"`
	ArgsCut   bool      `json:"args_cut"` // they are not all of argv
	Rule      string    `json:"rule"`
	Also      []string  `json:"also,omitempty"`     // other rules that match
	AlsoCut   bool      `json:"also_cut,omitempty"` // and more
	Because   string    `json:"because"`
	// RuleAdded: a program in the container added the rule, at run time.
	RuleAdded bool     `json:"rule_added"`
	Clause    string   `json:"clause"`
	Position  string   `json:"position"`
	PID       int64    `json:"pid"`
	Comm      string   `json:"comm"`
	Labels    []string `json:"labels"`
	// Chain tells of each label how the process came by it.
	Chain   []feedback.Origin `json:"chain,omitempty"`
	Parents []feedback.Parent `json:"parents,omitempty"` // above the process, nearest first
	Lost    uint64            `json:"lost"`
	Outcome string            `json:"outcome,omitempty"` // of what asks
	Request string            `json:"request,omitempty"`
	By      string            `json:"by,omitempty"` // who answered it
	// Reason is what that one said, and Warnings what approvers did.
	Reason   string   `json:"reason,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// Unrecorded: it stands for so many operations, of whose objects nothing is known.
	Unrecorded uint64 `json:"unrecorded"`
}

func (p *eventPrinter) print(e *api.Event) error {
	// A container that comes back after long begins at 1 again, later.
	if last := p.seen[e.Scope]; last != nil && e.Sequence <= last.Sequence && e.TimeUnixMs <= last.TimeUnixMs {
		return nil
	}
	p.seen[e.Scope] = e
	if p.json {
		return writeJSON(p.out, eventLine{
			Scope: e.Scope, Name: e.ScopeName, Sequence: e.Sequence, Time: time.UnixMilli(e.TimeUnixMs).UTC(),
			Effect: e.Effect, Operation: e.Operation, Object: e.Object,
			Args: append([]string{}, e.Args...), ArgsCut: e.ArgsCut,
			Rule: e.Rule, Because: e.Because, RuleAdded: e.RuleAdded, Clause: e.Clause, Position: e.ClausePos,
			PID: e.Pid, Comm: e.Comm, Labels: append([]string{}, e.Labels...), Lost: e.Lost,
			Outcome: e.Outcome, Request: e.Request, By: e.By, Reason: e.Reason, Warnings: e.Warnings,
			Unrecorded: e.Unrecorded, Also: e.Also, AlsoCut: e.AlsoCut, Chain: console.Chain(e), Parents: console.Parents(e),
		}, "")
	}
	_, err := fmt.Fprintln(p.out, describeEvent(e, time.Local))
	return err
}

// describeEvent is an event on one line.
func describeEvent(e *api.Event, zone *time.Location) string {
	var out strings.Builder
	name := console.ScopeTitle(e.Scope, e.ScopeName)
	fmt.Fprintf(&out, "%s  %s  %s  ", time.UnixMilli(e.TimeUnixMs).In(zone).Format(time.DateTime), clean(name), console.Happened(e))
	if e.Unrecorded > 0 {
		fmt.Fprintf(&out, "%s %d times (too many at once: on what, is lost)", e.Operation, e.Unrecorded)
	} else {
		fmt.Fprintf(&out, "%s %s", e.Operation, word(e.Object))
		if len(e.Args) > 1 {
			more := ""
			if e.ArgsCut {
				more = " …"
			}
			fmt.Fprintf(&out, " (%s%s)", words(e.Args), more)
		}
		fmt.Fprintf(&out, " by %s[%d]", word(e.Comm), e.Pid)
	}
	if len(e.Labels) > 0 {
		fmt.Fprintf(&out, " carrying %s", clean(strings.Join(e.Labels, ", ")))
	}
	for _, origin := range console.Chain(e) {
		fmt.Fprintf(&out, " (%s: %s)", clean(origin.Title()), clean(origin.Text(time.UnixMilli(e.TimeUnixMs), true)))
	}
	if e.Request != "" {
		fmt.Fprintf(&out, "; request %s", clean(e.Request))
		if e.By != "" {
			fmt.Fprintf(&out, ", answered by %s", clean(e.By))
		}
		if e.Reason != "" {
			fmt.Fprintf(&out, " (%s)", clean(e.Reason))
		}
		for _, warning := range e.Warnings {
			fmt.Fprintf(&out, ", warning of %s", clean(warning))
		}
	}
	if e.Rule != "" {
		fmt.Fprintf(&out, "; rule %s (%s)", console.RuleText(e.Rule, e.RuleAdded), clean(e.ClausePos))
	}
	if len(e.Also) > 0 {
		fmt.Fprintf(&out, ", also %s", clean(strings.Join(e.Also, ", ")))
		if e.AlsoCut {
			out.WriteString(" and others")
		}
	}
	if e.Because != "" {
		fmt.Fprintf(&out, ": %s", console.BecauseText(e.Because, e.RuleAdded))
	}
	if e.Lost > 0 {
		fmt.Fprintf(&out, " [%d earlier events were lost]", e.Lost)
	}
	return out.String()
}
