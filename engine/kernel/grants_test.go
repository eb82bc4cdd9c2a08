// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// mapToWrite maps a file as one does to change it without a write, which its times need not
// tell.
func (b *bench) mapToWrite(a *actor, path string) {
	b.t.Helper()
	a.want("ok", "openfd", "x", path, "rw")
	a.want("ok", "mapwrite", "x")
	a.want("ok", "closefd", "x")
}

// A grant is for a program as it was when it was asked about: not when it was opened to
// write since, and not while somebody can write to it.
func TestGrantsOfWrittenPrograms(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		root := filepath.Join(t.TempDir(), "overlay")
		lower := filepath.Join(root, "lower")
		if err := os.MkdirAll(lower, 0o755); err != nil {
			t.Fatal(err)
		}
		script := []byte("#!/bin/sh\nexit 0\n")
		if err := os.WriteFile(filepath.Join(lower, "tool"), script, 0o755); err != nil {
			t.Fatal(err)
		}
		mount, _ := overlay(t, root)
		t.Cleanup(func() { _ = unix.Unmount(mount, unix.MNT_DETACH) })
		b := newBench(t, tier, `
rule tool:
  ask exec "tool"
`)
		above := filepath.Join(mount, "above")
		if err := os.Mkdir(above, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(above, "tool"), script, 0o755); err != nil {
			t.Fatal(err)
		}
		a := b.actor()
		for _, tool := range []string{b.script("tool", "exit 0"), above + "/tool", mount + "/tool"} {
			a.want("EPERM", "run", tool)
			r := b.asked(Opened)
			b.answer(r, Answer{Timed: true})
			a.want("ok", "run", tool)
			b.asked(Granted)

			w := b.actor()
			b.mapToWrite(w, tool)
			// It is still mapped. The kernel does not run what is open to write, but an
			// overlay knows only of its own descriptors.
			if got := a.do("run", tool); got == "EPERM" {
				b.asked(Written)
			} else if got != "ETXTBSY" {
				t.Errorf("%s: %s while it is mapped", tool, got)
			}
			w.end()
			a.want("EPERM", "run", tool)
			if n := b.asked(Opened); n.Ask == r.Ask {
				t.Errorf("%s: the same request after it was mapped", tool)
			} else {
				b.answer(n, Answer{Timed: true})
			}
			a.want("ok", "run", tool)
			b.asked(Granted)
		}
	})
}

// The directory that a grant is for is the one in which the program runs.
func TestGrantsOfSharedDirectories(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, `
rule tool:
  ask exec "tool"
`)
		ran := filepath.Join(b.dir, "ran")
		tool := b.script("tool", "/bin/busybox readlink /proc/self/cwd >> "+ran)
		a := b.actor()
		a.want("EPERM", "runshared", tool)
		b.asked(SharedDirectory)

		here, there := filepath.Join(b.dir, "here"), filepath.Join(b.dir, "there")
		for _, dir := range []string{here, there} {
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		a.want("ok", "racedirs", tool, here, here)
		b.answer(b.asked(Opened), Answer{Timed: true})
		a.want("ok", "racedirs", tool, here, there)
		data, err := os.ReadFile(ran)
		if err != nil {
			t.Fatal(err)
		}
		dirs := strings.Fields(string(data))
		if !slices.Contains(dirs, here) || slices.ContainsFunc(dirs, func(d string) bool { return d != here }) {
			t.Errorf("ran in %q", dirs)
		}
	})
}

// execWhileMoving runs a program while a thread of the caller's goes from one directory to
// another and back.
func execWhileMoving(args []string) error {
	if err := os.Chdir(args[1]); err != nil {
		return err
	}
	go func() {
		for turn := 0; ; turn++ {
			_ = os.Chdir(args[1+turn%2])
		}
	}()
	runtime.Gosched()
	return unix.Exec(args[0], args[:1], os.Environ())
}
