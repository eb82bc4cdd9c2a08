// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"os"
	"testing"
	"time"
)

// Hooks stay attached for a while when the last scope has ended, and not longer; a scope
// that comes meanwhile has them all, and a process that ends takes them along.
func TestLinger(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, "rule safe:\n  block read file \"$D/f\"\n")
		f := b.file("f")
		links := func() int {
			entries, err := os.ReadDir(b.k.dir("links"))
			if err != nil {
				t.Fatal(err)
			}
			return len(entries)
		}
		a := b.actor()
		a.want("EPERM", "read", f)
		attached := links()
		b.k.config.Linger = time.Hour
		b.restart(nil)
		if n := links(); n != attached || n == 0 {
			t.Errorf("%d hooks, then %d", attached, n)
		}
		b.actor().want("EPERM", "read", f)
		b.k.config.Linger = 100 * time.Millisecond
		b.restart(nil) // its time comes while the scope is there
		time.Sleep(300 * time.Millisecond)
		b.actor().want("EPERM", "read", f)
		if err := b.k.Remove(b.slot); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(time.Minute); links() > 0; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d hooks stay", links())
			}
		}
		a.want("ok", "read", f)

		b.k.config.Linger = time.Hour
		b.install(State{})
		if err := b.k.Remove(b.slot); err != nil || links() == 0 {
			t.Errorf("%v, %d hooks", err, links())
		}
		b.takeOver()
		if n := links(); n != 0 {
			t.Errorf("%d hooks outlive the process", n)
		}
	})
}
