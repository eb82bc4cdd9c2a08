// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// flowStep does what moves data, or changes files, in ways of its own.
func (s *actorState) flowStep(op string, args []string) error {
	switch op {
	case "punch": // FD: a hole in a file
		return unix.Fallocate(s.fd(args[0]), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, 2)
	case "pwrite": // FD
		_, err := unix.Pwrite(s.fd(args[0]), []byte("y"), 0)
		return err
	case "free": // FD: a hole, as XFS has it made
		return freeSpace(s.fd(args[0]))
	case "aio": // FD
		return writeAsync(s.fd(args[0]))
	case "completions": // a ring of AIO, which stays
		var context uintptr
		_, _, errno := unix.Syscall(unix.SYS_IO_SETUP, 1, uintptr(unsafe.Pointer(&context)), 0)
		return errnoError(errno)
	case "number": // NAME: answers with the descriptor's number
		return errors.New(strconv.Itoa(s.fd(args[0])))
	case "borrow": // NAME PID NUMBER: another process's descriptor
		return s.borrow(args[0], args[1], args[2])
	case "look at", "change": // FD, of a process's memory; its environment is as well at 0
		at, word := int64(uintptr(unsafe.Pointer(&sharedWord))), make([]byte, 8)
		if op == "change" {
			_, err := unix.Pwrite(s.fd(args[0]), word, at)
			return err
		}
		_, err := unix.Pread(s.fd(args[0]), word, at)
		if err == nil {
			_, err = unix.Pread(s.fd(args[0]), word, 0)
		}
		if errors.Is(err, unix.EIO) { // nothing is mapped at 0
			return nil
		}
		return err
	case "zerocopy": // SOCKET
		return unix.SetsockoptInt(s.fd(args[0]), unix.SOL_SOCKET, unix.SO_ZEROCOPY, 1)
	case "sendzerocopy": // SOCKET
		return unix.Send(s.fd(args[0]), make([]byte, 4096), unix.MSG_ZEROCOPY)
	case "zcreceive": // SOCKET
		return receiveZeroCopy(s.fd(args[0]))
	}
	return errNoStep
}

func (s *actorState) borrow(name, process, number string) error {
	pid, err := strconv.Atoi(process)
	if err != nil {
		return err
	}
	fd, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	other, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	defer unix.Close(other)
	fd, err = unix.PidfdGetfd(other, fd, 0)
	return s.keep(name, fd, err)
}

// receiveZeroCopy takes what is there by TCP_ZEROCOPY_RECEIVE, which copies small data;
// see struct tcp_zerocopy_receive of include/uapi/linux/tcp.h.
func receiveZeroCopy(fd int) error {
	const option = 35
	buffer := make([]byte, 64)
	receive := struct {
		address             uint64
		length, skip, queue uint32
		err                 int32
		buffer              uint64
		size                int32
		flags               uint32
		_                   [3]uint64
	}{length: 4096, buffer: uint64(uintptr(unsafe.Pointer(&buffer[0]))), size: int32(len(buffer))}
	size := uint32(unsafe.Sizeof(receive))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.IPPROTO_TCP, option,
		uintptr(unsafe.Pointer(&receive)), uintptr(unsafe.Pointer(&size)), 0)
	if errno == 0 && buffer[0] == 0 {
		return errors.New("nothing came")
	}
	return errnoError(errno)
}

// freeSpace is FS_IOC_UNRESVSP of include/linux/falloc.h.
func freeSpace(fd int) error {
	const unreserve = 0x4030582b // _IOW('X', 43, struct space_resv)
	space := struct {
		kind, whence  int16
		start, length int64
		_             [6]int32
	}{length: 2}
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unreserve, uintptr(unsafe.Pointer(&space)))
	return errnoError(errno)
}

// aioControl is struct iocb of include/uapi/linux/aio_abi.h, as far as it is used.
type aioControl struct {
	_            [2]uint64
	op, _        uint16
	fd           uint32
	buffer, size uint64
	_            [3]uint64
}

// writeAsync writes a byte by AIO.
func writeAsync(fd int) error {
	var context uintptr
	if _, _, errno := unix.Syscall(unix.SYS_IO_SETUP, 1, uintptr(unsafe.Pointer(&context)), 0); errno != 0 {
		return errno
	}
	defer func() { _, _, _ = unix.Syscall(unix.SYS_IO_DESTROY, context, 0, 0) }()
	const write = 1
	text := []byte("y")
	control := &aioControl{op: write, fd: uint32(fd), buffer: uint64(uintptr(unsafe.Pointer(&text[0]))), size: 1}
	if _, _, errno := unix.Syscall(unix.SYS_IO_SUBMIT, context, 1, uintptr(unsafe.Pointer(&control))); errno != 0 {
		return errno
	}
	var event struct{ data, object, result, more int64 }
	if _, _, errno := unix.Syscall6(unix.SYS_IO_GETEVENTS, context, 1, 1, uintptr(unsafe.Pointer(&event)), 0, 0); errno != 0 {
		return errno
	}
	if event.result < 0 {
		return syscall.Errno(-event.result)
	}
	return nil
}
