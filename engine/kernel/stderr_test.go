// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

// A record names what the process had as its standard error, where that is a pipe or a
// terminal to write to.
func TestStandardError(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, "rule r:\n  block read \"$D/f\"\n")
		f := b.file("f")
		for _, c := range []struct {
			open  []string
			named bool
		}{
			{[]string{"pipe", "r", "fd"}, true},
			{[]string{"terminal", "master", "fd"}, true},
			{[]string{"pipe", "fd", "w"}, false},
			{[]string{"pair", "stream", "fd", "peer"}, false},
			{[]string{"openfd", "fd", "/dev/null", "w"}, false},
			{[]string{"openfd", "fd", b.dir + "/errors", "w"}, false},
		} {
			a := b.actor()
			a.want("ok", c.open...)
			a.want("ok", "errors", "fd")
			a.want("EPERM", "read", f)
			var want FileID
			if c.named {
				var stat unix.Stat_t
				if err := unix.Stat(fmt.Sprintf("/proc/%d/fd/2", a.cmd.Process.Pid), &stat); err != nil {
					t.Fatal(err)
				}
				want = FileID{Device: unix.Major(stat.Dev)<<20 | unix.Minor(stat.Dev), Inode: stat.Ino}
			}
			got := b.record().Stderr
			if got.Generation = 0; got != want {
				t.Errorf("%q: %+v, want %+v", c.open, got, want)
			}
			a.end()
		}
	})
}
