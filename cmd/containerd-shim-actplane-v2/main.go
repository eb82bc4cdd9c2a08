// SPDX-License-Identifier: Apache-2.0

// Command containerd-shim-actplane-v2 is the runtime io.containerd.actplane.v2 of
// containerd: runc's shim, which puts its containers under policy.
package main

import "github.com/actplane/actplane/shim/task"

func main() { task.Main() }
