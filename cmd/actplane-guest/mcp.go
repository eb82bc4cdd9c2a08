// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"io"

	"github.com/actplane/actplane/feedback"
	"github.com/actplane/actplane/feedback/mcp"
	"github.com/actplane/actplane/internal/version"
)

// mcp serves an agent's client on standard input and output until it goes.
func (g guest) mcp(args []string) int {
	flags := flag.NewFlagSet("mcp", flag.ContinueOnError)
	if code, ok := g.parse(flags, args); !ok {
		return code
	}
	server := mcp.New(feedback.NewClient(g.socket), feedback.TreeDepth(g.proc, g.pid))
	if err := server.Serve(context.Background(), io.NopCloser(g.in), keepOpen{g.out}, version.String()); err != nil {
		return g.fail(err)
	}
	return exitOK
}

// keepOpen is a writer that is another's to close.
type keepOpen struct{ io.Writer }

func (keepOpen) Close() error { return nil }
