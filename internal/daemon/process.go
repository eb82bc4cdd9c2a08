// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/internal/cgroup"
)

// logLimit is the size at which a start begins the log anew.
const logLimit = 4 << 20

// launcher waits until it has been moved to its cgroups, starts the daemon as an
// orphan and tells its pid. Were the daemon the child of this process, then it
// would be the child of runc after the exec, which waits for its children.
const launcher = `read -r go || exit 1
"$@" </dev/null >>"$LOG" 2>&1 &
echo $!`

// process is a daemon without a unit.
type process struct {
	pid    int
	pidfd  int
	log    string
	offset int64 // where its part of the log begins
	cgroup string
}

// startProcess starts actplaned detached from everything of the caller's.
func startProcess(options Options) (*process, error) {
	program, err := findProgram(options.Program)
	if err != nil {
		return nil, &NotStarted{Reason: err.Error(), Next: "actplane install"}
	}
	log := filepath.Join(options.Directory, "actplaned.log")
	offset, err := openLog(log)
	if err != nil {
		return nil, &NotStarted{Reason: err.Error(), Next: "actplane doctor"}
	}
	daemon := &process{log: log, offset: offset, pidfd: -1}
	if err := daemon.spawn(program, options); err != nil {
		return nil, &NotStarted{Reason: err.Error(), Next: daemon.hint()}
	}
	return daemon, nil
}

func findProgram(program string) (string, error) {
	if program != "" {
		return program, nil
	}
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), "actplaned")
		if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() {
			return beside, nil
		}
	}
	path, err := exec.LookPath("actplaned")
	if err != nil {
		return "", errors.New("actplaned is neither beside this program nor in PATH")
	}
	return filepath.Abs(path)
}

// openLog makes the log and says how long it is.
func openLog(path string) (int64, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return 0, fmt.Errorf("open log: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return 0, fmt.Errorf("open log: %w", err)
	}
	if info.Size() < logLimit {
		return info.Size(), nil
	}
	return 0, file.Truncate(0)
}

func (p *process) spawn(program string, options Options) error {
	command := exec.Command("/bin/sh", append([]string{"-c", launcher, "sh", program}, options.Args...)...)
	command.Dir = "/"
	command.Env = []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"LOG=" + p.log,
	}
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	input, err := command.StdinPipe()
	if err != nil {
		return fmt.Errorf("make pipe: %w", err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return fmt.Errorf("make pipe: %w", err)
	}
	restore := sealFiles()
	err = command.Start()
	restore()
	if err != nil {
		return fmt.Errorf("start actplaned: %w", err)
	}
	if !options.NoCgroup {
		p.cgroup = leaveCgroups(command.Process.Pid)
	}
	io.WriteString(input, "go\n")
	input.Close()
	line, _ := bufio.NewReader(output).ReadString('\n')
	if err := command.Wait(); err != nil {
		return fmt.Errorf("start actplaned: shell: %w", err)
	}
	if p.pid, err = strconv.Atoi(strings.TrimSpace(line)); err != nil {
		return fmt.Errorf("start actplaned: the shell told no pid but %q", line)
	}
	// An orphan that has ended already is reaped: then there is no pidfd either.
	if p.pidfd, err = unix.PidfdOpen(p.pid, 0); err != nil {
		p.pidfd = -1
	} else {
		unix.CloseOnExec(p.pidfd)
	}
	return nil
}

// sealFiles keeps open files that the caller has handed to us for the container
// (--preserve-fds, a console) from the daemon, and undoes that: runc needs them.
func sealFiles() (restore func()) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return func() {}
	}
	var sealed []int
	for _, entry := range entries {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil || fd < 3 {
			continue
		}
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err != nil || flags&unix.FD_CLOEXEC != 0 {
			continue
		}
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, flags|unix.FD_CLOEXEC); err == nil {
			sealed = append(sealed, fd)
		}
	}
	return func() {
		for _, fd := range sealed {
			unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0)
		}
	}
}

// leaveCgroups moves a process out of the caller's cgroups, which end with the
// caller's service or container: to /actplane in v2, to the roots of v1. It tells
// the v2 directory. Where that is not possible the daemon stays where it is.
func leaveCgroups(pid int) string {
	mounts, err := cgroup.Find("/proc")
	if err != nil {
		return ""
	}
	text := []byte(strconv.Itoa(pid))
	for _, legacy := range mounts.Legacy {
		os.WriteFile(filepath.Join(legacy, "cgroup.procs"), text, 0)
	}
	own := filepath.Join(mounts.Unified, "actplane")
	os.Mkdir(own, 0o755)
	if os.WriteFile(filepath.Join(own, "cgroup.procs"), text, 0) == nil {
		return own
	}
	os.WriteFile(filepath.Join(mounts.Unified, "cgroup.procs"), text, 0)
	return ""
}

func (p *process) hint() string { return "tail " + p.log }

// failed looks whether the process is gone, and for its last words.
func (p *process) failed() error {
	if p.pidfd >= 0 {
		fds := []unix.PollFd{{Fd: int32(p.pidfd), Events: unix.POLLIN}}
		if n, err := unix.Poll(fds, 0); err != nil || n == 0 {
			return nil
		}
	}
	p.removeCgroup()
	if words := lastWords(p.log, p.offset); words != "" {
		return errors.New(words)
	}
	return errors.New("it ended without saying why")
}

func (p *process) stop() {
	if p.pidfd < 0 {
		return
	}
	unix.PidfdSendSignal(p.pidfd, unix.SIGTERM, nil, 0)
	fds := []unix.PollFd{{Fd: int32(p.pidfd), Events: unix.POLLIN}}
	if n, _ := unix.Poll(fds, 5000); n == 0 {
		unix.PidfdSendSignal(p.pidfd, unix.SIGKILL, nil, 0)
		unix.Poll(fds, 5000)
	}
	p.removeCgroup()
}

// removeCgroup works only when nothing is in it, which is right.
func (p *process) removeCgroup() {
	if p.cgroup != "" {
		unix.Rmdir(p.cgroup)
	}
}

// lastWords is the last line of a log from an offset on, without what a logger
// puts around the message.
func lastWords(path string, offset int64) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	if size, err := file.Seek(0, io.SeekEnd); err != nil || size-offset > 64<<10 {
		offset = max(offset, size-64<<10)
	}
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return ""
	}
	data, err := io.ReadAll(io.LimitReader(file, 64<<10))
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return message(lines[len(lines)-1])
}

// message takes msg="…" out of a line of logrus's text format.
func message(line string) string {
	line = strings.TrimSpace(line)
	if _, rest, ok := strings.Cut(line, ` msg="`); ok {
		if quoted, err := strconv.QuotedPrefix(`"` + rest); err == nil {
			if text, err := strconv.Unquote(quoted); err == nil {
				line = text
			}
		}
	}
	line = strings.TrimPrefix(strings.TrimSpace(line), "actplaned: ")
	return strings.TrimRight(line, ". ")
}
