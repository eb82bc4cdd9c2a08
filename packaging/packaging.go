// SPDX-License-Identifier: Apache-2.0

// Package packaging holds the files that an installation puts on a host, so
// that "actplane install" needs nothing beside the binaries.
package packaging

import _ "embed"

// Unit is the engine daemon's systemd unit for the prefix /usr/local.
//
//go:embed actplaned.service
var Unit string

// Hook is the file by which podman and CRI-O call actplane-hook, for containers with one of
// our annotations; see oci-hooks(5).
//
//go:embed hooks.d/actplane.json
var Hook string
