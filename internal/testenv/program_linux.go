// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// tryProgram loads the shortest program there is, "r0 = 0; exit", of the syscall
// type. It uses the system call itself: this package may import no BPF library,
// and what is to be found out is what the kernel says.
func tryProgram() error {
	code := [...]uint64{0x00000000000000b7, 0x0000000000000095}
	license := [...]byte{'G', 'P', 'L', 0}
	// The first fields of union bpf_attr for BPF_PROG_LOAD; what is beyond is zero.
	attr := struct {
		progType    uint32
		insnCnt     uint32
		insns       uint64
		license     uint64
		logLevel    uint32
		logSize     uint32
		logBuf      uint64
		kernVersion uint32
		progFlags   uint32
	}{
		progType: unix.BPF_PROG_TYPE_SYSCALL,
		insnCnt:  uint32(len(code)),
		insns:    uint64(uintptr(unsafe.Pointer(&code[0]))),
		license:  uint64(uintptr(unsafe.Pointer(&license[0]))),
		// Programs of this type must be sleepable.
		progFlags: unix.BPF_F_SLEEPABLE,
	}
	fd, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_LOAD, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	// The verifier gives up when a signal comes, such as those by which Go preempts.
	for tries := 0; errno == unix.EAGAIN && tries < 100; tries++ {
		fd, _, errno = unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_LOAD, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	}
	runtime.KeepAlive(&code)
	runtime.KeepAlive(&license)
	if errno != 0 {
		return fmt.Errorf("load a program: %w", errno)
	}
	return unix.Close(int(fd))
}
