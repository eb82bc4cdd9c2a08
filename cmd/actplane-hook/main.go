// SPDX-License-Identifier: Apache-2.0

// Command actplane-hook is the OCI hook: it binds a container's policy to its
// cgroup before the container's program begins, and lets it go afterwards.
package main

import (
	"fmt"
	"os"

	"github.com/actplane/actplane/internal/version"
	"github.com/actplane/actplane/ocihook"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "--actplane-version" {
		fmt.Println(version.String())
		return
	}
	os.Exit(ocihook.Main(os.Args))
}
