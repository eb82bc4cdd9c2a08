// SPDX-License-Identifier: Apache-2.0

// Command actplaned is the engine daemon, one per host: it puts the policies of
// containers into force and tells what happened. See package engine.
package main

import (
	"os"

	"github.com/actplane/actplane/engine/kernel"
)

func main() {
	// The kernel side's self-tests run this program as their helper.
	if len(os.Args) > 1 && os.Args[1] == "probe-helper" {
		os.Exit(kernel.ProbeHelper())
	}
	os.Exit(run(os.Args[1:], os.Stderr))
}
