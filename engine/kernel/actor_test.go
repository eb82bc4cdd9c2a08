// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An actor is a process in a scope that does one step per line of its input and
// answers with "ok", an error's name, or what the step printed.
type actor struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *bufio.Reader
}

// do performs a step and returns the answer.
func (a *actor) do(step ...string) string {
	a.t.Helper()
	if _, err := fmt.Fprintln(a.stdin, strings.Join(step, "\x1f")); err != nil {
		a.t.Fatalf("actor: %v", err)
	}
	// What waits for data that never comes is to fail by itself, and not by all tests.
	stuck := time.AfterFunc(time.Minute, func() { _ = a.cmd.Process.Kill() })
	line, err := a.out.ReadString('\n')
	switch {
	case !stuck.Stop():
		return "stuck"
	case err != nil:
		return "dead"
	}
	return strings.TrimSpace(line)
}

// end lets the process end, and waits for it.
func (a *actor) end() {
	_ = a.stdin.Close()
	_ = a.cmd.Wait()
}

// want checks a step's answer.
func (a *actor) want(answer string, step ...string) {
	a.t.Helper()
	if got := a.do(step...); got != answer {
		a.t.Errorf("%q: %s, want %s", step, got, answer)
	}
}

func runActor() error {
	// A thread counts as waiting at what it read last: on another one, what a step reads
	// would not end that of the step before.
	runtime.LockOSThread()
	lines := bufio.NewScanner(os.Stdin)
	state := &actorState{files: map[string]*os.File{}}
	for lines.Scan() {
		fmt.Println(outcome(state.step(strings.Split(lines.Text(), "\x1f"))))
	}
	return lines.Err()
}

type actorState struct {
	files map[string]*os.File
	conn  net.Conn

	running *exec.Cmd
	fds     map[string]int // see channelStep
	begun   chan error
}

func outcome(err error) string {
	var errno syscall.Errno
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &exit):
		if status := exit.Sys().(syscall.WaitStatus); status.Signaled() {
			return unix.SignalName(status.Signal())
		}
		return "exit " + strconv.Itoa(exit.ExitCode())
	case errors.As(err, &errno):
		return unix.ErrnoName(errno)
	default:
		return strings.ReplaceAll(err.Error(), "\n", " ")
	}
}

func (s *actorState) step(args []string) error {
	switch op, args := args[0], args[1:]; op {
	case "read":
		_, err := os.ReadFile(args[0])
		return err
	case "write":
		return os.WriteFile(args[0], []byte("x"), 0o644)
	case "append":
		return s.open(args[0], args[0], os.O_APPEND|os.O_WRONLY)
	case "create":
		return s.open(args[0], args[0], os.O_CREATE|os.O_EXCL|os.O_WRONLY)
	case "open":
		return s.open(args[0], args[0], os.O_RDWR|os.O_CREATE)
	case "put":
		_, err := s.files[args[0]].Write([]byte("y"))
		return err
	case "emptyreadonly":
		return s.open(args[0], args[0], os.O_RDONLY|os.O_TRUNC)
	case "unlink":
		return unix.Unlink(args[0])
	case "rmdir":
		return unix.Rmdir(args[0])
	case "mkdir":
		return unix.Mkdir(args[0], 0o755)
	case "mknod":
		return unix.Mknod(args[0], unix.S_IFIFO|0o644, 0)
	case "rename":
		return unix.Rename(args[0], args[1])
	case "exchange":
		return unix.Renameat2(unix.AT_FDCWD, args[0], unix.AT_FDCWD, args[1], unix.RENAME_EXCHANGE)
	case "link":
		return unix.Link(args[0], args[1])
	case "symlink":
		return unix.Symlink(args[0], args[1])
	case "chmod":
		return unix.Chmod(args[0], 0o600)
	case "chown":
		return unix.Chown(args[0], 1, 1)
	case "truncate":
		return unix.Truncate(args[0], 0)
	case "ftruncate":
		return s.files[args[0]].Truncate(0)
	case "utimes":
		return unix.Utimes(args[0], []unix.Timeval{{Sec: 1}, {Sec: 1}})
	case "setxattr":
		return unix.Setxattr(args[0], "trusted.x", []byte("1"), 0)
	case "run":
		return exec.Command(args[0], args[1:]...).Run()
	case "runas": // with another uid=, dir= or env=
		return runAs(args[0], args[1:])
	case "acct": // the kernel opens a file for itself
		return unix.Acct(args[0])
	case "sendtwo": // two datagrams in one system call
		return sendMany(args[0], args[1])
	case "runenv":
		return runWith(args[:1], args[1:])
	case "runlongenv": // behind 300 variables of a length
		length, err := strconv.Atoi(args[0])
		if err != nil {
			return err
		}
		return runWith(append(slices.Repeat([]string{"A=" + strings.Repeat("x", length-2)}, 300), args[1]), args[2:])
	case "start": // a program that goes on; answers with its number
		s.running = exec.Command(args[0], args[1:]...)
		if err := s.running.Start(); err != nil {
			return err
		}
		return errors.New(strconv.Itoa(s.running.Process.Pid))
	case "wait":
		return s.running.Wait()
	case "look": // into another process's memory
		return openMemory(args[0], os.O_RDONLY)
	case "poke":
		return openMemory(args[0], os.O_RDWR)
	case "trace":
		return trace(args[0])
	case "runlong": // with 10,000 arguments before the given ones
		return exec.Command(args[0], append(slices.Repeat([]string{"file"}, 10000), args[1:]...)...).Run()
	case "runthread":
		return runFromThread(args)
	case "fork": // a child that acts once
		return actInChild(nil, args)
	case "forkinto": // a child that is cloned into a cgroup, and acts once there
		return actIn(args[0], args[1:])
	case "keep": // a descriptor that appends no longer
		_, err := unix.FcntlInt(s.files[args[0]].Fd(), unix.F_SETFL, 0)
		return err
	case "decoy": // an address given to a connected stream
		return s.decoy(args[0])
	case "mapcode":
		return mapCode(args[0])
	case "deep":
		return makeDeep(args[0])
	case "repeat": // opens a file for reading so many times
		n, err := strconv.Atoi(args[0])
		for range n {
			var file *os.File
			if file, err = os.Open(args[1]); err == nil {
				file.Close()
			}
		}
		return err
	case "measure":
		return measure(args[0])
	case "race":
		return race("racer", args)
	case "racedirs":
		return race("dirracer", args)
	case "runshared": // a child that shares its directory with this process
		cmd := exec.Command(args[0], args[1:]...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_FS}
		return cmd.Run()
	case "storm":
		return runStorm(args[0])
	case "crowd":
		return crowd(args)
	case "dial":
		return s.dial(args[0], args[1])
	case "listen":
		return listen(args[0], args[1])
	case "listenunbound":
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Listen(fd, 1)
	case "bindraw": // a Unix socket, by the bytes of its address
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		name := []byte(args[0])
		_, _, errno := unix.Syscall(unix.SYS_BIND, uintptr(fd), uintptr(unsafe.Pointer(&name[0])), uintptr(len(name)))
		if errno != 0 {
			return errno
		}
		return nil
	case "memfd":
		fd, err := unix.MemfdCreate("m", unix.MFD_CLOEXEC)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Ftruncate(fd, 4096)
	case "mapped":
		return connectMapped(args[0])
	case "say":
		_, err := s.conn.Write([]byte("hello"))
		return err
	case "sendto":
		return sendTo(args[0])
	default:
		return s.channelStep(op, args)
	}
}

func (s *actorState) open(name, path string, flags int) error {
	file, err := os.OpenFile(path, flags, 0o644)
	if err == nil {
		s.files[name] = file
	}
	return err
}

func (s *actorState) dial(network, address string) error {
	conn, err := net.Dial(network, address)
	if err == nil {
		s.conn = conn
	}
	return err
}

// listen takes an address for a moment.
func listen(network, address string) error {
	if network == "udp" {
		conn, err := net.ListenPacket(network, address)
		if err == nil {
			err = conn.Close()
		}
		return err
	}
	listener, err := net.Listen(network, address)
	if err == nil {
		err = listener.Close()
	}
	return err
}

// makeDeep makes directories in each other until a path is longer than the kernel
// lets anybody name.
func makeDeep(dir string) error {
	if err := os.Chdir(dir); err != nil {
		return err
	}
	name := strings.Repeat("d", 250)
	for range 20 {
		if err := unix.Mkdir(name, 0o755); err != nil {
			return err
		}
		if err := os.Chdir(name); err != nil {
			return err
		}
	}
	return nil
}

// race plays one round of a race many times.
func race(role string, args []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for range 60 {
		if err := exec.Command(self, append([]string{role}, args...)...).Run(); err != nil {
			continue // refused or killed, as it should be when the word is seen
		}
	}
	return nil
}

// execWhileChanging runs a program while a thread of the caller's changes its last
// argument, from one word to another of the same length and back.
func execWhileChanging(args []string) error {
	path, from, to := args[0], args[1], args[2]
	word := append([]byte(from), 0)
	program, err := unix.BytePtrFromString(path)
	if err != nil {
		return err
	}
	argv := []*byte{program, &word[0], nil}
	go func() {
		for turn := 0; ; turn++ {
			copy(word, []string{from, to}[turn%2])
		}
	}()
	runtime.Gosched()
	_, _, errno := unix.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(program)),
		uintptr(unsafe.Pointer(&argv[0])), 0)
	return errno
}

// connectMapped connects an IPv6 socket to an IPv4 address.
func connectMapped(address string) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Connect(fd, &unix.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16()})
}

func sendTo(address string) error {
	to, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return err
	}
	conn, err := net.ListenUDP("udp4", nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.WriteToUDP([]byte("x"), to)
	return err
}

func actIn(cgroup string, args []string) error {
	fd, err := unix.Open(cgroup, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return actInChild(&syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: fd}, args)
}

func actInChild(attributes *syscall.SysProcAttr, args []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	child := exec.Command(self, "actor")
	child.SysProcAttr = attributes
	child.Stdin = strings.NewReader(strings.Join(args, "\x1f") + "\n")
	out, err := child.Output()
	if answer := strings.TrimSpace(string(out)); err == nil && answer != "ok" {
		return errors.New(answer)
	}
	return err
}

func (s *actorState) decoy(address string) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	raw, err := s.conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		return err
	}
	sockaddr := &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}
	var sent error
	err = raw.Control(func(fd uintptr) { sent = unix.Sendto(int(fd), []byte("x"), 0, sockaddr) })
	return errors.Join(err, sent)
}

func mapCode(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	code, err := unix.Mmap(int(file.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE)
	if err == nil {
		err = unix.Munmap(code)
	}
	return err
}

// runFromThread makes a thread that is not the leader exec: a helper process whose
// other thread calls execve.
func runFromThread(args []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return exec.Command(self, append([]string{"thread"}, args...)...).Run()
}

// execFromThread is that helper.
func execFromThread(args []string) error {
	runtime.LockOSThread() // the leader stays here, so a goroutine runs elsewhere
	failed := make(chan error)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			failed <- errors.New("this is the leader")
			return
		}
		failed <- unix.Exec(args[0], args, os.Environ())
	}()
	return <-failed
}

func runWith(env, args []string) error {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = env
	return cmd.Run()
}

func openMemory(pid string, flags int) error {
	f, err := os.OpenFile("/proc/"+pid+"/mem", flags, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// trace stops a process as a debugger does, and lets it go.
func trace(pid string) error {
	runtime.LockOSThread() // who traces is a thread
	defer runtime.UnlockOSThread()
	number, err := strconv.Atoi(pid)
	if err != nil {
		return err
	}
	if err := unix.PtraceAttach(number); err != nil {
		return err
	}
	if _, err := unix.Wait4(number, nil, unix.WALL, nil); err != nil {
		return err
	}
	return unix.PtraceDetach(number)
}
