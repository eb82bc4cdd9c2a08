// SPDX-License-Identifier: Apache-2.0

package stderr

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/internal/proc"
	"github.com/actplane/actplane/internal/testenv"
)

const line = "ActPlane policy: a line\n"

// start runs a program that waits, with a file as its standard error.
func start(t *testing.T, errors *os.File) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "60")
	cmd.Stderr = errors
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

// fileOf names an open file.
func fileOf(t *testing.T, file *os.File) File {
	t.Helper()
	var stat unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &stat); err != nil {
		t.Fatal(err)
	}
	return File{stat.Dev, stat.Ino}
}

func writeTo(t *testing.T, pid int, file File) error {
	t.Helper()
	p, err := Open(proc.Directory, pid)
	if err != nil {
		return err
	}
	defer p.Close()
	return p.Write(file, []byte(line))
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

func flags(t *testing.T, file *os.File) int {
	t.Helper()
	n, err := unix.FcntlInt(file.Fd(), unix.F_GETFL, 0)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestPipe(t *testing.T) {
	r, w := pipe(t)
	file := fileOf(t, w) // Fd makes it block
	before := flags(t, w)
	cmd := start(t, w)
	if err := writeTo(t, cmd.Process.Pid, file); err != nil {
		t.Fatal(err)
	}
	text := make([]byte, 100)
	if n, err := r.Read(text); err != nil || string(text[:n]) != line {
		t.Errorf("read %q, %v", text[:n], err)
	}
	if after := flags(t, w); before != after || after&unix.O_NONBLOCK != 0 {
		t.Errorf("flags of the process's own descriptor were %#x and are %#x", before, after)
	}
	other, _ := pipe(t)
	if err := writeTo(t, cmd.Process.Pid, fileOf(t, other)); !errors.Is(err, ErrNotOpen) {
		t.Errorf("of another pipe: %v", err)
	}
	if err := writeTo(t, cmd.Process.Pid, File{}); !errors.Is(err, ErrKind) {
		t.Errorf("of none: %v", err)
	}
}

// What reads it has it as well, at any number: the process itself can be gone.
func TestPipeOfReader(t *testing.T) {
	r, w := pipe(t)
	if err := writeTo(t, os.Getpid(), fileOf(t, w)); err != nil {
		t.Fatal(err)
	}
	file := fileOf(t, w)
	w.Close()
	if err := writeTo(t, os.Getpid(), file); err != nil {
		t.Fatal(err)
	}
	text := make([]byte, 100)
	if n, err := r.Read(text); err != nil || string(text[:n]) != line+line {
		t.Errorf("read %q, %v", text[:n], err)
	}
}

// A pipe that is half full, and one that nobody reads, are left as they are at once.
func TestNoRoom(t *testing.T) {
	r, w := pipe(t)
	cmd := start(t, w)
	if _, err := unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, 8192); err != nil {
		t.Fatal(err)
	}
	file := fileOf(t, w)
	for _, fill := range []int{4097 - len(line), 8192 - 4097 + len(line)} {
		if _, err := w.Write(make([]byte, fill)); err != nil {
			t.Fatal(err)
		}
		if err := writeTo(t, cmd.Process.Pid, file); !errors.Is(err, ErrFull) {
			t.Errorf("with %d bytes more: %v", fill, err)
		}
	}
	if _, err := io.ReadFull(r, make([]byte, 8192)); err != nil {
		t.Fatal(err)
	}
	r.Close()
	if err := writeTo(t, cmd.Process.Pid, file); !errors.Is(err, unix.EPIPE) {
		t.Errorf("without a reader: %v", err)
	}
}

// Nothing else is opened, let alone written to.
func TestOtherKinds(t *testing.T) {
	dir := t.TempDir()
	regular, err := os.Create(filepath.Join(dir, "file"))
	if err != nil {
		t.Fatal(err)
	}
	fifo := filepath.Join(dir, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	named, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	socket, peer := os.NewFile(uintptr(ends[0]), "socket"), os.NewFile(uintptr(ends[1]), "peer")
	defer peer.Close()
	for _, file := range []*os.File{regular, named, null, socket} {
		defer file.Close()
		cmd := start(t, file)
		if err := writeTo(t, cmd.Process.Pid, fileOf(t, file)); !errors.Is(err, ErrNotOpen) {
			t.Errorf("%s: %v", file.Name(), err)
		}
	}
	if text, err := os.ReadFile(regular.Name()); err != nil || len(text) > 0 {
		t.Errorf("the file has %q, %v", text, err)
	}
	if n, err := unix.IoctlGetInt(int(named.Fd()), unix.TIOCINQ); err != nil || n > 0 {
		t.Errorf("the FIFO has %d bytes, %v", n, err)
	}
	if err := unix.SetNonblock(int(peer.Fd()), true); err != nil {
		t.Fatal(err)
	}
	if n, err := unix.Read(int(peer.Fd()), make([]byte, 1)); n > 0 || !errors.Is(err, unix.EAGAIN) {
		t.Errorf("the socket has %d bytes, %v", n, err)
	}
}

// What takes a pipe's place between the look and the opening is not taken for it.
func TestCheck(t *testing.T) {
	r, w := pipe(t)
	_, other := pipe(t)
	named := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(named, 0o600); err != nil {
		t.Fatal(err)
	}
	fifo, err := os.OpenFile(named, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer fifo.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, c := range []struct {
		name     string
		held     *os.File
		want     File
		terminal bool
		err      error
	}{
		{"the pipe", w, fileOf(t, r), false, nil},
		{"another pipe", other, fileOf(t, r), false, ErrNotOpen},
		{"another device", w, File{fileOf(t, r).Device + 1, fileOf(t, r).Inode}, false, ErrNotOpen},
		{"a FIFO for a terminal", fifo, fileOf(t, fifo), true, ErrKind},
		{"a device that is no terminal", null, fileOf(t, null), true, ErrKind},
		{"a device for a pipe", null, fileOf(t, null), false, ErrKind},
	} {
		if err := check(int(c.held.Fd()), c.want, c.terminal); !errors.Is(err, c.err) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestEndedProcess(t *testing.T) {
	_, w := pipe(t)
	file := fileOf(t, w)
	cmd := start(t, w)
	held, err := Open(proc.Directory, cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for stat := (proc.Stat{}); !stat.Ended(); time.Sleep(time.Millisecond) {
		if stat, err = proc.ReadStat(proc.Directory, cmd.Process.Pid); err != nil {
			t.Fatal(err)
		}
	}
	if err := held.Write(file, []byte(line)); !errors.Is(err, ErrNotOpen) {
		t.Errorf("of a zombie: %v", err)
	}
	_ = cmd.Wait()
	if err := held.Write(file, []byte(line)); !errors.Is(err, ErrNotOpen) {
		t.Errorf("of a process that is gone: %v", err)
	}
	for _, pid := range []int{cmd.Process.Pid, 0, -1} {
		if err := writeTo(t, pid, file); !errors.Is(err, ErrNotOpen) {
			t.Errorf("pid %d: %v", pid, err)
		}
	}
}

// terminal makes a pseudo-terminal; both ends do not wait.
func terminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	testenv.RequireRoot(t)
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("/dev/pts/%d", number)
	end, err := unix.Open(name, unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	master, slave = os.NewFile(uintptr(fd), "ptmx"), os.NewFile(uintptr(end), name)
	t.Cleanup(func() { master.Close(); slave.Close() })
	return master, slave
}

func shown(t *testing.T, master *os.File) string {
	t.Helper()
	text := make([]byte, 1000)
	n, err := unix.Read(int(master.Fd()), text)
	if err != nil && !errors.Is(err, unix.EAGAIN) {
		t.Fatal(err)
	}
	return string(text[:max(n, 0)])
}

// ownTerminal is the number of the terminal that controls this process.
func ownTerminal(t *testing.T) string {
	t.Helper()
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		t.Fatal(err)
	}
	return string(bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])[4])
}

func settings(t *testing.T, file *os.File, change func(*unix.Termios)) {
	t.Helper()
	s, err := unix.IoctlGetTermios(int(file.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	change(s)
	if err := unix.IoctlSetTermios(int(file.Fd()), unix.TCSETS, s); err != nil {
		t.Fatal(err)
	}
}

func TestTerminal(t *testing.T) {
	master, slave := terminal(t)
	file := fileOf(t, slave)
	cmd := start(t, slave)
	before := ownTerminal(t)
	if err := unix.SetNonblock(int(master.Fd()), true); err != nil {
		t.Fatal(err)
	}
	if err := writeTo(t, cmd.Process.Pid, file); err != nil {
		t.Fatal(err)
	}
	if got := shown(t, master); got != strings.Replace(line, "\n", "\r\n", 1) {
		t.Errorf("it shows %q", got)
	}
	if after := ownTerminal(t); after != before {
		t.Errorf("this process's own terminal was %s and is %s", before, after)
	}
	for what, change := range map[string]func(*unix.Termios){
		"no signals":    func(s *unix.Termios) { s.Lflag &^= unix.ISIG },
		"no processing": func(s *unix.Termios) { s.Oflag &^= unix.OPOST },
	} {
		settings(t, slave, change)
		if err := writeTo(t, cmd.Process.Pid, file); !errors.Is(err, ErrRaw) {
			t.Errorf("%s: %v", what, err)
		}
		settings(t, slave, func(s *unix.Termios) { s.Lflag |= unix.ISIG; s.Oflag |= unix.OPOST })
	}
	// Who waits for keys with its own line editor, as shells do, still gets it.
	settings(t, slave, func(s *unix.Termios) { s.Lflag &^= unix.ICANON | unix.ECHO })
	if err := writeTo(t, cmd.Process.Pid, file); err != nil {
		t.Errorf("line editor: %v", err)
	}
	if err := unix.IoctlSetInt(int(slave.Fd()), unix.TCXONC, unix.TCOOFF); err != nil {
		t.Fatal(err)
	}
	if err := writeTo(t, cmd.Process.Pid, file); !errors.Is(err, ErrFull) {
		t.Errorf("stopped: %v", err)
	}
	if err := unix.IoctlSetInt(int(slave.Fd()), unix.TCXONC, unix.TCOON); err != nil {
		t.Fatal(err)
	}
	master.Close()
	if err := writeTo(t, cmd.Process.Pid, file); err == nil {
		t.Error("a terminal that hung up was written to")
	}
}

// A terminal is looked for at the standard descriptors alone.
func TestTerminalElsewhere(t *testing.T) {
	_, slave := terminal(t)
	_, w := pipe(t)
	cmd := exec.Command("sleep", "60")
	cmd.Stdin, cmd.Stderr = slave, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	if err := writeTo(t, cmd.Process.Pid, fileOf(t, slave)); err != nil {
		t.Errorf("as standard input: %v", err)
	}
	cmd = exec.Command("sleep", "60")
	cmd.Stderr, cmd.ExtraFiles = w, []*os.File{slave}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	if err := writeTo(t, cmd.Process.Pid, fileOf(t, slave)); !errors.Is(err, ErrNotOpen) {
		t.Errorf("as another descriptor: %v", err)
	}
}
