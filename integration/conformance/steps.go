// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// outcome is what became of a step.
type outcome struct {
	errno syscall.Errno
	gone  bool // the process was killed
}

// actors acts out the steps of one case in its container.
type actors struct {
	box *container
	// What processes share, by its name: two descriptors that all have inherited.
	shared map[string][2]int
	next   int // free descriptor
	ways   ways
}

// ways chooses, by what a step says, which of the system calls that do the same is taken
// for it (see actor/ways.c), and whether io_uring may be; nil is the plain one for all.
type ways func(words []string) (way int, rings bool)

// of is a command with its way.
func (w ways) of(command string, words ...string) string {
	if w == nil {
		return command
	}
	way, rings := w(words)
	if !rings {
		return fmt.Sprintf("%s@%d-", command, way)
	}
	return fmt.Sprintf("%s@%d", command, way)
}

// firstDescriptor is above all channels.
const firstDescriptor = 200

// prepare makes what processes share, in the first of them.
func prepare(box *container, c *planned) (*actors, error) {
	a := &actors{box: box, shared: map[string][2]int{}, next: firstDescriptor, ways: box.ways}
	for _, step := range c.Steps {
		w := step.Words
		switch w[1] {
		case "pipe", "pipewrite", "piperead":
			kind := "pipe"
			if a.ways != nil {
				if way, _ := a.ways([]string{kind, w[2]}); way%2 == 1 {
					kind = "socketpair"
				}
			}
			if err := a.share(kind, "pipe "+w[2]); err != nil {
				return nil, err
			}
		case "shm":
			if err := a.share("share", "shm "+w[2]); err != nil {
				return nil, err
			}
		case "fdpass":
			if err := a.share("socketpair", "socket "+w[0]+" "+w[3]); err != nil {
				return nil, err
			}
		}
	}
	return a, nil
}

func (a *actors) share(op, name string) error {
	if _, ok := a.shared[name]; ok {
		return nil
	}
	pair := [2]int{a.descriptor(), a.descriptor()}
	a.shared[name] = pair
	words := []string{op, strconv.Itoa(pair[0]), strconv.Itoa(pair[1])}
	if op == "share" {
		words = []string{a.ways.of(op, name), words[1]}
	}
	errno, err := a.box.first.do(words...)
	if err == nil && errno != 0 {
		err = errno
	}
	if err != nil {
		return fmt.Errorf("make %s: %w", name, err)
	}
	return nil
}

func (a *actors) descriptor() int {
	a.next++
	return a.next - 1
}

// subject returns a process that is there: started from the container's first, or
// from its parent again when it was killed.
func (a *actors) subject(name string) (*subject, error) {
	s := a.box.subjects[name]
	if !s.ended() {
		return s, nil
	}
	parent := s.parent
	if parent == nil || parent.ended() {
		parent = a.box.first
	}
	return s, a.fork(parent, s)
}

// fork is a real one; the child has what its parent has.
func (a *actors) fork(parent, child *subject) error {
	child.forget()
	errno, err := parent.do(a.ways.of("fork", parent.name, "fork", child.name), strconv.Itoa(3+child.number))
	if err == nil && errno != 0 {
		err = errno
	}
	if err != nil {
		return fmt.Errorf("fork %s from %s: %w", child.name, parent.name, err)
	}
	child.sockets, child.files = map[string]int{}, map[string]int{}
	for name, fd := range parent.sockets {
		child.sockets[name] = fd
	}
	for name, fd := range parent.files {
		child.files[name] = fd
	}
	return child.awaitReady()
}

// act acts out a step. An error is one of the machinery, not of the step.
func (a *actors) act(words []string) (outcome, error) {
	s, err := a.subject(words[0])
	if err != nil {
		return outcome{}, err
	}
	op, args := words[1], words[2:]
	switch op {
	case "fork":
		child := a.box.subjects[args[0]]
		child.parent = s
		return outcome{}, a.fork(s, child)
	case "exit":
		return a.end(s, "exit", args[0])
	case "killed":
		n, err := signalNumber(args[0])
		if err != nil {
			return outcome{}, err
		}
		return a.end(s, "kill", strconv.Itoa(int(n)))
	case "execfails":
		return a.failingExec(s, args)
	case "fdpass":
		return a.pass(s, args[0], args[1])
	}
	command, done, err := a.command(s, op, args)
	if err != nil {
		return outcome{}, err
	}
	switch {
	case op == "execscript": // which has to find its interpreter and itself by their names
	case op == "shm": // as it was made
		command[0] = a.ways.of("share", "shm "+args[0])
		command[0] = "shm" + strings.TrimPrefix(command[0], "share")
	default:
		command[0] = a.ways.of(command[0], words...)
	}
	out, err := a.tell(s, command...)
	if err == nil && out == (outcome{}) && done != nil {
		done()
	}
	return out, err
}

// tell gives a command and takes the answer.
func (a *actors) tell(s *subject, command ...string) (outcome, error) {
	errno, err := s.do(command...)
	if errors.Is(err, errGone) {
		return outcome{gone: true}, nil
	}
	return outcome{errno: errno}, err
}

// end makes a process end, and waits for it.
func (a *actors) end(s *subject, command ...string) (outcome, error) {
	if err := s.send(command); err != nil {
		return outcome{}, err
	}
	text, err := s.receive()
	switch {
	case errors.Is(err, errGone):
		return outcome{}, nil
	case err != nil:
		return outcome{}, err
	}
	return outcome{}, fmt.Errorf("%s goes on after %s: %s", s.name, strings.Join(command, " "), text)
}

// failingExec makes the kernel refuse the image: for that long, from outside, the file
// is none.
func (a *actors) failingExec(s *subject, args []string) (outcome, error) {
	file, err := a.box.stage.open(args[0])
	if err != nil {
		return outcome{}, &unreachableError{fmt.Sprintf("%s is no program that can be spoilt: %v", args[0], err)}
	}
	defer file.Close()
	head := make([]byte, 4)
	if _, err := file.ReadAt(head, 0); err != nil {
		return outcome{}, &unreachableError{fmt.Sprintf("%s is no program: %v", args[0], err)}
	}
	if _, err := file.WriteAt([]byte("none"), 0); err != nil {
		return outcome{}, err
	}
	// A file that is open for writing cannot be run.
	if err := file.Close(); err != nil {
		return outcome{}, err
	}
	out, err := a.tell(s, append([]string{"exec"}, args...)...)
	if out.errno == unix.ENOEXEC {
		out.errno = 0
	} else if out == (outcome{}) && err == nil {
		err = fmt.Errorf("the kernel runs %s, which is none", args[0])
	}
	return out, errors.Join(err, a.box.stage.patch(args[0], head))
}

// open opens a file of the container from outside, for reading and writing.
func (s *stage) open(name string) (*os.File, error) {
	root, err := unix.Open(s.root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(root)
	fd, err := unix.Openat2(root, name, &unix.OpenHow{Flags: unix.O_RDWR | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

func (s *stage) patch(name string, head []byte) error {
	file, err := s.open(name)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(head, 0)
	return errors.Join(err, file.Close())
}

// pass hands a descriptor from one process to another.
func (a *actors) pass(from *subject, name, to string) (outcome, error) {
	receiver, err := a.subject(to)
	if err != nil {
		return outcome{}, err
	}
	pair := a.shared["socket "+from.name+" "+to]
	fd := strconv.Itoa(from.files[name])
	out, err := a.tell(from, "give", strconv.Itoa(pair[0]), fd)
	if err != nil || out != (outcome{}) {
		return out, err
	}
	own := a.descriptor()
	out, err = a.tell(receiver, "take", strconv.Itoa(pair[1]), strconv.Itoa(own))
	if out == (outcome{}) && err == nil {
		receiver.files[name] = own
	}
	return out, err
}

func signalNumber(text string) (syscall.Signal, error) {
	if n, err := strconv.Atoi(text); err == nil && n > 0 && n < 65 {
		return syscall.Signal(n), nil
	}
	if n := unix.SignalNum("SIG" + strings.TrimPrefix(strings.ToUpper(text), "SIG")); n != 0 {
		return n, nil
	}
	return 0, fmt.Errorf("%q is no signal", text)
}
