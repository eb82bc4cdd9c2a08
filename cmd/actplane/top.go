// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	tea "charm.land/bubbletea/v2"
	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/actplane/actplane/console"
	"github.com/actplane/actplane/console/top"
	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/internal/daemon"
)

func topCommand() *cli.Command {
	return &cli.Command{
		Name:  "top",
		Usage: "watch what is under policy, and answer requests, on one page in the terminal",
		Description: "Five lists: what waits for an answer, what happened, what is under policy, what each rule did, and\n" +
			"the answers that hold. ? shows the keys. \"a\" shows the request under the cursor whole, and \"y\" then\n" +
			"approves it; \"L\" and Enter lock the container under the cursor.\n" +
			"It goes on when the engine is started anew. NO_COLOR=1 leaves colours out.",
		Flags:  []cli.Flag{runDirFlag()},
		Action: topAction,
	}
}

func topAction(c *cli.Context) error {
	if c.Args().Present() {
		return usageError("top: unexpected argument %q", c.Args().First())
	}
	in, inIs := terminalOf(c.App.Reader)
	out, outIs := terminalOf(c.App.Writer)
	if !inIs || !outIs {
		return usageError("top: needs a terminal; \"actplane ps\", \"events\" and \"requests\" print to anything")
	}
	ctx, stop := signal.NotifyContext(c.Context, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	watcher, err := watch(ctx, c)
	if err != nil {
		return err
	}
	err = top.Run(ctx, top.Options{Source: watcher, Answers: answersBy("top")}, in, out, os.Environ())
	if err != nil && !errors.Is(err, tea.ErrInterrupted) && !errors.Is(err, tea.ErrProgramKilled) && ctx.Err() == nil {
		return environmentError("show the page: %v", err)
	}
	return nil
}

// terminalOf finds the terminal that a command reads from or writes to. The page escapes
// what it shows by itself: its own sequences must get through.
func terminalOf(stream any) (*os.File, bool) {
	if safe, is := stream.(*harmlessWriter); is {
		stream = io.Writer(safe.out)
	}
	file, is := stream.(*os.File)
	return file, is && term.IsTerminal(int(file.Fd()))
}

// watch begins to watch the engine, which it starts if need be.
func watch(ctx context.Context, c *cli.Context) (*console.Watcher, error) {
	first, err := engine(ctx, c)
	if err != nil {
		return nil, err
	}
	options := engineOptions(c)
	watcher := console.NewWatcher(func(ctx context.Context) (*daemon.Client, error) {
		if client := first; client != nil {
			first = nil
			return client, nil
		}
		return daemon.Ensure(ctx, options)
	})
	go watcher.Run(ctx)
	return watcher, nil
}

// answersBy is the person behind this process, who answers in a certain way.
func answersBy(via string) func() *api.Operator {
	return func() *api.Operator {
		by := whoAnswers()
		by.Via = via
		return by
	}
}
