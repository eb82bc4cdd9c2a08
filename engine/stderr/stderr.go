// SPDX-License-Identifier: Apache-2.0

// Package stderr writes a line to what a process writes its standard error to.
//
// Who is written to is hostile, and the daemon that writes may do everything. So the file
// is the one that the kernel saw in the process's place when the process was refused
// something, and that the process could write to by itself; it is looked for by its
// numbers, without asking the file system that it is on. Only pipes without a name and
// pseudo-terminals are written to, never a file, a FIFO, a socket or a device. They are
// opened anew, so that the process's own descriptor stays as it is and nothing waits: what
// does not fit at once is left out.
package stderr

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// File names a file as stat(2) does. The zero File is none.
type File struct{ Device, Inode uint64 }

// Reasons why nothing was written. Others are the kernel's.
var (
	// ErrNotOpen: the process has ended, or does not have the file open. Another may.
	ErrNotOpen = errors.New("the process does not have it open")
	// ErrKind: it is neither a pipe without a name nor a pseudo-terminal.
	ErrKind = errors.New("it is neither a pipe nor a pseudo-terminal")
	// ErrFull: nobody reads, or the terminal is stopped.
	ErrFull = errors.New("there is no room in it")
	// ErrRaw: a program paints the whole terminal.
	ErrRaw = errors.New("a program has the terminal for itself")
)

// maxDescriptors bounds how many of a process's descriptors are looked at for a pipe.
const maxDescriptors = 1024

// Process is a process whose number cannot become another's while it is held: of one that
// has ended nothing is found.
type Process struct {
	dir  int // of /proc/PID
	proc string
}

// Open holds a process. proc is where proc is mounted.
func Open(proc string, pid int) (*Process, error) {
	if pid <= 0 {
		return nil, fmt.Errorf("open process %d: %w", pid, ErrNotOpen)
	}
	dir, err := unix.Open(filepath.Join(proc, strconv.Itoa(pid)), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) {
		err = ErrNotOpen
	}
	if err != nil {
		return nil, fmt.Errorf("open process %d: %w", pid, err)
	}
	return &Process{dir: dir, proc: proc}, nil
}

// Close lets go of the process.
func (p *Process) Close() error { return unix.Close(p.dir) }

// Write writes a line, which has its end, to a file that the process has open: whole, or on
// a terminal perhaps its beginning. It never waits.
func (p *Process) Write(want File, line []byte) error {
	if want == (File{}) {
		return ErrKind
	}
	found, terminal, err := p.find(want)
	if err != nil {
		return err
	}
	defer unix.Close(found)
	// Another file may have taken its place meanwhile: only what is held now counts.
	if err := check(found, want, terminal); err != nil {
		return err
	}
	fd, err := unix.Open(fmt.Sprintf("%s/self/fd/%d", p.proc, found), unix.O_WRONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open it for writing: %w", err)
	}
	defer unix.Close(fd)
	if terminal {
		return writeTerminal(fd, line)
	}
	return writePipe(fd, line)
}

// find holds the file, which the process has open, without opening it.
func (p *Process) find(want File) (fd int, terminal bool, err error) {
	pipes, err := pipeDevice()
	if err != nil {
		return -1, false, err
	}
	name := ""
	if want.Device == pipes {
		name = p.findPipe(want)
	} else {
		terminal = true
		name = p.findTerminal(want)
	}
	if name == "" {
		return -1, false, ErrNotOpen
	}
	fd, err = unix.Openat(p.dir, "fd/"+name, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, false, fmt.Errorf("%w: %w", ErrNotOpen, err)
	}
	return fd, terminal, nil
}

// pipeDevice is the device number of all pipes without a name.
func pipeDevice() (uint64, error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return 0, fmt.Errorf("make a pipe: %w", err)
	}
	defer unix.Close(ends[0])
	defer unix.Close(ends[1])
	var stat unix.Stat_t
	if err := unix.Fstat(ends[0], &stat); err != nil {
		return 0, fmt.Errorf("look at a pipe: %w", err)
	}
	return stat.Dev, nil
}

// findPipe finds a descriptor of a pipe, either end: that of standard error first. The
// text of the link is the kernel's, and no path looks like it.
func (p *Process) findPipe(want File) string {
	text := fmt.Sprintf("pipe:[%d]", want.Inode)
	is := func(name string) bool {
		link := make([]byte, len(text)+1)
		n, err := unix.Readlinkat(p.dir, "fd/"+name, link)
		return err == nil && string(link[:n]) == text
	}
	if is("2") {
		return "2"
	}
	for _, name := range p.descriptors() {
		if is(name) {
			return name
		}
	}
	return ""
}

// descriptors lists the numbers of a process's descriptors.
func (p *Process) descriptors() []string {
	fd, err := unix.Openat(p.dir, "fd", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	dir := os.NewFile(uintptr(fd), "fd")
	defer dir.Close()
	names, _ := dir.Readdirnames(maxDescriptors) // as many as there were
	return names
}

// findTerminal finds which of the standard descriptors is a file of this number on a file
// system of terminals.
func (p *Process) findTerminal(want File) string {
	for _, name := range []string{"2", "1", "0"} {
		if inode, mount := p.open(name); inode == want.Inode && inode != 0 && p.terminals(mount) {
			return name
		}
	}
	return ""
}

// open tells which file a descriptor is, by its number, and on which mount; 0 for none.
func (p *Process) open(name string) (inode, mount uint64) {
	for line := range bytes.Lines(p.read("fdinfo/" + name)) {
		key, value, _ := strings.Cut(strings.TrimSpace(string(line)), ":\t")
		n, _ := strconv.ParseUint(value, 10, 64)
		switch key {
		case "ino":
			inode = n
		case "mnt_id":
			mount = n
		}
	}
	return inode, mount
}

// terminals tells whether a mount, as the process sees it, is of pseudo-terminals.
func (p *Process) terminals(mount uint64) bool {
	lines := bufio.NewScanner(bytes.NewReader(p.read("mountinfo")))
	for lines.Scan() {
		id, rest, _ := strings.Cut(lines.Text(), " ")
		if _, kind, _ := strings.Cut(rest, " - "); id == strconv.FormatUint(mount, 10) {
			return strings.HasPrefix(kind, "devpts ")
		}
	}
	return false
}

// maxInfo bounds what is read of a process: a few thousand mounts.
const maxInfo = 1 << 20

// read reads a file of proc's; what cannot be read is empty.
func (p *Process) read(name string) []byte {
	fd, err := unix.Openat(p.dir, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	file := os.NewFile(uintptr(fd), name)
	defer file.Close()
	text := make([]byte, 0, 4096)
	for len(text) < maxInfo {
		if len(text) == cap(text) {
			text = append(text, make([]byte, len(text))...)[:len(text)]
		}
		n, err := file.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		if err != nil {
			break
		}
	}
	return text
}

// Major numbers of pseudo-terminals: linux/major.h.
const firstTerminal, lastTerminal = 136, 143

// check tells whether what is held is the file, and of its kind. A file system of the
// container's own is not asked, but for what the kernel has of it.
func check(fd int, want File, terminal bool) error {
	var stat unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_BASIC_STATS, &stat); err != nil {
		return fmt.Errorf("look at it: %w", err)
	}
	if stat.Ino != want.Inode || unix.Mkdev(stat.Dev_major, stat.Dev_minor) != want.Device {
		return ErrNotOpen
	}
	kind := stat.Mode & unix.S_IFMT
	switch {
	case !terminal && kind == unix.S_IFIFO:
		return nil
	case terminal && kind == unix.S_IFCHR && stat.Rdev_major >= firstTerminal && stat.Rdev_major <= lastTerminal:
		return nil
	}
	return ErrKind
}

// writePipe leaves half of the pipe to the processes that it is for: a line that nobody
// reads must not be what makes them wait.
func writePipe(fd int, line []byte) error {
	size, err := unix.FcntlInt(uintptr(fd), unix.F_GETPIPE_SZ, 0)
	if err != nil {
		return fmt.Errorf("size of the pipe: %w", err)
	}
	unread, err := unix.IoctlGetInt(fd, unix.TIOCINQ)
	if err != nil {
		return fmt.Errorf("what is in the pipe: %w", err)
	}
	if unread+len(line) > size/2 {
		return ErrFull
	}
	return write(fd, line)
}

// writeTerminal writes to a terminal that works line by line, or at least turns keys into
// signals: what has turned that off paints the whole screen.
func writeTerminal(fd int, line []byte) error {
	settings, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return fmt.Errorf("settings of the terminal: %w", err)
	}
	if settings.Lflag&unix.ISIG == 0 || settings.Oflag&unix.OPOST == 0 {
		return ErrRaw
	}
	// Who writes to a terminal at this moment keeps others out: the kernel says so in the
	// same way as that there is no room.
	err = write(fd, line)
	for try := 0; errors.Is(err, ErrFull) && try < terminalTries; try++ {
		time.Sleep(terminalPause)
		err = write(fd, line)
	}
	return err
}

// How often and when a terminal is tried again: 20 ms in all, since others wait meanwhile.
const (
	terminalTries = 4
	terminalPause = 5 * time.Millisecond
)

// write writes once. A pipe takes up to PIPE_BUF bytes whole or not at all.
func write(fd int, line []byte) error {
	_, err := unix.Write(fd, line)
	if errors.Is(err, unix.EAGAIN) {
		return ErrFull
	}
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}
