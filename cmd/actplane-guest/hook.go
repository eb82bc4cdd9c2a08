// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/actplane/actplane/feedback"
	"github.com/actplane/actplane/feedback/agents"
)

// hookTime is how long a hook may take: an agent waits for its hooks.
const hookTime = 1500 * time.Millisecond

// hook answers one event. Whatever happens, the agent must see a hook that went
// well: the exit code is 0 and standard output holds an answer or nothing.
func (g guest) hook(args []string) {
	flags := flag.NewFlagSet("hook", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	name := flags.String("agent", "", "")
	err := flags.Parse(args)
	protocol, known := agents.ByName(*name)
	if err != nil || flags.NArg() > 0 || !known {
		fmt.Fprintf(g.err, "actplane-guest hook: --agent is one of: %s\n", strings.Join(agents.Names(), ", "))
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), hookTime)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- protocol(ctx, g.in, g.out, feedback.NewClient(g.socket), feedback.TreeDepth(g.proc, g.pid))
	}()
	select {
	case err = <-done:
	case <-ctx.Done():
		// Reading standard input cannot be interrupted.
		err = ctx.Err()
	}
	// Hooks may be set up for containers of every kind: no scope is no trouble.
	if err != nil && !errors.Is(err, feedback.ErrNoScope) {
		fmt.Fprintf(g.err, "actplane-guest hook: %v\n", err)
	}
}
