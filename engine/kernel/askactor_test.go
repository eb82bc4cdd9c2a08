// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// runAs runs a program as another user, in another directory or with another
// environment.
func runAs(how string, args []string) error {
	cmd := exec.Command(args[0], args[1:]...)
	key, value, _ := strings.Cut(how, "=")
	switch key {
	case "uid":
		uid, err := strconv.Atoi(value)
		if err != nil {
			return err
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	case "dir":
		cmd.Dir = value
	case "env":
		cmd.Env = append(os.Environ(), value)
	}
	return cmd.Run()
}

// sendMany sends two datagrams, with one system call if it may, and returns the error
// that the socket has noted then.
func sendMany(first, second string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	type message struct {
		header unix.Msghdr
		sent   uint32
		_      uint32
	}
	text := []byte("x")
	var messages [2]message
	var addresses [2]unix.RawSockaddrInet4
	for i, address := range []string{first, second} {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		addresses[i] = unix.RawSockaddrInet4{Family: unix.AF_INET, Port: to.Port()<<8 | to.Port()>>8, Addr: to.Addr().As4()}
		part := &unix.Iovec{Base: &text[0], Len: 1}
		messages[i].header = unix.Msghdr{
			Name: (*byte)(unsafe.Pointer(&addresses[i])), Namelen: unix.SizeofSockaddrInet4, Iov: part, Iovlen: 1,
		}
	}
	for sent := 0; sent < len(messages); {
		n, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&messages[sent])), uintptr(len(messages)-sent), 0, 0, 0)
		if errno != 0 {
			return errno
		}
		sent += int(n)
	}
	code, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && code != 0 {
		err = syscall.Errno(code)
	}
	return err
}
