// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/bpf"
)

// familyStep has a child of the actor's, which runs no program, read a file: "vforked"
// shares all memory with its parent, "forked" what was mapped with "mapanonymous".
func (s *actorState) familyStep(op string, args []string) error {
	switch op {
	case "mapanonymous":
		_, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANON)
		return err
	case "forked", "vforked":
		path, err := unix.BytePtrFromString(args[0])
		if err != nil {
			return err
		}
		child := readForked
		if op == "vforked" {
			child = readVforked
		}
		pid, errno := child(uintptr(unsafe.Pointer(path)))
		if errno != 0 {
			return errno
		}
		var status unix.WaitStatus
		if _, err := unix.Wait4(int(pid), &status, 0, nil); err != nil {
			return err
		}
		return errnoError(syscall.Errno(status.ExitStatus()))
	}
	return errNoStep
}

const atFDCWD = ^uintptr(99)

// readForked forks a child that opens a path and ends. Only system calls: the child has
// one of the runtime's threads.
//
//go:norace
func readForked(path uintptr) (pid uintptr, errno syscall.Errno) {
	pid, _, errno = syscall.RawSyscall(unix.SYS_FORK, 0, 0, 0)
	if pid != 0 || errno != 0 {
		return pid, errno
	}
	_, _, errno = syscall.RawSyscall(unix.SYS_OPENAT, atFDCWD, path, 0)
	for {
		_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, uintptr(errno), 0, 0)
	}
}

// readVforked does the same with a child that has the parent's memory and stack, while
// the parent waits. One call in a loop, so that each return address is where the parent
// will look for it; the child's count of steps is the parent's as well.
//
//go:norace
func readVforked(path uintptr) (pid uintptr, errno syscall.Errno) {
	steps := [...][3]uintptr{
		{unix.SYS_CLONE, unix.CLONE_VM | unix.CLONE_VFORK | uintptr(unix.SIGCHLD), 0},
		{unix.SYS_OPENAT, atFDCWD, path},
		{unix.SYS_EXIT, 0, 0},
	}
	for i := 0; i < len(steps); i++ {
		pid, _, errno = syscall.RawSyscall(steps[i][0], steps[i][1], steps[i][2], 0)
		if i == 0 && errno != 0 {
			return 0, errno
		}
	}
	return pid, 0
}

// Children that share memory with their parent, or all of it, share its labels; those
// that do not, and those that have run a program since, have their own.
func TestFamilies(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newChannelBench(t, tier)
		other := b.actor()
		a := b.actor()
		a.want("ok", "forked", b.secret)
		b.clean(a, "a fork that shares nothing")
		a.want("ok", "run", "/bin/cat", b.secret)
		b.clean(a, "a child that has run a program")
		a.want("ok", "mapanonymous")
		a.want("ok", "run", "/bin/cat", b.secret)
		b.clean(a, "a child that has run a program, and no mapping any more")
		a.want("ok", "forked", b.secret)
		b.labelled(a, "a fork that shares a mapping")
		v := b.actor()
		v.want("ok", "run", "/bin/cat", b.secret) // Go starts it by vfork
		b.clean(v, "before")
		v.want("ok", "vforked", b.secret)
		b.labelled(v, "a child with the same memory")
		b.clean(other, "another process")
		for _, a := range []*actor{other, a, v} {
			_ = a.stdin.Close()
			_ = a.cmd.Wait()
		}
		b.nothingShared()
	})
}

// nothingShared checks that processes which have ended left nothing.
func (b *channelBench) nothingShared() {
	b.t.Helper()
	var scope bpf.EnforcerScope
	for range 1000 {
		if err := b.k.maps["scopes"].Lookup(b.slot.Index, &scope); err != nil {
			b.t.Fatal(err)
		}
		if scope.Sharers == 0 {
			break
		}
		runtime.Gosched()
	}
	var id uint64
	err := b.k.maps["sharers"].NextKey(nil, &id)
	if scope.Sharers != 0 || !errors.Is(err, ebpf.ErrKeyNotExist) {
		b.t.Errorf("%d processes are still listed, %v", scope.Sharers, err)
	}
}
