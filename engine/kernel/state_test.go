// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/bpf"
)

// restart ends the scope and begins it anew with its state, which edit may change.
func (b *bench) restart(edit func(*State)) State {
	b.t.Helper()
	state, err := b.k.State(b.slot)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := b.k.Remove(b.slot); err != nil {
		b.t.Fatal(err)
	}
	if edit != nil {
		edit(&state)
	}
	b.install(state)
	return state
}

// install begins the scope, which has ended.
func (b *bench) install(state State) {
	b.t.Helper()
	var err error
	b.slot, err = b.k.Install(Spec{Cgroup: b.cgroup, HostRoot: true, Image: b.policy.Image, State: state})
	if err != nil {
		b.t.Fatal(err)
	}
}

// overlay mounts one over a directory of the test's, and returns where and its device.
func overlay(t *testing.T, dir string) (mount string, device uint32) {
	t.Helper()
	mount = filepath.Join(dir, "merged")
	for _, name := range []string{"lower", "upper", "work", "merged"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	options := fmt.Sprintf("lowerdir=%[1]s/lower,upperdir=%[1]s/upper,workdir=%[1]s/work", dir)
	if err := unix.Mount("overlay", mount, "overlay", 0, options); err != nil {
		t.Fatal(err)
	}
	id, err := fileID(mount)
	if err != nil {
		t.Fatal(err)
	}
	return mount, id.Dev
}

const restartPolicy = `
source SECRET = file "**/secret"
rule stay:
  block write file "$D/shared" if SECRET
rule tested:
  block exec "commit" unless after exec "tests" since write "**/src/*"
rule own:
  block exec "**/made" unless target not modified
`

// What is known of files and gates outlives the scope, on an overlay that is mounted
// anew, too: its device changes, its inodes do not.
func TestStateOutlivesScope(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, restartPolicy)
		shared := b.file("shared")
		commit, tests := b.script("commit", "exit 0"), b.script("tests", "exit 0")
		root := filepath.Join(t.TempDir(), "overlay")
		if err := os.MkdirAll(filepath.Join(root, "lower"), 0o755); err != nil {
			t.Fatal(err)
		}
		for name, mode := range map[string]os.FileMode{"secret": 0o644, "tool": 0o755} {
			if err := os.WriteFile(filepath.Join(root, "lower", name), []byte("#!/bin/sh\nexit 0\n"), mode); err != nil {
				t.Fatal(err)
			}
		}
		mount, device := overlay(t, root)
		t.Cleanup(func() { _ = unix.Unmount(mount, unix.MNT_DETACH) })

		a := b.actor()
		a.want("ok", "run", tests)
		a.want("ok", "run", commit)
		a.want("ok", "rename", mount+"/secret", mount+"/renamed") // copied up
		a.want("ok", "run", "/bin/cp", mount+"/tool", mount+"/made")
		a.want("EPERM", "run", mount+"/made")
		a.want("ok", "fork", "write", shared) // carries nothing itself
		b.actor().want("ok", "run", "/bin/cp", mount+"/renamed", b.dir+"/copy")

		// The device is taken by another file system, so that the overlay gets a new one.
		if err := unix.Unmount(mount, unix.MNT_DETACH); err != nil {
			t.Fatal(err)
		}
		place := t.TempDir()
		if err := unix.Mount("x", place, "tmpfs", 0, ""); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = unix.Unmount(place, 0) }()
		mount, now := overlay(t, root)
		if now == device {
			t.Log("the overlay has its former device number; that proves less")
		}
		b.restart(func(s *State) {
			for i := range s.Files {
				if s.Files[i].ID.Device == device {
					s.Files[i].ID.Device = now
				}
			}
		})
		for _, file := range []string{mount + "/renamed", b.dir + "/copy"} {
			c := b.actor()
			c.want("ok", "fork", "write", shared)
			c.want("ok", "read", file)
			c.want("EPERM", "write", shared)
		}
		d := b.actor()
		d.want("EPERM", "run", mount+"/made")
		d.want("ok", "run", mount+"/tool")
		d.want("ok", "run", commit)
		if err := os.Mkdir(b.dir+"/src", 0o755); err != nil {
			t.Fatal(err)
		}
		d.want("ok", "write", b.dir+"/src/x")
		d.want("EPERM", "run", commit)
		b.restart(nil)
		b.actor().want("EPERM", "run", commit)
	})
}

// Where it is lost what was known of files, they count as modified and as labelled,
// but not those that are made now.
func TestAssumedOfFiles(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, restartPolicy)
		shared, other, made := b.file("shared"), b.file("other"), b.script("made", "exit 0")
		commit, tests := b.script("commit", "exit 0"), b.script("tests", "exit 0")
		a := b.actor()
		a.want("ok", "run", made)
		a.want("ok", "run", tests)
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		a.want("ok", "link", self, self+"-linked")
		defer os.Remove(self + "-linked")
		all := b.policy.Image.Labels &^ b.policy.Image.Integrity
		b.restart(func(s *State) { *s = State{AssumedLabels: all, AssumedFlags: FileUnknown, Files: s.Files} })
		a = b.actor()
		a.want("ok", "run", tests)
		a.want("EPERM", "run", commit) // not armed by what may be anything
		a.want("EPERM", "run", made)
		a = b.actor()
		for _, step := range [][]string{
			{"ok", "create", b.dir + "/new"},
			{"ok", "read", b.dir + "/new"},
			{"ok", "write", shared},
		} {
			a.want(step[0], step[1:]...)
			// All is known of the actor's program: it has an entry.
			if process, ok, err := b.k.Process(a.cmd.Process.Pid); err != nil || !ok || process.Labels != 0 {
				t.Errorf("after %q: process %+v, %v", step, process, err)
			}
		}
		a.want("ok", "rename", other, b.dir+"/moved")
		a.want("ok", "read", b.dir+"/moved")
		a.want("EPERM", "write", shared)

		// What is assumed outlives the next start, and ends when an operator says so.
		state := b.restart(nil)
		if state.AssumedFlags != FileUnknown || state.AssumedLabels != all || len(state.Fresh) != 0 {
			t.Errorf("assumed are %x and %x, open are %v", state.AssumedLabels, state.AssumedFlags, state.Fresh)
		}
		b.actor().want("EPERM", "run", made)
		if err := b.k.Forget(b.slot); err != nil {
			t.Fatal(err)
		}
		d := b.actor()
		d.want("ok", "run", made)
		d.want("ok", "read", b.dir+"/moved")
		d.want("ok", "write", shared)
		d.want("EPERM", "run", commit)
		d.want("ok", "run", tests)
		d.want("ok", "run", commit)

		// Without an entry even for the program, each process carries all from its exec.
		b.restart(func(s *State) { *s = State{AssumedLabels: all, AssumedFlags: FileUnknown} })
		b.actor().want("EPERM", "write", shared)
	})
}

// left is what the engine holds in the kernel and in this process.
func (b *bench) left() string {
	b.t.Helper()
	var lines []string
	for _, kind := range []string{"links", "markers", "maps", "programs"} {
		entries, err := os.ReadDir(b.k.dir(kind))
		if err != nil {
			b.t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("%s %d", kind, len(entries)))
	}
	for _, name := range []string{"files", "owners_by_file", "scopes_by_cgroup", "lost_records", "dfa_small", "rows", "candidates", "clauses", "tokens"} {
		lines = append(lines, fmt.Sprintf("%s %d", name, entries(b.t, b.k.maps[name])))
	}
	kernelObjects := 0
	for id, err := ebpf.MapGetNextID(0); err == nil; id, err = ebpf.MapGetNextID(id) {
		kernelObjects++
	}
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		b.t.Fatal(err)
	}
	var images bpf.EnforcerScope
	if err := b.k.maps["scopes"].Lookup(b.slot.Index, &images); err != nil {
		b.t.Fatal(err)
	}
	return strings.Join(append(lines, fmt.Sprintf("objects %d fds %d files %d", kernelObjects, len(fds), images.Files)), ", ")
}

func entries(t *testing.T, m *ebpf.Map) int {
	t.Helper()
	n, previous := 0, []byte(nil)
	next := make([]byte, m.KeySize())
	for {
		var err error
		if previous == nil {
			err = m.NextKey(nil, next)
		} else {
			err = m.NextKey(previous, next)
		}
		if err != nil {
			return n
		}
		if value, err := m.LookupBytes(next); err == nil && value != nil {
			n++
		}
		previous = slices.Clone(next)
	}
}

// A hundred times (a thousand with ACTPLANE_SOAK=1) the scope ends and begins, or the engine dies and another takes
// over, or dies between the two: nothing of the state is lost, and nothing is left.
func TestManyRestarts(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, restartPolicy)
		shared := b.file("shared")
		commit, tests := b.script("commit", "exit 0"), b.script("tests", "exit 0")
		secret, made := b.file("secret"), b.dir+"/made"
		// Another scope keeps the hooks attached: that is no concern of this test's.
		keep := b.cgroup + "-keep"
		if err := os.Mkdir(keep, 0o755); err != nil {
			t.Fatal(err)
		}
		keeper, err := b.k.Install(Spec{Cgroup: keep, HostRoot: true, Image: b.policy.Image})
		if err != nil {
			t.Fatal(err)
		}
		a := b.actor()
		a.want("ok", "run", tests)
		for i := range 300 {
			a.want("ok", "create", fmt.Sprintf("%s/own-%d", b.dir, i))
		}
		a.want("ok", "run", "/bin/cp", tests, made)
		b.actor().want("ok", "rename", secret, b.dir+"/renamed")
		a.end()
		check := func() {
			t.Helper()
			c := b.actor()
			c.want("ok", "run", commit)
			c.want("EPERM", "run", made)
			c.want("ok", "read", b.dir+"/renamed")
			c.want("EPERM", "write", shared)
			c.end()
		}
		b.restart(nil)
		check()
		b.takeOver() // who loaded it holds more than who takes over
		want, before := b.restart(nil), b.left()
		rounds := 100
		if os.Getenv("ACTPLANE_SOAK") != "" {
			rounds = 1000
		}
		for round := 1; round <= rounds; round++ {
			switch round % 20 {
			default:
				b.restart(nil)
			case 9: // killed while the scope lives
				b.takeOver()
			case 19: // killed after the scope was removed and before it is back
				state, err := b.k.State(b.slot)
				if err == nil {
					err = b.k.Remove(b.slot)
				}
				if err != nil {
					t.Fatal(err)
				}
				b.takeOver()
				b.install(state)
			}
			if round%(rounds/4) == 0 {
				check()
			}
		}
		got := b.restart(nil)
		byID := func(a, b File) int { return int(int64(a.ID.Inode) - int64(b.ID.Inode)) }
		slices.SortFunc(want.Files, byID)
		slices.SortFunc(got.Files, byID)
		if !slices.Equal(want.Files, got.Files) || !slices.Equal(want.Fresh, got.Fresh) || want.AssumedFlags != got.AssumedFlags {
			t.Errorf("the state was %d files and gates %v, and is %d and %v", len(want.Files), want.Fresh, len(got.Files), got.Fresh)
		}
		if after := b.left(); after != before {
			t.Errorf("there was %s\nthere is  %s", before, after)
		}
		if len(want.Files) < 300 || !strings.Contains(before, "files 3") {
			t.Errorf("the state has %d files: too few to prove anything", len(want.Files))
		}
		t.Logf("%d files, %d gates; %s", len(got.Files), len(got.Fresh), before)
		if err := b.k.Remove(keeper); err != nil {
			t.Error(err)
		}
		_ = os.Remove(keep)
	})
}

// takeOver is the death of the engine's process, and another in its place.
func (b *bench) takeOver() {
	b.t.Helper()
	b.stopRecords()
	config := b.k.config
	if err := b.k.Close(); err != nil {
		b.t.Fatal(err)
	}
	var err error
	if b.k, err = Open(config); err != nil {
		b.t.Fatal(err)
	}
	b.readRecords()
}
