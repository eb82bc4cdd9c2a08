// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/actplane/actplane/feedback"
)

// check tells whether an operation would be allowed to who calls this program.
func (g guest) check(args []string) int {
	flags := flag.NewFlagSet("check", flag.ContinueOnError)
	asJSON := flags.Bool("json", false, "")
	flags.SetOutput(io.Discard)
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(g.out, usage)
		return exitOK
	case err == nil && flags.NArg() < 2:
		err = errors.New("name an operation and its object: check write /etc/hosts")
	}
	if err != nil {
		fmt.Fprintf(g.err, "actplane-guest check: %v\n%s", err, usage)
		return exitUsage
	}
	operation := flags.Arg(0)
	ctx, cancel := context.WithTimeout(context.Background(), requestTime)
	defer cancel()
	answer, err := feedback.NewClient(g.socket).Check(ctx, feedback.CheckRequest{
		Operation: operation, Object: feedback.ResolveObject(operation, flags.Arg(1)), Args: flags.Args()[2:],
	})
	if err != nil {
		return g.fail(err)
	}
	if *asJSON {
		if err := g.printJSON(answer); err != nil {
			return g.fail(err)
		}
	} else {
		fmt.Fprintf(g.out, "%s\n(%s)\n", feedback.Printable(answer.Message), feedback.Printable(answer.Unseen))
	}
	if !answer.Allowed {
		return exitNotEnforcing
	}
	return exitOK
}
