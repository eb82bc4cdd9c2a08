// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// From when Lock returns to when Unlock is called no operation succeeds that begins in
// between, of any kind; before and after, all do. A scope beside it does not notice.
func TestLock(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, "rule r:\n  block unlink file \"$D/never\"\n")
		for _, name := range []string{"open", "a", "text"} {
			b.file(name)
		}
		if err := os.Chmod(filepath.Join(b.dir, "text"), 0o755); err != nil {
			t.Fatal(err)
		}
		other := newOtherScope(t, b)
		a, neighbour := b.actor(), other.actor()
		neighbour.want("ok", "read", b.dir+"/open")
		done := make(chan string)
		go func() { done <- a.do("storm", b.dir) }()
		untilWritten(t, filepath.Join(b.dir, "open"))
		if err := b.k.Lock(b.slot); err != nil {
			t.Fatal(err)
		}
		locked := monotonic()
		for range 50 {
			neighbour.want("ok", "read", b.dir+"/open")
		}
		if got := starts(b); got == nil {
			t.Error("a program could be started from outside")
		}
		for range 1000 { // some rounds of the storm
			stats, err := b.k.Stats(b.slot)
			if err != nil || !stats.Locked {
				t.Fatalf("%+v %v", stats, err)
			}
			if stats.Refused > 500 {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		unlocking := monotonic()
		if err := b.k.Unlock(b.slot); err != nil {
			t.Fatal(err)
		}
		kinds := strings.Split(strings.TrimSuffix(<-done, ";"), ";")
		if len(kinds) < 20 {
			t.Errorf("the storm: %v", kinds)
		}
		for _, kind := range kinds {
			var name string
			var from, to int64
			var refused int
			if _, err := fmt.Sscan(kind, &name, &from, &to, &refused); err != nil {
				t.Errorf("%q: %v", kind, err)
			}
			if from > locked || to < unlocking || refused == 0 {
				t.Errorf("%s: allowed at %d and %d, locked from %d to %d, refused %d times", name, from, to, locked, unlocking, refused)
			}
		}
		a.want("ok", "read", b.dir+"/open")
		a.want("ok", "run", "/bin/sh", "-c", "exit 0")
		if stats, err := b.k.Stats(b.slot); err != nil || stats.Locked {
			t.Errorf("%+v %v", stats, err)
		}
	})
}

// A lock outlives the daemon, and what is locked can be killed.
func TestLockIsAdopted(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, "rule r:\n  block unlink file \"$D/never\"\n")
		path := b.file("x")
		a := b.actor()
		a.want("ok", "read", path)
		if err := b.k.Lock(b.slot); err != nil {
			t.Fatal(err)
		}
		b.stopRecords()
		if err := b.k.Close(); err != nil {
			t.Fatal(err)
		}
		next, err := openTier(shared.config, tier)
		if err != nil {
			t.Fatal(err)
		}
		b.k = next
		b.readRecords()
		if err := next.DetachLingering(); err != nil {
			t.Error(err)
		}
		if got := starts(b); got == nil {
			t.Error("a program could be started from outside")
		}
		if err := a.cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		a.end()
		if err := next.Unlock(b.slot); err != nil {
			t.Fatal(err)
		}
		b.actor().want("ok", "read", path)
		if err := next.Lock(Slot{Index: b.slot.Index, Generation: b.slot.Generation + 1}); err == nil {
			t.Error("a scope that is gone could be locked")
		}
	})
}

// starts tells why a program cannot be started in the scope from outside.
func starts(b *bench) error {
	fd, err := unix.Open(b.cgroup, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		b.t.Fatal(err)
	}
	defer unix.Close(fd)
	cmd := exec.Command("/bin/sh", "-c", "exit 0")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: fd}
	return cmd.Run()
}

// untilWritten waits for a file to be written to.
func untilWritten(t *testing.T, path string) {
	t.Helper()
	before, err := os.Stat(path)
	for range 1000 {
		if err != nil {
			t.Fatal(err)
		}
		var now os.FileInfo
		if now, err = os.Stat(path); err == nil && now.ModTime().After(before.ModTime()) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("nothing is written")
}

// newOtherScope is one more scope on a bench's kernel side, with the same policy.
func newOtherScope(t *testing.T, b *bench) *bench {
	t.Helper()
	other := *b
	other.cgroup = b.cgroup + "-other"
	if err := os.MkdirAll(other.cgroup, 0o755); err != nil {
		t.Fatal(err)
	}
	var err error
	if other.slot, err = b.k.Install(Spec{Cgroup: other.cgroup, HostRoot: true, Image: b.policy.Image}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.k.Remove(other.slot); err != nil {
			t.Error(err)
		}
		_ = os.Remove(other.cgroup)
	})
	return &other
}
