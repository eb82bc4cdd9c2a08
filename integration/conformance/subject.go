// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// answerTimeout is for one step. The machines are emulated, and slow.
const answerTimeout = 2 * time.Minute

// errGone is an actor that has ended.
var errGone = errors.New("the process is gone")

// subject is a process of the container that does what it is told.
type subject struct {
	name    string
	parent  *subject
	number  int // of its channel
	channel int // our end
	pid     int // as this machine numbers it
	inside  int // as the container does
	pidfd   int // -1 before it is there
	sockets map[string]int
	files   map[string]int
}

// newChannel makes the two ends of a channel, of a socket pair that was there before the
// scope was: no name and no file of the container's, so that no rule is about it, and no
// process of the scope at the other end, so that labels do not come back from there. The
// kernel puts the sender's pid to each message, as this machine numbers it. A stream,
// where messages begin with their sizes: to the end that is to have pids, the kernel
// would otherwise give a name with the first message that it sends.
func newChannel() (ours, theirs int, err error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, -1, fmt.Errorf("make a channel: %w", err)
	}
	if err := unix.SetsockoptInt(ends[0], unix.SOL_SOCKET, unix.SO_PASSCRED, 1); err != nil {
		return -1, -1, fmt.Errorf("make a channel: %w", err)
	}
	return ends[0], ends[1], nil
}

// awaitReady waits until the process is there, after a fork or an exec.
func (s *subject) awaitReady() error {
	text, err := s.receive()
	if err != nil {
		return err
	}
	inside, ok := strings.CutPrefix(text, "ready ")
	if !ok {
		return fmt.Errorf("%s says %q, and not that it is ready", s.name, text)
	}
	s.inside, err = strconv.Atoi(inside)
	return err
}

// do sends a command and returns the answer: 0, an errno, or errGone.
func (s *subject) do(words ...string) (syscall.Errno, error) {
	if err := s.send(words); err != nil {
		return 0, err
	}
	text, err := s.receive()
	if err != nil {
		return 0, err
	}
	if op, _, _ := strings.Cut(words[0], "@"); op == "exec" && strings.HasPrefix(text, "ready ") {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%s answers %q", s.name, text)
	}
	return syscall.Errno(n), nil
}

func (s *subject) send(words []string) error {
	text := strings.Join(words, "\x00") + "\x00"
	message := append(binary.NativeEndian.AppendUint32(nil, uint32(len(text))), text...)
	if err := unix.Send(s.channel, message, unix.MSG_NOSIGNAL); err != nil {
		return fmt.Errorf("tell %s: %w", s.name, err)
	}
	return nil
}

// receive waits for a message or for the end of the process.
func (s *subject) receive() (string, error) {
	deadline := time.Now().Add(answerTimeout)
	for {
		polled := []unix.PollFd{{Fd: int32(s.channel), Events: unix.POLLIN}, {Fd: int32(s.pidfd), Events: unix.POLLIN}}
		n, err := unix.Poll(polled, int(time.Until(deadline).Milliseconds()))
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return "", fmt.Errorf("wait for %s: %w", s.name, err)
		case n == 0:
			return "", fmt.Errorf("%s does not answer", s.name)
		case polled[0].Revents&unix.POLLIN != 0: // what it said last comes before its end
			return s.read()
		case polled[1].Revents != 0 || polled[0].Revents != 0:
			return "", errGone
		}
	}
}

func (s *subject) read() (string, error) {
	size, control := make([]byte, 4), make([]byte, unix.CmsgSpace(unix.SizeofUcred))
	n, controlSize, _, _, err := unix.Recvmsg(s.channel, size, control, unix.MSG_CMSG_CLOEXEC|unix.MSG_WAITALL)
	if err != nil {
		return "", fmt.Errorf("hear %s: %w", s.name, err)
	}
	if n < len(size) {
		return "", errGone
	}
	message := make([]byte, binary.NativeEndian.Uint32(size))
	if n, _, err = unix.Recvfrom(s.channel, message, unix.MSG_WAITALL); err != nil || n < len(message) {
		return "", fmt.Errorf("hear %s: %d bytes of %d, %v", s.name, n, len(message), err)
	}
	controls, err := unix.ParseSocketControlMessage(control[:controlSize])
	if err != nil || len(controls) != 1 {
		return "", fmt.Errorf("%s does not say who it is: %v", s.name, err)
	}
	sender, err := unix.ParseUnixCredentials(&controls[0])
	if err != nil {
		return "", fmt.Errorf("%s does not say who it is: %w", s.name, err)
	}
	return string(message), s.is(int(sender.Pid))
}

// is notes which process the subject is.
func (s *subject) is(pid int) (err error) {
	if pid == s.pid && s.pidfd >= 0 {
		return nil
	}
	s.forget()
	s.pid = pid
	if s.pidfd, err = unix.PidfdOpen(pid, 0); err != nil {
		return fmt.Errorf("open process %d of %s: %w", pid, s.name, err)
	}
	return nil
}

func (s *subject) forget() {
	if s.pidfd >= 0 {
		_ = unix.Close(s.pidfd)
	}
	s.pidfd = -1
}

// ended tells whether the process has ended.
func (s *subject) ended() bool {
	polled := []unix.PollFd{{Fd: int32(s.pidfd), Events: unix.POLLIN}}
	n, err := unix.Poll(polled, 0)
	return s.pidfd < 0 || err == nil && n > 0
}
