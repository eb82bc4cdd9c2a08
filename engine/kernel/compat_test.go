// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"
)

// System calls of 32 bits, by their own numbers (arch/x86/entry/syscalls/syscall_32.tbl).
const (
	compatOpen      = 5
	compatVmsplice  = 316
	compatFallocate = 324
)

// compatCall is what compatCode gets: a system call's number, where its result will be, and
// its arguments.
type compatCall struct {
	number, bx, cx, dx, _, di, _ uint32 // without SI and BP, which are 0
}

// compatCode makes a system call by int 0x80, which a 64-bit program can do as well. It
// is called by Go's own convention: the first argument is in AX, and BP is to be kept.
var compatCode = []byte{
	0x55,             // push rbp
	0x49, 0x89, 0xc4, // mov r12, rax
	0x41, 0x8b, 0x04, 0x24, // mov eax, [r12]
	0x41, 0x8b, 0x5c, 0x24, 0x04, // mov ebx, [r12+4]
	0x41, 0x8b, 0x4c, 0x24, 0x08, // mov ecx, [r12+8]
	0x41, 0x8b, 0x54, 0x24, 0x0c, // mov edx, [r12+12]
	0x41, 0x8b, 0x74, 0x24, 0x10, // mov esi, [r12+16]
	0x41, 0x8b, 0x7c, 0x24, 0x14, // mov edi, [r12+20]
	0x41, 0x8b, 0x6c, 0x24, 0x18, // mov ebp, [r12+24]
	0xcd, 0x80, // int 0x80
	0x41, 0x89, 0x04, 0x24, // mov [r12], eax
	0x5d, // pop rbp
	0xc3, // ret
}

// do makes the system call. Pointers have to be of lowMemory.
func (c compatCall) do() (int, error) {
	code, err := unix.Mmap(-1, 0, len(compatCode), unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return 0, err
	}
	defer func() { _ = unix.Munmap(code) }()
	copy(code, compatCode)
	entry := unsafe.Pointer(&code[0])
	closure := unsafe.Pointer(&entry)
	(*(*func(*compatCall))(unsafe.Pointer(&closure)))(&c)
	if result := int32(c.number); result < 0 {
		return 0, unix.Errno(-result)
	}
	return int(c.number), nil
}

// lowMemory returns the address of a copy that 32 bits can tell.
func lowMemory(data []byte) (uint32, error) {
	memory, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_32BIT)
	if err != nil {
		return 0, err
	}
	copy(memory, data)
	return uint32(uintptr(unsafe.Pointer(&memory[0]))), nil
}

// compatStep does with calls of 32 bits what other steps do: "open32" NAME PATH (to read),
// "environ32" PID, "punch32" FD (makes a hole in a file) and "vmsplice32" PIPE.
func (s *actorState) compatStep(op string, args []string) error {
	switch op {
	case "open32":
		path, err := lowMemory([]byte(args[1] + "\x00"))
		if err != nil {
			return err
		}
		fd, err := compatCall{number: compatOpen, bx: path, cx: unix.O_RDONLY}.do()
		return s.keep(args[0], fd, err)
	case "environ32":
		if err := s.compatStep("open32", []string{"environ", "/proc/" + args[0] + "/environ"}); err != nil {
			return err
		}
		_, err := unix.Pread(s.fds["environ"], make([]byte, 64), 0)
		return err
	case "punch32":
		const hole = unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE
		_, err := compatCall{number: compatFallocate, bx: uint32(s.fd(args[0])), cx: hole, di: 2}.do()
		return err
	case "vmsplice32":
		text, err := lowMemory([]byte("x"))
		if err != nil {
			return err
		}
		vector, err := lowMemory(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, text), 1))
		if err != nil {
			return err
		}
		_, err = compatCall{number: compatVmsplice, bx: uint32(s.fd(args[0])), cx: vector, dx: 1}.do()
		return err
	}
	return errNoStep
}
