// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// linkedBench is a scope with an overlay, whose files below have two names each.
type linkedBench struct {
	*bench
	root, mount string
	device      uint32
	kept        string
}

func newLinkedBench(t *testing.T, tier Tier) *linkedBench {
	t.Helper()
	l := &linkedBench{root: filepath.Join(t.TempDir(), "overlay")}
	lower := filepath.Join(l.root, "lower")
	if err := os.MkdirAll(lower, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b", "c", "check"} {
		path := filepath.Join(lower, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Link(path, path+"-also"); err != nil {
			t.Fatal(err)
		}
	}
	l.mount, l.device = overlay(t, l.root)
	t.Cleanup(func() { _ = unix.Unmount(l.mount, unix.MNT_DETACH) })
	l.bench = newBench(t, tier, `
source SECRET = file "$D/secret"
rule stay:
  block write "$D/kept" if SECRET
rule passed:
  block exec "push" unless after exec "check" exits 0
`)
	l.kept = l.file("kept")
	return l
}

func (l *linkedBench) in(name string) string { return filepath.Join(l.mount, name) }

// labelled checks that who reads a file of the overlay carries its label.
func (l *linkedBench) labelled(name string) {
	l.t.Helper()
	r := l.actor()
	defer r.end()
	r.want("ok", "read", l.in(name))
	r.want("EPERM", "write", l.kept)
}

// dropCaches makes the kernel forget the files that nobody has open.
func dropCaches(t *testing.T) {
	t.Helper()
	if err := os.WriteFile("/proc/sys/vm/drop_caches", []byte("2"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Of files of the image with several names, an overlay makes a file for each name, with one
// number: what is known of one name's stays when another's is removed, and when it is found
// under another number again.
func TestLinkedBelow(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		l := newLinkedBench(t, tier)
		push, yes := l.script("push", "exit 0"), l.script("yes", "exit 0")
		l.file("secret")
		w, a := l.actor(), l.actor()
		w.want("ok", "read", l.dir+"/secret")
		for _, name := range []string{"a", "b", "c"} {
			w.want("ok", "write", l.in(name))
			l.labelled(name)
		}
		a.want("ok", "unlink", l.in("a-also"))
		l.labelled("a")
		a.want("ok", "write", l.in("b-also"))
		a.want("ok", "unlink", l.in("b-also"))
		l.labelled("b")

		a.want("ok", "run", "/bin/cp", yes, l.in("check"))
		a.want("ok", "unlink", l.in("check-also"))
		a.want("ok", "run", l.in("check"))
		a.want("EPERM", "run", push)

		dropCaches(t)
		for _, name := range []string{"a", "b", "c"} {
			l.labelled(name)
		}
		a.want("ok", "run", l.in("check"))
		a.want("EPERM", "run", push)
		r := l.actor() // a name that was written to by nobody, of a file that was
		r.want("ok", "read", l.in("c-also"))

		// Nothing is kept of a file that is gone, but of the number that others have.
		before := l.entries()
		a.want("ok", "unlink", l.in("a"))
		dropCaches(t)
		if after := l.entries(); after >= before {
			t.Errorf("%d entries of the overlay after a file was removed, %d before", after, before)
		}
	})
}

// entries counts what is known of files of the overlay.
func (l *linkedBench) entries() (n int) {
	l.t.Helper()
	state, err := l.k.State(l.slot)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, f := range state.Files {
		if f.ID.Device == l.device {
			n++
		}
	}
	return n
}

// The number under which a file is found at the next start is known as soon as it has it.
func TestLinkedBelowOutlivesScope(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		l := newLinkedBench(t, tier)
		push, yes := l.script("push", "exit 0"), l.script("yes", "exit 0")
		l.file("secret")
		w, a := l.actor(), l.actor()
		w.want("ok", "read", l.dir+"/secret")
		w.want("ok", "write", l.in("a"))
		w.want("ok", "write", l.in("b"))
		w.want("ok", "rename", l.in("b"), l.in("moved"))
		a.want("ok", "run", "/bin/cp", yes, l.in("check"))
		a.want("ok", "rename", l.in("check"), l.in("other"))
		a.want("ok", "rename", l.in("other"), l.in("check"))
		l.restart(func(s *State) { // its inodes leave the cache when nobody sees it
			if err := unix.Unmount(l.mount, unix.MNT_DETACH); err != nil {
				t.Fatal(err)
			}
			mount, now := overlay(t, l.root)
			for i := range s.Files {
				if s.Files[i].ID.Device == l.device {
					s.Files[i].ID.Device = now
				}
			}
			l.mount, l.device = mount, now
		})
		l.labelled("a")
		l.labelled("moved")
		c := l.actor()
		c.want("ok", "run", l.in("check"))
		c.want("EPERM", "run", push)
	})
}
