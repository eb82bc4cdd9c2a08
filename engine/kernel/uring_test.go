// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// include/uapi/linux/io_uring.h
const (
	uringFallocate        = 17
	uringOpen             = 18
	uringRead, uringWrite = 22, 23
	uringSend, uringRecv  = 26, 27
	uringSplice, uringTee = 30, 33
	uringAsync            = 1 << 4 // of an entry: by a worker
	uringPolled           = 1 << 1 // of a ring: by a thread of the kernel's
	uringEntries          = 0x10000000
	enterGet, enterWake   = 1, 2
)

type uringOffsets struct {
	head, tail, mask, entries, flags, dropped, array, _ uint32 // of completions dropped is where they begin
	_                                                   uint64
}

type uringParams struct {
	sqEntries, cqEntries, flags, cpu, idle, features, wq uint32
	_                                                    [3]uint32
	sq, cq                                               uringOffsets
}

type uringEntry struct {
	op, flags      uint8
	prio           uint16
	fd             int32
	offset, addr   uint64
	length, opFlag uint32
	user           uint64
	_              [2]uint16
	spliceFD       int32
	_              [2]uint64
}

// uring does one operation through a ring of its own, and returns its result: HOW is "",
// "worker" or "polled".
func uring(how string, op uint8, fd, second int, path string) (int, error) {
	params := uringParams{}
	if how == "polled" {
		params.flags, params.idle = uringPolled, 1000
	}
	ring, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 4, uintptr(unsafe.Pointer(&params)), 0)
	if errno != 0 {
		return 0, errno
	}
	defer unix.Close(int(ring))
	rings, err := unix.Mmap(int(ring), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return 0, err
	}
	entries, err := unix.Mmap(int(ring), uringEntries, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return 0, err
	}
	word := func(offset uint32) *uint32 { return (*uint32)(unsafe.Pointer(&rings[offset])) }
	data := make([]byte, 64)
	var pin runtime.Pinner
	pin.Pin(&data[0])
	defer pin.Unpin()
	entry := (*uringEntry)(unsafe.Pointer(&entries[0]))
	*entry = uringEntry{op: op, fd: int32(fd), addr: uint64(uintptr(unsafe.Pointer(&data[0]))), length: 1, offset: ^uint64(0)}
	if op == uringOpen { // the length is the mode
		name := append([]byte(path), 0)
		pin.Pin(&name[0])
		entry.addr, entry.length, entry.offset = uint64(uintptr(unsafe.Pointer(&name[0]))), 0, 0
	}
	if op == uringSplice || op == uringTee {
		entry.fd, entry.spliceFD, entry.addr = int32(second), int32(fd), ^uint64(0)
	}
	if op == uringSend || op == uringRecv {
		entry.offset = 0
	}
	switch op {
	case uringTee:
		entry.offset, entry.addr = 0, 0
	case uringFallocate: // the length is in the address, and the mode in the length
		entry.offset, entry.addr, entry.length = 0, 2, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE
	}
	if how == "worker" {
		entry.flags = uringAsync
	}
	*word(params.sq.array) = 0
	atomic.AddUint32(word(params.sq.tail), 1)
	submit, flags := uintptr(1), uintptr(enterGet)
	if how == "polled" {
		submit, flags = 0, enterGet|enterWake
	}
	for atomic.LoadUint32(word(params.cq.tail)) == 0 {
		if _, _, errno := unix.Syscall6(unix.SYS_IO_URING_ENTER, ring, submit, 1, flags, 0, 0); errno != 0 && errno != unix.EINTR {
			return 0, errno
		}
		submit = 0
	}
	result := *(*int32)(unsafe.Pointer(&rings[params.cq.dropped+8]))
	if result < 0 {
		return 0, syscall.Errno(-result)
	}
	return int(result), nil
}

// uringStep: HOW OPERATION FD [SECOND].
func (s *actorState) uringStep(op string, args []string) error {
	switch op {
	case "uring":
	case "uringopen": // HOW NAME PATH
		fd, err := uring(args[0], uringOpen, unix.AT_FDCWD, -1, args[2])
		return s.keep(args[1], fd, err)
	case "ring": // NAME [polled]: a ring
		params := uringParams{}
		if len(args) > 1 {
			params.flags, params.idle = uringPolled, 1000
		}
		ring, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 4, uintptr(unsafe.Pointer(&params)), 0)
		return s.keep(args[0], int(ring), errnoError(errno))
	case "mapring": // RING
		_, err := unix.Mmap(s.fd(args[0]), uringEntries, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		return err
	default:
		return errNoStep
	}
	second := -1
	if len(args) > 3 {
		second = s.fd(args[3])
	}
	number := map[string]uint8{"read": uringRead, "write": uringWrite, "send": uringSend, "recv": uringRecv, "splice": uringSplice, "tee": uringTee,
		"fallocate": uringFallocate}[args[1]]
	_, err := uring(args[0], number, s.fd(args[2]), second, "")
	return err
}

// io_uring's operations are seen as the system calls are, whether the caller, a worker or
// the ring's own thread does them.
func TestRings(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newChannelBench(t, tier)
		for _, how := range []string{"", "worker", "polled"} {
			other := b.actor()
			for _, c := range []struct{ put, get string }{{"write", "read"}, {"send", "recv"}} {
				from, to := b.connected("stream")
				from.want("ok", "putfd", "s")
				to.want("ok", "uring", how, c.get, "s")
				b.clean(to, how+" "+c.get+" of clean data")
				from.want("ok", "read", b.secret)
				from.want("ok", "uring", how, c.put, "s")
				to.want("ok", "uring", how, c.get, "s")
				b.labelled(to, how+" "+c.put+" and "+c.get)
			}
			from, to := b.actor(), b.actor()
			b.fifo(from, to)
			from.want("ok", "read", b.secret)
			from.want("ok", "uring", how, "write", "w")
			to.want("ok", "uring", how, "read", "r")
			b.labelled(to, how+" a pipe")
			for _, op := range []string{"splice", "tee"} {
				from, to := b.actor(), b.actor()
				b.fifo(from, to)
				from.want("ok", "read", b.secret)
				from.want("ok", "pipe", "r2", "w2")
				from.want("ok", "putfd", "w2")
				from.want("ok", "uring", how, op, "r2", "w")
				to.want("ok", "get", "r")
				b.labelled(to, how+" "+op)
			}
			file := b.file("uring")
			writer, reader := b.actor(), b.actor()
			writer.want("ok", "read", b.secret)
			writer.want("ok", "openfd", "f", file, "w")
			writer.want("ok", "uring", how, "write", "f")
			reader.want("ok", "read", file)
			b.labelled(reader, how+" a file")
			b.clean(other, how+" another process")
		}
	})
}
