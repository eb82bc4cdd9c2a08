// SPDX-License-Identifier: Apache-2.0

// Command actplane is the host's command line: it installs ActPlane, checks
// policies and the host, and shows what is under policy and what happened.
package main

import "os"

func main() { os.Exit(run(os.Args, os.Stdin, os.Stdout, os.Stderr)) }
