// SPDX-License-Identifier: Apache-2.0

// Command actplaned is the engine daemon, one per host: it puts the policies of
// containers into force and tells what happened. See package engine.
package main

import (
	"fmt"
	"os"

	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/internal/version"
)

func main() {
	// The kernel side's self-tests run this program as their helper.
	if len(os.Args) > 1 && os.Args[1] == "probe-helper" {
		os.Exit(kernel.ProbeHelper())
	}
	if len(os.Args) == 2 && os.Args[1] == "--actplane-version" {
		fmt.Println(version.String())
		return
	}
	os.Exit(run(os.Args[1:], os.Stderr))
}
