// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// Filesystem is one on which a container can have files, as one start of it sees it.
type Filesystem struct {
	// Device is the kernel's number of it during this start, major<<20 | minor.
	Device uint32
	Type   string
	Source string // what is mounted: a block device, an export, or any word
	Upper  string // of an overlay: the directory on the host that takes what is written
	Places []Place
	// Fresh: the container gets another, empty one at its next start.
	Fresh bool
}

// Place is where a file system is mounted in the container, and which directory of it.
type Place struct{ At, Root string }

// ofTheKernel are file systems without files of their own.
var ofTheKernel = []string{"proc", "sysfs", "cgroup", "cgroup2", "devpts", "mqueue", "bpf", "tracefs", "debugfs", "securityfs"}

// Filesystems lists those that a container's first process has below its root
// directory, from its mountinfo and the host's (proc(5)).
func Filesystems(container, host []byte, rootfs string) ([]Filesystem, error) {
	shared, err := devices(host)
	if err != nil {
		return nil, err
	}
	mounts, err := mountinfo.GetMountsFromReader(bytes.NewReader(container), nil)
	if err != nil {
		return nil, fmt.Errorf("read the container's mounts: %w", err)
	}
	var found []Filesystem
	for _, m := range below(mounts, rootfs) {
		device := deviceOf(m)
		i := slices.IndexFunc(found, func(f Filesystem) bool { return f.Device == device })
		if i < 0 {
			i = len(found)
			upper := upperOf(m)
			found = append(found, Filesystem{
				Device: device, Type: m.FSType, Source: m.Source, Upper: upper,
				Fresh: slices.Contains(ofTheKernel, m.FSType) || upper == "" && !shared[device] && device>>20 == 0,
			})
		}
		found[i].Places = append(found[i].Places, Place{At: m.Mountpoint, Root: m.Root})
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("read the container's mounts: nothing is mounted at %q", rootfs)
	}
	return found, nil
}

// below gives the mounts that the container will have, with their places as it will see
// them: those below its root directory, and the one that this is on. The others are the
// host's, from before the container changes its root.
func below(mounts []*mountinfo.Info, rootfs string) (own []*mountinfo.Info) {
	var root *mountinfo.Info
	for _, m := range mounts {
		if inside(rootfs, m.Mountpoint) && (root == nil || inside(m.Mountpoint, root.Mountpoint)) {
			rest, _ := filepath.Rel(m.Mountpoint, rootfs) // both are absolute
			copied := *m
			copied.Root = filepath.Join(m.Root, rest)
			root = m
			own = append(own[:0:0], &copied)
		} else if m.Mountpoint != rootfs && inside(m.Mountpoint, rootfs) {
			copied := *m
			copied.Mountpoint = strings.TrimPrefix(m.Mountpoint, strings.TrimSuffix(rootfs, "/"))
			own = append(own, &copied)
		}
	}
	if root != nil {
		own[0].Mountpoint = "/"
	}
	return own
}

// inside tells whether a path is a directory or below it.
func inside(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

func deviceOf(m *mountinfo.Info) uint32 { return uint32(m.Major)<<20 | uint32(m.Minor) }

// devices are the numbers of all file systems that a mountinfo names.
func devices(text []byte) (map[uint32]bool, error) {
	mounts, err := mountinfo.GetMountsFromReader(bytes.NewReader(text), nil)
	if err != nil {
		return nil, fmt.Errorf("read the host's mounts: %w", err)
	}
	numbers := map[uint32]bool{}
	for _, m := range mounts {
		numbers[deviceOf(m)] = true
	}
	return numbers, nil
}

func upperOf(m *mountinfo.Info) string {
	if m.FSType != "overlay" {
		return ""
	}
	for _, option := range strings.Split(m.VFSOptions, ",") {
		if upper, ok := strings.CutPrefix(option, "upperdir="); ok {
			return upper
		}
	}
	return ""
}

// numbered tells file systems whose servers may give a file another number when they
// are mounted anew.
func (f *Filesystem) numbered() bool { return !strings.HasPrefix(f.Type, "fuse") }

// again finds which of the file systems of another start this one is. It may be more
// than one, when it cannot be told which: an entry for a file that is not there does
// no harm.
func (f *Filesystem) again(others []Filesystem) (found []*Filesystem) {
	ways := []func(*Filesystem) bool{
		func(o *Filesystem) bool { return f.Upper != "" && o.Upper == f.Upper },
		func(o *Filesystem) bool {
			return f.Upper == "" && slices.ContainsFunc(f.Places, func(p Place) bool { return slices.Contains(o.Places, p) })
		},
		func(o *Filesystem) bool {
			return f.Upper == "" && strings.Contains(f.Source, "/") && o.Source == f.Source
		},
	}
	for _, same := range ways {
		for i := range others {
			if o := &others[i]; o.Type == f.Type && !o.Fresh && same(o) {
				found = append(found, o)
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}
