// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// storm is a process that does one operation of each kind after the other, as fast as it
// can, and notes when those began that were not refused. It makes system calls of its own
// alone: the runtime would die of a thread that it cannot have.
type storm struct {
	kinds []stormKind
	write int // the number of the kind that tells whether a lock is over
}

// stormKind is one kind of operation. last is when the last one began that was not
// refused; from is when the last one did before the first that was refused, and to when the
// first one had ended after that: some are two system calls.
type stormKind struct {
	name           string
	do             func() unix.Errno
	last, from, to int64
	refused        int
	refusedLast    int64 // when the last one began that was
}

func monotonic() int64 {
	var now unix.Timespec
	_, _, _ = unix.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(&now)), 0)
	return now.Nano()
}

func raw(number uintptr, args ...uintptr) unix.Errno {
	var a [6]uintptr
	copy(a[:], args)
	_, _, errno := unix.RawSyscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
	return errno
}

// text is a path for a system call.
func cText(path string) uintptr { return uintptr(unsafe.Pointer(unsafe.StringData(path + "\x00"))) }

// forkOnce makes a child that ends at once, and waits for it. In the child nothing of the
// runtime may run, which could wait there for threads that it has not: so no function that
// looks whether its stack is to grow.
//
//go:nosplit
//go:norace
func forkOnce() unix.Errno {
	pid, _, errno := syscall.RawSyscall(unix.SYS_FORK, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	if pid == 0 {
		for {
			syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
	}
	syscall.RawSyscall6(unix.SYS_WAIT4, pid, 0, 0, 0, 0, 0)
	return 0
}

// newStorm prepares operations on files in a folder.
func newStorm(dir string) (*storm, error) {
	var pair [2]int
	file, err := unix.Open(dir+"/open", unix.O_RDWR, 0)
	if err == nil {
		pair, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	}
	folder, folderErr := unix.Open(dir, unix.O_DIRECTORY, 0)
	memory, memoryErr := unix.MemfdCreate("m", 0)
	if err := errors.Join(err, folderErr, memoryErr); err != nil {
		return nil, err
	}
	fd := uintptr(file)
	buffer := make([]byte, 4096)
	data := uintptr(unsafe.Pointer(&buffer[0]))
	one := &buffer[0]
	open, names, text := cText(dir+"/open"), [2]uintptr{cText(dir + "/a"), cText(dir + "/b")}, cText(dir+"/text")
	root, null := cText("/"), []uintptr{0}
	address := unix.RawSockaddrInet4{Family: unix.AF_INET, Port: 0x0100, Addr: [4]byte{127, 0, 0, 1}}
	anywhere := unix.RawSockaddrInet4{Family: unix.AF_INET}
	s := &storm{write: 2}
	add := func(name string, do func() unix.Errno) { s.kinds = append(s.kinds, stormKind{name: name, do: do}) }
	add("open", func() unix.Errno {
		fd, _, errno := unix.RawSyscall(unix.SYS_OPEN, open, unix.O_RDONLY, 0)
		if errno == 0 {
			raw(unix.SYS_CLOSE, fd)
		}
		return errno
	})
	add("read", func() unix.Errno { return raw(unix.SYS_PREAD64, fd, data, 1, 0) })
	add("write", func() unix.Errno { return raw(unix.SYS_PWRITE64, fd, data, 1, 0) })
	add("list", func() unix.Errno { return raw(unix.SYS_GETDENTS64, uintptr(folder), data, 4096) })
	add("memory", func() unix.Errno { return raw(unix.SYS_PWRITE64, uintptr(memory), data, 1, 0) })
	made := []byte(dir + "/made00000000\x00")
	add("make", func() unix.Errno { // each time another one: to remove it may be refused
		for i := len(made) - 2; ; i-- {
			if made[i]++; made[i] <= '9' {
				break
			}
			made[i] = '0'
		}
		return raw(unix.SYS_MKDIR, uintptr(unsafe.Pointer(&made[0])), 0o755)
	})
	turn := 0
	add("rename", func() unix.Errno {
		errno := raw(unix.SYS_RENAME, names[turn], names[1-turn])
		if errno == 0 {
			turn = 1 - turn
		}
		return errno
	})
	add("chmod", func() unix.Errno { return raw(unix.SYS_CHMOD, open, 0o644) })
	add("truncate", func() unix.Errno { return raw(unix.SYS_FTRUNCATE, fd, 100) })
	add("map", func() unix.Errno {
		at, _, errno := unix.RawSyscall6(unix.SYS_MMAP, 0, 4096, unix.PROT_READ, unix.MAP_PRIVATE, fd, 0)
		if errno == 0 {
			raw(unix.SYS_MUNMAP, at, 4096)
		}
		return errno
	})
	add("send", func() unix.Errno {
		errno := raw(unix.SYS_SENDTO, uintptr(pair[0]), data, 1, unix.MSG_DONTWAIT, 0, 0)
		if errno == unix.EPERM {
			return errno
		}
		return 0
	})
	add("receive", func() unix.Errno { return raw(unix.SYS_RECVFROM, uintptr(pair[1]), data, 1, unix.MSG_DONTWAIT, 0, 0) })
	withSocket := func(kind uintptr, do func(fd uintptr) unix.Errno) unix.Errno {
		fd, _, errno := unix.RawSyscall(unix.SYS_SOCKET, unix.AF_INET, kind, 0)
		if errno == 0 {
			errno = do(fd)
			raw(unix.SYS_CLOSE, fd)
		}
		return errno
	}
	add("connect", func() unix.Errno {
		return withSocket(unix.SOCK_STREAM|unix.SOCK_NONBLOCK, func(fd uintptr) unix.Errno {
			return raw(unix.SYS_CONNECT, fd, uintptr(unsafe.Pointer(&address)), unsafe.Sizeof(address))
		})
	})
	add("bind", func() unix.Errno {
		return withSocket(unix.SOCK_DGRAM, func(fd uintptr) unix.Errno {
			return raw(unix.SYS_BIND, fd, uintptr(unsafe.Pointer(&anywhere)), unsafe.Sizeof(anywhere))
		})
	})
	add("accept", func() unix.Errno {
		return withSocket(unix.SOCK_STREAM|unix.SOCK_NONBLOCK, func(fd uintptr) unix.Errno {
			return raw(unix.SYS_ACCEPT, fd, 0, 0)
		})
	})
	add("fork", forkOnce)
	// A file of no format: who may run it gets ENOEXEC.
	add("exec", func() unix.Errno {
		return raw(unix.SYS_EXECVE, text, uintptr(unsafe.Pointer(&null[0])), uintptr(unsafe.Pointer(&null[0])))
	})
	add("signal", func() unix.Errno { return raw(unix.SYS_KILL, uintptr(os.Getpid()), 0) })
	add("ioctl", func() unix.Errno { return raw(unix.SYS_IOCTL, fd, unix.TIOCINQ, data) })
	add("lock", func() unix.Errno { return raw(unix.SYS_FLOCK, fd, unix.LOCK_SH|unix.LOCK_NB) })
	add("chroot", func() unix.Errno { return raw(unix.SYS_CHROOT, root) })
	runtime.KeepAlive(one)
	return s, nil
}

// runStorm storms until it was refused for a while, and then no more.
func runStorm(dir string) error {
	debug.SetGCPercent(-1)
	runtime.GOMAXPROCS(1)
	s, err := newStorm(dir)
	if err != nil {
		return err
	}
	const patience = int64(120e9)
	write := &s.kinds[s.write]
	began, after := monotonic(), 0
	for after < 50 && monotonic()-began < patience {
		for i := range s.kinds {
			s.kinds[i].once()
		}
		if write.refused > 0 && write.last > write.refusedLast {
			after++
		}
	}
	var out strings.Builder
	for _, k := range s.kinds {
		fmt.Fprintf(&out, "%s %d %d %d;", k.name, k.from, k.to, k.refused)
	}
	return errors.New(out.String())
}

func (k *stormKind) once() {
	at := monotonic()
	if errno := k.do(); errno == unix.EPERM {
		if k.refused == 0 {
			k.from = k.last
		}
		k.refused++
		k.refusedLast = at
		return
	}
	if k.refused > 0 && k.to == 0 {
		k.to = monotonic()
	}
	k.last = at
}
