// SPDX-License-Identifier: Apache-2.0

// Package version tells which build of ActPlane a program is.
package version

import "runtime/debug"

// stamp is what "make" has the linker write here: what git describe says, so that
// equal sources give equal programs.
var stamp string

// String is the stamp or else what Go has noted of the module: a version, or the
// commit where the build may look at the repository. It is "devel" without any.
func String() string {
	info, _ := debug.ReadBuildInfo()
	return describe(stamp, info)
}

func describe(stamp string, info *debug.BuildInfo) string {
	switch {
	case stamp != "":
		return stamp
	case info != nil && info.Main.Version != "" && info.Main.Version != "(devel)":
		return info.Main.Version
	}
	return "devel"
}
