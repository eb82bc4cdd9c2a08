// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"path/filepath"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// homeOf is a directory that is there for as long as the container is, running or not:
// Docker's of it, or else the one that takes what it writes. Of others nothing is known.
func homeOf(spec *spec, docker *dockerFile) string {
	if docker != nil {
		return docker.home
	}
	mounts, err := mountinfo.GetMounts(mountinfo.SingleEntryFilter(filepath.Clean(spec.rootfs)))
	if err != nil || len(mounts) == 0 {
		return ""
	}
	root := mounts[len(mounts)-1] // covers the others
	if root.FSType != "overlay" {
		return ""
	}
	for _, option := range strings.Split(root.VFSOptions, ",") {
		if upper, ok := strings.CutPrefix(option, "upperdir="); ok && filepath.IsAbs(upper) {
			return upper
		}
	}
	return ""
}
