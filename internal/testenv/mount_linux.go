// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

// MountTmpfs mounts a file system of its own, with room for that many bytes, on a
// directory until the test ends. Without the privilege the test is skipped; CI and
// the guests promise it.
func MountTmpfs(t testing.TB, directory string, size int) {
	t.Helper()
	mount(t, "tmpfs", directory, "tmpfs", 0, fmt.Sprintf("size=%d", size))
}

// MountBind binds a directory or file, with what is mounted below it, to another name
// until the test ends, under the same conditions.
func MountBind(t testing.TB, source, target string) {
	t.Helper()
	mount(t, source, target, "", unix.MS_BIND|unix.MS_REC, "")
}

// MountOverlay mounts an overlay with options until the test ends, under the same
// conditions.
func MountOverlay(t testing.TB, target, options string) {
	t.Helper()
	mount(t, "overlay", target, "overlay", 0, options)
}

func mount(t testing.TB, source, directory, kind string, flags uintptr, data string) {
	t.Helper()
	RequireRoot(t)
	if err := unix.Mount(source, directory, kind, flags, data); err != nil {
		if promisedOrCI() {
			t.Fatalf("cannot mount, which CI and the guests promise: %v", err)
		}
		t.Skipf("needs to mount: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(directory, unix.MNT_DETACH) })
}
