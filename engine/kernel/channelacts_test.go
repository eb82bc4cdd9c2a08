// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An actor's steps with channels. Descriptors have names; all are blocking.

var errNoStep = errors.New("unknown step")

// channelStep does a step that is about a channel.
func (s *actorState) channelStep(op string, args []string) error {
	for _, part := range []func(string, []string) error{s.makeStep, s.socketStep, s.moveStep, s.memoryStep, s.waitStep, s.uringStep, s.familyStep, s.compatStep, s.flowStep, s.storeStep} {
		if err := part(op, args); !errors.Is(err, errNoStep) {
			return err
		}
	}
	return errors.New("unknown step " + op)
}

func (s *actorState) keep(name string, fd int, err error) error {
	if err != nil {
		return err
	}
	if s.fds == nil {
		s.fds = map[string]int{}
	}
	s.fds[name] = fd
	return nil
}

// makeStep makes descriptors.
func (s *actorState) makeStep(op string, args []string) error {
	switch op {
	case "pair": // a socket pair: TYPE, and two names
		fds, err := unix.Socketpair(unix.AF_UNIX, socketType(args[0]), 0)
		return errors.Join(s.keep(args[1], fds[0], err), s.keep(args[2], fds[1], err))
	case "pipe":
		var fds [2]int
		err := unix.Pipe(fds[:])
		return errors.Join(s.keep(args[0], fds[0], err), s.keep(args[1], fds[1], err))
	case "openfd": // NAME PATH FLAGS
		flags := map[string]int{"r": unix.O_RDONLY, "w": unix.O_WRONLY | unix.O_CREAT, "rw": unix.O_RDWR | unix.O_CREAT, "a": unix.O_WRONLY | unix.O_APPEND}[args[2]]
		fd, err := unix.Open(args[1], flags, 0o644)
		return s.keep(args[0], fd, err)
	case "writeelsewhere": // NAME: by another thread than the one that opened it
		return s.writeElsewhere(args[0])
	case "errors": // standard error becomes a descriptor
		return unix.Dup2(s.fds[args[0]], 2)
	case "memory": // a memfd
		fd, err := unix.MemfdCreate("m", 0)
		if err == nil {
			err = unix.Ftruncate(fd, 4096)
		}
		return s.keep(args[0], fd, err)
	case "terminal": // the master, the slave
		return s.terminal(args[0], args[1])
	case "terminalnumber": // answered as the error
		n, err := unix.IoctlGetInt(s.fds[args[0]], unix.TIOCGPTN)
		if err != nil {
			return err
		}
		return errors.New(strconv.Itoa(n))
	case "socket": // whether one can be made at all: FAMILY TYPE PROTOCOL
		var n [3]int
		for i := range n {
			n[i], _ = strconv.Atoi(args[i])
		}
		fd, err := unix.Socket(n[0], n[1], n[2])
		if err == nil {
			err = unix.Close(fd)
		}
		return err
	case "closefd":
		fd := s.fds[args[0]]
		delete(s.fds, args[0])
		return unix.Close(fd)
	}
	return errNoStep
}

func (s *actorState) terminal(master, slave string) error {
	m, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY, 0)
	if err := s.keep(master, m, err); err != nil {
		return err
	}
	if err := unix.IoctlSetPointerInt(m, unix.TIOCSPTLCK, 0); err != nil {
		return err
	}
	const peer = 0x5441 // TIOCGPTPEER: needs no /dev/pts
	fd, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(m), peer, unix.O_RDWR|unix.O_NOCTTY)
	if errno != 0 {
		return errno
	}
	return s.keep(slave, int(fd), nil)
}

func socketType(name string) int {
	return map[string]int{"stream": unix.SOCK_STREAM, "dgram": unix.SOCK_DGRAM, "seqpacket": unix.SOCK_SEQPACKET}[name]
}

const forExperiments = 253 // an IP protocol, RFC 3692

// address reads "KIND ADDRESS", where KIND is tcp, udp, mptcp, raw (with a port that means
// nothing), netlink (a number), stream, dgram or seqpacket.
func address(kind, text string) (family, typ, protocol int, to unix.Sockaddr, err error) {
	if typ := socketType(kind); typ != 0 {
		return unix.AF_UNIX, typ, 0, &unix.SockaddrUnix{Name: text}, nil
	}
	if kind == "netlink" {
		number, err := strconv.Atoi(text)
		return unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_USERSOCK,
			&unix.SockaddrNetlink{Family: unix.AF_NETLINK, Pid: uint32(number)}, err
	}
	at, err := netip.ParseAddrPort(text)
	if err != nil {
		return 0, 0, 0, nil, err
	}
	typ = unix.SOCK_STREAM
	switch kind {
	case "udp":
		typ = unix.SOCK_DGRAM
	case "mptcp":
		protocol = unix.IPPROTO_MPTCP
	case "raw":
		typ, protocol = unix.SOCK_RAW, forExperiments
	}
	if at.Addr().Is4() {
		return unix.AF_INET, typ, protocol, &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}, nil
	}
	return unix.AF_INET6, typ, protocol, &unix.SockaddrInet6{Port: int(at.Port()), Addr: at.Addr().As16()}, nil
}

// socketStep is about sockets with names: NAME KIND ADDRESS.
func (s *actorState) socketStep(op string, args []string) error {
	switch op {
	case "serve", "reach", "sendat", "fastopen":
	case "accept": // NAME SOCKET
		fd, _, err := unix.Accept(s.fds[args[1]])
		return s.keep(args[0], fd, err)
	case "unreach": // an AF_UNSPEC reconnect
		var none [16]byte
		_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(s.fds[args[0]]), uintptr(unsafe.Pointer(&none)), 16)
		return errnoError(errno)
	default:
		return errNoStep
	}
	family, typ, protocol, to, err := address(args[1], args[2])
	if err != nil {
		return err
	}
	fd, ok := s.fds[args[0]]
	if !ok {
		if fd, err = unix.Socket(family, typ, protocol); err != nil {
			return err
		}
	}
	switch op {
	case "serve":
		if err = unix.Bind(fd, to); err == nil && typ != unix.SOCK_DGRAM && typ != unix.SOCK_RAW {
			err = unix.Listen(fd, 8)
		}
	case "reach":
		err = unix.Connect(fd, to)
	case "sendat":
		err = unix.Sendto(fd, []byte("x"), 0, to)
	case "fastopen":
		err = unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, to)
	}
	return s.keep(args[0], fd, err)
}

func errnoError(errno syscall.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}

// moveStep moves data: between memory and descriptors, and between descriptors.
func (s *actorState) moveStep(op string, args []string) error {
	fd, second := -1, -1
	if len(args) > 0 {
		fd = s.fd(args[0])
	}
	if len(args) > 1 {
		second = s.fd(args[1])
	}
	switch op {
	case "get":
		_, err := unix.Read(fd, make([]byte, 64))
		return err
	case "putfd":
		_, err := unix.Write(fd, []byte("hello\n"))
		return err
	case "receive":
		_, _, err := unix.Recvfrom(fd, make([]byte, 64), 0)
		return err
	case "sendmany": // sendmmsg
		return sendPair(fd)
	case "splice": // FROM TO
		_, err := unix.Splice(fd, nil, second, nil, 1, 0)
		return err
	case "tee":
		_, err := unix.Tee(fd, second, 1, 0)
		return err
	case "vmsplice":
		text := []byte("x")
		vector := unix.Iovec{Base: &text[0], Len: 1}
		_, err := unix.Vmsplice(fd, []unix.Iovec{vector}, 0)
		return err
	case "sendfile": // TO FROM
		_, err := unix.Sendfile(fd, second, nil, 1)
		return err
	case "copyrange": // FROM TO
		_, err := unix.CopyFileRange(fd, nil, second, nil, 1, 0)
		return err
	case "give": // SOCKET FD
		return unix.Sendmsg(fd, []byte("x"), unix.UnixRights(second), nil, 0)
	case "take": // SOCKET NAME
		return s.take(fd, args[1])
	}
	return errNoStep
}

// fd is a descriptor by its name, or by its number.
func (s *actorState) fd(name string) int {
	if fd, ok := s.fds[name]; ok {
		return fd
	}
	if fd, err := strconv.Atoi(name); err == nil {
		return fd
	}
	return -1
}

func (s *actorState) take(socket int, name string) error {
	control := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(socket, make([]byte, 1), control, 0)
	if err != nil {
		return err
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil || len(messages) != 1 {
		return fmt.Errorf("no descriptor came: %w", err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return err
	}
	return s.keep(name, fds[0], nil)
}

func sendPair(fd int) error {
	text := []byte("x")
	vector := unix.Iovec{Base: &text[0], Len: 1}
	type message struct {
		unix.Msghdr
		length uint32
		_      [4]byte
	}
	messages := make([]message, 2)
	for i := range messages {
		messages[i].Iov, messages[i].Iovlen = &vector, 1
	}
	_, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&messages[0])), 2, 0, 0, 0)
	return errnoError(errno)
}

// memoryStep is about memory of more than one process.
func (s *actorState) memoryStep(op string, args []string) error {
	switch op {
	case "mapwrite", "mapread", "mapprivate": // FD
		protection, kind := unix.PROT_READ, unix.MAP_SHARED
		if op == "mapwrite" {
			protection |= unix.PROT_WRITE
		}
		if op == "mapprivate" {
			kind = unix.MAP_PRIVATE
		}
		_, err := unix.Mmap(s.fd(args[0]), 0, 4096, protection, kind)
		return err
	case "segment": // KEY: System V shared memory, made and attached
		key, _ := strconv.Atoi(args[0])
		id, err := unix.SysvShmGet(key, 4096, unix.IPC_CREAT|0o600)
		if err == nil {
			_, err = unix.SysvShmAttach(id, 0, 0)
		}
		return err
	case "queue": // put or get, KEY: a System V queue
		return queue(args[0], args[1])
	case "mailbox": // NAME: a POSIX queue
		name := append([]byte(args[0]), 0)
		_, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(&name[0])), unix.O_RDWR|unix.O_CREAT, 0o600, 0, 0, 0)
		return errnoError(errno)
	case "vmread", "vmwrite", "seize", "memfile", "environ", "getfd": // PID
		return s.reachInto(op, args)
	}
	return errNoStep
}

func queue(op, text string) error {
	key, _ := strconv.Atoi(text)
	id, _, errno := unix.Syscall(unix.SYS_MSGGET, uintptr(key), unix.IPC_CREAT|0o600, 0)
	if errno != 0 {
		return errno
	}
	message := struct {
		kind int64
		text [8]byte
	}{kind: 1}
	number := uintptr(unix.SYS_MSGSND)
	if op == "get" {
		number = unix.SYS_MSGRCV
	}
	_, _, errno = unix.Syscall6(number, id, uintptr(unsafe.Pointer(&message)), 8, 0, 0, 0)
	return errnoError(errno)
}

// reachInto looks into another process, at an address that every actor has.
func (s *actorState) reachInto(op string, args []string) error {
	pid, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	var own [8]byte
	local := []unix.Iovec{{Base: &own[0], Len: 8}}
	remote := []unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(&sharedWord)), Len: 8}}
	switch op {
	case "vmread":
		_, err = unix.ProcessVMReadv(pid, local, remote, 0)
	case "vmwrite":
		_, err = unix.ProcessVMWritev(pid, local, remote, 0)
	case "seize":
		err = seize(pid)
	case "memfile":
		_, err = os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	case "environ":
		_, err = os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	case "getfd":
		var other int
		if other, err = unix.PidfdOpen(pid, 0); err == nil {
			_, err = unix.PidfdGetfd(other, 0, 0)
		}
	}
	return err
}

// seize traces a process, and lets it go on: a traced one stops at each signal.
func seize(pid int) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.PtraceSeize(pid); err != nil {
		return err
	}
	if err := unix.PtraceInterrupt(pid); err != nil {
		return err
	}
	if _, err := unix.Wait4(pid, nil, unix.WALL, nil); err != nil {
		return err
	}
	return unix.PtraceDetach(pid)
}

// The tests' program is linked to fixed addresses.
var sharedWord [8]byte

// waitStep begins a step in a thread of its own, and looks how it ended.
func (s *actorState) waitStep(op string, args []string) error {
	switch op {
	case "begin":
		done := make(chan error, 1)
		s.begun = done
		started := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(started)
			done <- s.step(args)
		}()
		<-started
		return nil
	case "finish":
		return <-s.begun
	case "waits": // until some thread of this process reads or receives
		return untilIn("0", "45")
	case "passing": // until one splices, tees or sends a file
		return untilIn("275", "276", "40")
	}
	return errNoStep
}

// untilIn returns when another thread is in one of some system calls, for a descriptor
// that is not standard input.
func untilIn(numbers ...string) error {
	for range 100_000 {
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		for _, thread := range threads {
			call, _ := os.ReadFile("/proc/self/task/" + thread.Name() + "/syscall")
			number, rest, _ := bytes.Cut(call, []byte(" "))
			if slices.Contains(numbers, string(number)) {
				if fd, _, _ := bytes.Cut(rest, []byte(" ")); !bytes.Equal(fd, []byte("0x0")) {
					return nil
				}
			}
		}
		runtime.Gosched()
	}
	return errors.New("nothing waits")
}

// freePort returns a port of the loopback that nobody has.
func freePort() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer listener.Close()
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port), nil
}

// writeElsewhere writes to a descriptor by another thread.
func (s *actorState) writeElsewhere(name string) error {
	runtime.LockOSThread() // so that the other goroutine has to be on another
	defer runtime.UnlockOSThread()
	done := make(chan error)
	go func() {
		_, err := unix.Write(s.fds[name], []byte("x"))
		done <- err
	}()
	return <-done
}
