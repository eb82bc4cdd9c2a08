// SPDX-License-Identifier: Apache-2.0

// Command actplane-hook is the OCI hook: it binds a container's policy to its
// cgroup before the container's program begins, and lets it go afterwards.
package main

import (
	"os"

	"github.com/actplane/actplane/ocihook"
)

func main() { os.Exit(ocihook.Main(os.Args)) }
