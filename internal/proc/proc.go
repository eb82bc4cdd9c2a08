// SPDX-License-Identifier: Apache-2.0

// Package proc reads what the kernel tells of a process in /proc/PID/stat.
package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Directory is where proc is mounted.
const Directory = "/proc"

// Stat is a part of proc_pid_stat(5).
type Stat struct {
	State   byte   // 'Z' and 'X': it has ended
	Parent  int    // its parent's pid; 0 if that is in another pid namespace
	Started uint64 // clock ticks since boot; tells processes with one pid apart
}

// Ended tells whether only the parent's wait is missing.
func (s Stat) Ended() bool { return s.State == 'Z' || s.State == 'X' }

// ReadStat reads the stat of a process; directory is Directory but in tests. The
// error wraps fs.ErrNotExist when there is no such process.
func ReadStat(directory string, pid int) (Stat, error) {
	if pid <= 0 {
		return Stat{}, fmt.Errorf("read process %d: not a process's number", pid)
	}
	text, err := os.ReadFile(filepath.Join(directory, strconv.Itoa(pid), "stat"))
	if errors.Is(err, syscall.ESRCH) {
		err = fs.ErrNotExist // it ended between open and read
	}
	if err != nil {
		return Stat{}, fmt.Errorf("read process %d: %w", pid, err)
	}
	stat, err := parse(string(text))
	if err != nil {
		return Stat{}, fmt.Errorf("read process %d: %w", pid, err)
	}
	return stat, nil
}

// parse takes what follows the name, which is in parentheses and may hold blanks
// and parentheses itself.
func parse(text string) (Stat, error) {
	const state, parent, started = 0, 1, 19 // proc_pid_stat(5) counts from 1, with pid and name
	open, end := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return Stat{}, errors.New("its stat has no name")
	}
	fields := strings.Fields(text[end+1:])
	if len(fields) <= started {
		return Stat{}, fmt.Errorf("its stat has only %d fields behind the name", len(fields))
	}
	s := Stat{State: fields[state][0]}
	var err error
	if s.Parent, err = strconv.Atoi(fields[parent]); err != nil {
		return Stat{}, fmt.Errorf("its parent: %w", err)
	}
	if s.Started, err = strconv.ParseUint(fields[started], 10, 64); err != nil {
		return Stat{}, fmt.Errorf("its start: %w", err)
	}
	return s, nil
}
