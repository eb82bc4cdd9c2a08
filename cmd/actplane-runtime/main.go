// SPDX-License-Identifier: Apache-2.0

// Command actplane-runtime is the OCI runtime for Docker, podman and CRI-O: it
// puts a container under policy and hands it on to runc.
package main

import (
	"os"

	"github.com/actplane/actplane/shim/runtime"
)

func main() { os.Exit(runtime.Main(os.Args, os.Environ())) }
