// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/internal/cgroup"
	"github.com/actplane/actplane/internal/proc"
)

// realHost reads /proc and the cgroup file system. The mounts are looked up
// each time: the daemon may start before they are all there.
type realHost struct {
	proc string // proc.Directory when empty
}

// Proc implements host.
func (h realHost) Proc() string {
	if h.proc == "" {
		return proc.Directory
	}
	return h.proc
}

// Cgroup implements host.
func (h realHost) Cgroup(pid int) (string, error) {
	mounts, err := cgroup.Find(h.Proc())
	if err != nil {
		return "", err
	}
	return mounts.Of(pid)
}

// Mount implements host.
func (h realHost) Mount() (string, error) {
	mounts, err := cgroup.Find(h.Proc())
	if err != nil {
		return "", err
	}
	return mounts.Unified, nil
}

// StartTime implements host.
func (h realHost) StartTime(pid int) (uint64, error) {
	stat, err := proc.ReadStat(h.Proc(), pid)
	if err != nil {
		return 0, err
	}
	if stat.Ended() {
		return 0, fmt.Errorf("read process %d: it has ended: %w", pid, fs.ErrNotExist)
	}
	return stat.Started, nil
}

// Mounts implements host.
func (h realHost) Mounts(pid int) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(h.Proc(), strconv.Itoa(pid), "mountinfo"))
	if err != nil {
		return nil, fmt.Errorf("read mounts: %w", err)
	}
	return text, nil
}

// Parent implements host.
func (h realHost) Parent(pid int) (int, error) {
	stat, err := proc.ReadStat(h.Proc(), pid)
	return stat.Parent, err
}

// WorkingDirectory implements host. The kernel shows it below the root of its mounts,
// which for a container is its root. Path and file are of one moment.
func (h realHost) WorkingDirectory(pid int) (string, kernel.FileID, error) {
	fd, err := unix.Open(filepath.Join(h.Proc(), strconv.Itoa(pid), "cwd"), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", kernel.FileID{}, fmt.Errorf("find a working directory: %w", err)
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return "", kernel.FileID{}, fmt.Errorf("find a working directory: %w", err)
	}
	dir, err := os.Readlink(filepath.Join(proc.Directory, "self/fd", strconv.Itoa(fd)))
	if err != nil {
		return "", kernel.FileID{}, fmt.Errorf("find a working directory: %w", err)
	}
	return dir, kernel.FileID{Device: unix.Major(stat.Dev)<<20 | unix.Minor(stat.Dev), Inode: stat.Ino}, nil
}

// Login implements host.
func (h realHost) Login(pid int) (uint32, bool) {
	text, err := os.ReadFile(filepath.Join(h.Proc(), strconv.Itoa(pid), "loginuid"))
	if err != nil {
		return 0, false
	}
	uid, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 32)
	return uint32(uid), err == nil && uid != math.MaxUint32
}

// Comm implements host.
func (h realHost) Comm(pid int) (string, error) {
	text, err := os.ReadFile(filepath.Join(h.Proc(), strconv.Itoa(pid), "comm"))
	if err != nil {
		return "", fmt.Errorf("read a process's name: %w", err)
	}
	return strings.TrimSuffix(string(text), "\n"), nil
}

// Stopped implements host.
func (h realHost) Stopped(pid int, started uint64) (bool, error) {
	stat, err := proc.ReadStat(h.Proc(), pid)
	if err != nil {
		return false, err
	}
	if stat.Ended() || started != 0 && stat.Started != started {
		return false, fmt.Errorf("read process %d: it has ended: %w", pid, fs.ErrNotExist)
	}
	return stat.State == 'T', nil
}

// Continue implements host. The pid cannot become another's between the look and the
// signal.
func (h realHost) Continue(pid int, started uint64) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		err = fs.ErrNotExist
	}
	if err != nil {
		return fmt.Errorf("open process %d: %w", pid, err)
	}
	defer unix.Close(fd)
	if _, err := h.Stopped(pid, started); err != nil {
		return err
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGCONT, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("continue process %d: %w", pid, err)
	}
	return nil
}

// CgroupID implements host.
func (h realHost) CgroupID(dir string) (uint64, error) { return cgroup.ID(dir) }

// HasCgroup implements host.
func (h realHost) HasCgroup(id uint64) (bool, error) {
	mount, err := h.Mount()
	if err != nil {
		return false, err
	}
	found := false
	err = filepath.WalkDir(mount, func(path string, entry fs.DirEntry, err error) error {
		var own uint64
		if err == nil && entry.IsDir() {
			own, err = cgroup.ID(path)
		}
		switch {
		case path != mount && errors.Is(goneError(err), fs.ErrNotExist):
			return nil // removed meanwhile
		case err == nil && own == id:
			found = true
			return filepath.SkipAll
		}
		return err
	})
	return found, err
}

// Populated implements host.
func (h realHost) Populated(dir string) (bool, error) {
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.events"))
	if err != nil {
		return false, goneError(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "populated "); ok {
			return strings.TrimSpace(value) != "0", nil
		}
	}
	return false, fmt.Errorf("read %s: no \"populated\" in cgroup.events", dir)
}

// freezeTime bounds how long processes may take to stop: those that are in the kernel for
// a while, as for a slow disk, stop when they come back.
const freezeTime = 10 * time.Second

// Freeze implements host.
func (h realHost) Freeze(dir string, freeze bool) error {
	word := "0"
	if freeze {
		word = "1"
	}
	if err := os.WriteFile(filepath.Join(dir, "cgroup.freeze"), []byte(word), 0); err != nil {
		return fmt.Errorf("freeze a cgroup: %w", goneError(err))
	}
	for deadline := time.Now().Add(freezeTime); freeze; time.Sleep(time.Millisecond) {
		text, err := os.ReadFile(filepath.Join(dir, "cgroup.events"))
		if err != nil {
			return fmt.Errorf("freeze a cgroup: %w", goneError(err))
		}
		if strings.Contains(string(text), "frozen 1") {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("freeze a cgroup: not all of its processes have stopped after %v", freezeTime)
		}
	}
	return nil
}

// Processes implements host.
func (h realHost) Processes(dir string) ([]int, error) {
	var pids []int
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			if path != dir && errors.Is(goneError(err), fs.ErrNotExist) {
				return nil // a nested cgroup was removed meanwhile
			}
			return err
		}
		if !entry.IsDir() {
			return nil
		}
		text, err := os.ReadFile(filepath.Join(path, "cgroup.procs"))
		if errors.Is(err, unix.EOPNOTSUPP) {
			return nil // a threaded cgroup: its processes are listed above it
		}
		if err != nil {
			err = goneError(err)
			if path != dir && errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
		for _, field := range strings.Fields(string(text)) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				return fmt.Errorf("read cgroup.procs: %w", err)
			}
			pids = append(pids, pid)
		}
		return nil
	})
	return pids, err
}

// goneError makes ENODEV, which reading in a removed cgroup gives, ErrNotExist.
func goneError(err error) error {
	if errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	return err
}
