// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"time"

	"github.com/actplane/actplane/feedback"
)

// followWait is how long one request of feedback --follow waits.
const followWait = 25 * time.Second

func (g guest) feedback(args []string) int {
	flags := flag.NewFlagSet("feedback", flag.ContinueOnError)
	all := flags.Bool("all", false, "")
	asJSON := flags.Bool("json", false, "")
	follow := flags.Bool("follow", false, "")
	if code, ok := g.parse(flags, args); !ok {
		return code
	}
	client := feedback.NewClient(g.socket)
	query := feedback.Query{All: *all, Depth: feedback.TreeDepth(g.proc, g.pid)}
	printer := &printer{guest: g, json: *asJSON}
	others := 0
	for {
		page, err := g.ask(client, query)
		if err == nil {
			err = printer.page(page)
		}
		if err != nil {
			return g.fail(err)
		}
		others += page.Others
		query.After = page.Cursor
		if page.Remaining == 0 {
			break
		}
	}
	if err := printer.flush(); err != nil {
		return g.fail(err)
	}
	if !*asJSON {
		printer.rest(*all, others, *follow)
	}
	if *follow {
		return g.follow(client, query, printer)
	}
	return exitOK
}

// rest tells of what was not printed.
func (p *printer) rest(all bool, others int, follow bool) {
	where := "process tree"
	if all {
		where = "container"
	}
	if p.printed == 0 && !follow {
		fmt.Fprintf(p.out, "ActPlane has blocked and noted nothing in this %s.\n", where)
	}
	if others > 0 {
		fmt.Fprintf(p.out, "(%d more of other processes in this container; `actplane-guest feedback --all` prints them)\n", others)
	}
}

// follow prints what happens until it is ended by a signal or cannot write. An
// engine that restarts is waited for.
func (g guest) follow(client *feedback.Client, query feedback.Query, printer *printer) int {
	query.Wait = followWait
	away := false
	for {
		page, err := g.ask(client, query)
		if err != nil {
			if !away {
				fmt.Fprintf(g.err, "actplane-guest: %v; trying again\n", err)
			}
			away = true
			time.Sleep(g.retry)
			continue
		}
		away = false
		if err := printer.page(page); err != nil {
			return g.fail(err)
		}
		if err := printer.flush(); err != nil {
			return g.fail(err)
		}
		query.After = page.Cursor
	}
}

func (g guest) ask(client *feedback.Client, query feedback.Query) (feedback.Page, error) {
	ctx, cancel := context.WithTimeout(context.Background(), query.Wait+requestTime)
	defer cancel()
	return client.Feedback(ctx, query)
}

// printer prints items, and of several with the same message in a row the first.
type printer struct {
	guest
	json    bool
	printed int
	last    string
	repeats int
}

func (p *printer) page(page feedback.Page) error {
	if page.Missed > 0 && !p.json {
		fmt.Fprintf(p.out, "(%d older records of this container are no longer kept)\n", page.Missed)
	}
	for _, entry := range page.Items {
		p.printed++
		if p.json {
			if err := p.printJSON(entry); err != nil {
				return err
			}
			continue
		}
		if entry.Message == p.last && entry.Lost == 0 {
			p.repeats++
			continue
		}
		if err := p.flush(); err != nil {
			return err
		}
		p.last = entry.Message
		if entry.Lost > 0 {
			fmt.Fprintf(p.out, "(the records of %d events before the next one are lost)\n", entry.Lost)
		}
		_, err := fmt.Fprintf(p.out, "%s  %s\n", entry.Time.Local().Format(time.DateTime), feedback.Printable(entry.Message))
		if err != nil {
			return fmt.Errorf("write output: %w", err)
		}
	}
	return nil
}

// flush tells of the repeats that were not printed.
func (p *printer) flush() error {
	if p.repeats == 0 {
		return nil
	}
	_, err := fmt.Fprintf(p.out, "%*s(and %d more like it)\n", len(time.DateTime)+2, "", p.repeats)
	p.repeats = 0
	if err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}
