// SPDX-License-Identifier: Apache-2.0

// Command actplane-runtime is the OCI runtime for Docker, podman and CRI-O: it
// puts a container under policy and hands it on to runc.
package main

import (
	"fmt"
	"os"

	"github.com/actplane/actplane/internal/version"
	"github.com/actplane/actplane/shim/runtime"
)

func main() {
	// For "actplane doctor": --version is the next runtime's.
	if len(os.Args) == 2 && os.Args[1] == "--actplane-version" {
		fmt.Println(version.String())
		return
	}
	os.Exit(runtime.Main(os.Args, os.Environ()))
}
