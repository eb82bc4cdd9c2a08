// SPDX-License-Identifier: Apache-2.0

package sockpeer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Of linux/inet_diag.h; the numbers are the kernel's ABI.
const (
	inetDiagCgroupID = 21
	inetDiagMsgSize  = 72
	netlinkHeader    = 16
	noCookie         = ^uint32(0)
)

// socketCgroup asks the kernel for the cgroup in which the TCP socket was made that has
// the address local and is connected to remote. Both are of this network namespace.
func socketCgroup(local, remote netip.AddrPort) (uint64, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return 0, fmt.Errorf("ask for a socket's cgroup: %w", err)
	}
	defer unix.Close(fd)
	timeout := unix.Timeval{Sec: 2}
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout); err != nil {
		return 0, fmt.Errorf("ask for a socket's cgroup: %w", err)
	}
	if err := unix.Sendto(fd, diagRequest(local, remote), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, fmt.Errorf("ask for a socket's cgroup: %w", err)
	}
	answer := make([]byte, 8192)
	n, from, err := unix.Recvfrom(fd, answer, 0)
	if err != nil {
		return 0, fmt.Errorf("ask for a socket's cgroup: %w", err)
	}
	if sender, is := from.(*unix.SockaddrNetlink); !is || sender.Pid != 0 {
		return 0, errors.New("ask for a socket's cgroup: the answer is not the kernel's")
	}
	return diagCgroup(answer[:n])
}

// diagRequest is a SOCK_DIAG_BY_FAMILY for one socket.
func diagRequest(local, remote netip.AddrPort) []byte {
	var b bytes.Buffer
	put := func(values ...any) {
		for _, v := range values {
			_ = binary.Write(&b, binary.NativeEndian, v) // into memory
		}
	}
	family := uint8(unix.AF_INET)
	if local.Addr().Is6() {
		family = unix.AF_INET6
	}
	put(uint32(netlinkHeader+56), uint16(unix.SOCK_DIAG_BY_FAMILY), uint16(unix.NLM_F_REQUEST), uint32(1), uint32(0))
	put(family, uint8(unix.IPPROTO_TCP), uint8(0), uint8(0), ^uint32(0)) // in every state
	_ = binary.Write(&b, binary.BigEndian, []uint16{local.Port(), remote.Port()})
	for _, a := range []netip.Addr{local.Addr(), remote.Addr()} {
		var raw [16]byte
		copy(raw[:], a.AsSlice())
		b.Write(raw[:])
	}
	put(uint32(0), noCookie, noCookie)
	return b.Bytes()
}

// diagCgroup reads the cgroup from an answer.
func diagCgroup(answer []byte) (uint64, error) {
	if len(answer) < netlinkHeader+4 {
		return 0, errors.New("ask for a socket's cgroup: the answer is cut")
	}
	length, kind := binary.NativeEndian.Uint32(answer), binary.NativeEndian.Uint16(answer[4:])
	if kind == unix.NLMSG_ERROR {
		return 0, fmt.Errorf("ask for a socket's cgroup: %w", unix.Errno(-int32(binary.NativeEndian.Uint32(answer[netlinkHeader:]))))
	}
	if int(length) > len(answer) || length < netlinkHeader+inetDiagMsgSize {
		return 0, errors.New("ask for a socket's cgroup: the answer is cut")
	}
	for rest := answer[netlinkHeader+inetDiagMsgSize : length]; len(rest) >= 4; {
		size, attribute := int(binary.NativeEndian.Uint16(rest)), binary.NativeEndian.Uint16(rest[2:])
		if size < 4 || size > len(rest) {
			break
		}
		if attribute == inetDiagCgroupID && size == 12 {
			return binary.NativeEndian.Uint64(rest[4:]), nil
		}
		rest = rest[min((size+3)&^3, len(rest)):]
	}
	return 0, errors.New("ask for a socket's cgroup: the kernel does not tell it")
}
