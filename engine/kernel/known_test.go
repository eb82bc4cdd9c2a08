// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/bpf"
)

// known returns the entries of the paths that the kernel side knows, by their names.
func (b *bench) known() (map[string]uint32, map[uint32]bpf.EnforcerKnownPath) {
	b.t.Helper()
	numbers, entries := map[string]uint32{}, map[uint32]bpf.EnforcerKnownPath{}
	var number uint32
	var entry bpf.EnforcerKnownPath
	all := b.k.maps["known_paths"].Iterate()
	for all.Next(&number, &entry) {
		if entry.Version == 0 {
			continue
		}
		var name strings.Builder
		for _, c := range entry.Key.Name[:entry.Key.Length] {
			name.WriteByte(byte(c))
		}
		numbers[name.String()] = number
		entries[number] = entry
	}
	if err := all.Err(); err != nil {
		b.t.Fatal(err)
	}
	return numbers, entries
}

// lie makes the kernel side believe that one path matches what another one does: whoever
// opens it next without being refused has not looked there.
func (b *bench) lie(of, as string) {
	b.t.Helper()
	numbers, entries := b.known()
	number, ok := numbers[of]
	other, ok2 := numbers[as]
	if !ok || !ok2 {
		b.t.Fatalf("%s and %s are not known: %v", of, as, numbers)
	}
	entry := entries[number]
	entry.Rows = entries[other].Rows
	if err := b.k.maps["known_paths"].Put(number, entry); err != nil {
		b.t.Fatal(err)
	}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// What is known of a path is used until anything moves, whoever moves it and wherever.
func TestKnownPaths(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, `
rule r:
  block open "$D/known-secret"
`)
		open, secret := b.file("d/known-open"), b.file("known-secret")
		other := b.file("other")
		a := b.actor()
		for name, change := range map[string]func(){
			"a rename": func() {
				must(t, os.Rename(other, other+"2"), os.Rename(other+"2", other))
			},
			"an exchange": func() {
				must(t, unix.Renameat2(unix.AT_FDCWD, other, unix.AT_FDCWD, secret, unix.RENAME_EXCHANGE),
					unix.Renameat2(unix.AT_FDCWD, other, unix.AT_FDCWD, secret, unix.RENAME_EXCHANGE))
			},
			"a mount": func() {
				dir := t.TempDir()
				must(t, unix.Mount("none", dir, "tmpfs", 0, ""), unix.Unmount(dir, 0))
			},
			"a directory's end": func() {
				dir := filepath.Join(b.dir, "gone")
				must(t, os.Mkdir(dir, 0o755), os.Remove(dir))
			},
		} {
			a.want("EPERM", "read", secret)
			a.want("ok", "read", open)
			b.record()
			b.lie("known-open", "known-secret")
			a.want("EPERM", "read", open)
			if r := b.record(); r.Object != open {
				t.Errorf("the record says %q", r.Object)
			}
			change()
			if got := a.do("read", open); got != "ok" {
				t.Errorf("after %s: %s", name, got)
			}
		}
	})
}

// The same name in the same directory is another path when the directory has moved, is
// shown by another mount, or is another directory.
func TestKnownElsewhere(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, `
rule r:
  block open "$D/locked/**"
  block open "**/locked-name"
`)
		in := func(name string) string { return filepath.Join(b.dir, name) }
		inside, outside := b.file("free/f"), in("locked/f")
		a := b.actor()
		twice := func(answer string, path string) {
			t.Helper()
			for range 2 {
				a.want(answer, "read", path)
			}
		}
		twice("ok", inside)
		must(t, os.Rename(in("free"), in("locked")))
		twice("EPERM", outside)
		must(t, os.Rename(in("locked"), in("free")))
		twice("ok", inside)

		must(t, os.Mkdir(in("locked"), 0o755), unix.Mount(in("free"), in("locked"), "", unix.MS_BIND, ""))
		t.Cleanup(func() { _ = unix.Unmount(in("locked"), unix.MNT_DETACH) })
		twice("EPERM", outside)
		twice("ok", inside)
		must(t, unix.Unmount(in("locked"), 0))

		must(t, os.Link(inside, outside), os.Link(inside, in("free/locked-name")))
		twice("EPERM", outside)
		twice("ok", inside)
		twice("EPERM", in("free/locked-name"))
		must(t, os.RemoveAll(in("locked")))

		// Directories, inodes and names come back at the addresses that they had.
		for range 300 {
			must(t, os.Mkdir(in("p"), 0o755), os.WriteFile(in("p/f"), nil, 0o644))
			a.want("ok", "read", in("p/f"))
			must(t, os.RemoveAll(in("p")), os.Mkdir(in("locked"), 0o755), os.WriteFile(outside, nil, 0o644))
			a.want("EPERM", "read", outside)
			must(t, os.RemoveAll(in("locked")))
		}
		// A file of a longer name than is kept.
		long := b.file("free/" + strings.Repeat("n", 41))
		twice("ok", long)
		must(t, os.Mkdir(in("locked"), 0o755), os.Rename(long, in("locked/"+filepath.Base(long))))
		twice("EPERM", in("locked/"+filepath.Base(long)))
	})
}

// Each policy knows for itself.
func TestKnownByPolicy(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		dir := t.TempDir()
		file := filepath.Join(dir, "f")
		must(t, os.WriteFile(file, nil, 0o644))
		for _, answer := range []string{"ok", "EPERM", "ok"} {
			t.Run(answer, func(t *testing.T) {
				name := "other"
				if answer == "EPERM" {
					name = "f"
				}
				a := newBench(t, tier, "\nrule r:\n  block open \""+filepath.Join(dir, name)+"\"\n").actor()
				a.want(answer, "read", file)
				a.want(answer, "read", file)
			})
		}
	})
}
