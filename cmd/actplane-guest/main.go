// SPDX-License-Identifier: Apache-2.0

// Command actplane-guest runs inside a container under ActPlane: it prints what
// the policy did and why, and is the hook that tells coding agents. It needs no
// rights and nothing of the image, and it enforces nothing.
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/actplane/actplane/feedback"
	"github.com/actplane/actplane/internal/version"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "--actplane-version" {
		fmt.Println(version.String())
		return
	}
	g := guest{
		in: os.Stdin, out: os.Stdout, err: os.Stderr,
		socket: feedback.SocketPath, proc: "/proc", pid: os.Getpid(), retry: time.Second / 2,
		exec: become,
		home: os.Getenv("HOME"), path: os.Getenv("PATH"),
	}
	// Tests and hosts that mount the folder elsewhere.
	if socket := os.Getenv("ACTPLANE_SOCKET"); socket != "" {
		g.socket = socket
	}
	os.Exit(g.run(os.Args[1:]))
}
