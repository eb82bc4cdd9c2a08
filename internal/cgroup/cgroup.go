// SPDX-License-Identifier: Apache-2.0

// Package cgroup finds the cgroup v2 of a process: the mount, also on hybrid
// hosts where v1 hierarchies stand beside it, the directory and the id by which
// the kernel's programs know it.
//
// The root cgroup is never an answer: every process of the host is below it.
package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrNoMount says that no cgroup v2 file system is mounted.
var ErrNoMount = errors.New("cgroup v2 is not mounted; mount it, or boot with systemd.unified_cgroup_hierarchy=1")

// ErrRoot says that a process is in the root cgroup.
var ErrRoot = errors.New("the process is in the root cgroup, which is not a container's")

// Mounts tells where the hierarchies are.
type Mounts struct {
	Proc    string   // the proc file system, /proc
	Unified string   // the cgroup v2 mount
	Root    string   // the path within the v2 hierarchy that is mounted there, mostly /
	Legacy  []string // the v1 mounts
}

// Find reads the mounts of this process from proc, which is /proc.
func Find(proc string) (*Mounts, error) {
	file, err := os.Open(filepath.Join(proc, "self/mountinfo"))
	if err != nil {
		return nil, fmt.Errorf("read mounts: %w", err)
	}
	defer file.Close()
	mounts := &Mounts{Proc: proc}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20) // overlay options are long
	for lines.Scan() {
		mounts.add(lines.Text())
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read mounts: %w", err)
	}
	if mounts.Unified == "" {
		return nil, ErrNoMount
	}
	return mounts, nil
}

// add takes a line "36 35 98:0 /root /point options [tags…] - type source super".
func (m *Mounts) add(line string) {
	before, after, ok := strings.Cut(line, " - ")
	fields := strings.Fields(before)
	if !ok || len(fields) < 6 {
		return
	}
	kind, _, _ := strings.Cut(after, " ")
	root, point := unescape(fields[3]), unescape(fields[4])
	switch {
	case kind == "cgroup":
		m.Legacy = append(m.Legacy, point)
	case kind == "cgroup2" && (m.Unified == "" || m.Root != "/" && root == "/"):
		// The mount of the whole hierarchy is better than one of a part of it.
		m.Unified, m.Root = point, root
	}
}

// unescape undoes the kernel's \040 for a space, and the like.
func unescape(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+3 < len(text) {
			if code, err := strconv.ParseUint(text[i+1:i+4], 8, 8); err == nil {
				out.WriteByte(byte(code))
				i += 3
				continue
			}
		}
		out.WriteByte(text[i])
	}
	return out.String()
}

// Path is a process's path in the v2 hierarchy; ErrRoot when it is the root.
func (m *Mounts) Path(pid int) (string, error) {
	data, err := os.ReadFile(filepath.Join(m.Proc, strconv.Itoa(pid), "cgroup"))
	if err != nil {
		return "", fmt.Errorf("read cgroup of process %d: %w", pid, err)
	}
	for line := range strings.Lines(string(data)) {
		path, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::")
		if !ok {
			continue
		}
		if strings.HasSuffix(path, " (deleted)") {
			return "", fmt.Errorf("read cgroup of process %d: %q is gone", pid, strings.TrimSuffix(path, " (deleted)"))
		}
		if path == "/" {
			return "", fmt.Errorf("read cgroup of process %d: %w", pid, ErrRoot)
		}
		// A process outside our cgroup namespace shows as /../…: not a path of ours.
		if !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "/..") || path != filepath.Clean(path) {
			return "", fmt.Errorf("read cgroup of process %d: %q is outside of what this process can see", pid, path)
		}
		return path, nil
	}
	return "", fmt.Errorf("read cgroup of process %d: it is in no cgroup v2", pid)
}

// Directory is the directory of a path in the v2 hierarchy.
func (m *Mounts) Directory(path string) (string, error) {
	below := path
	if m.Root != "/" {
		var ok bool
		below, ok = strings.CutPrefix(path, m.Root)
		if !ok || below != "" && below[0] != '/' {
			return "", fmt.Errorf("find cgroup %q: only %q is mounted at %q", path, m.Root, m.Unified)
		}
	}
	if filepath.Clean("/"+below) == "/" {
		return "", fmt.Errorf("find cgroup %q: %w", path, ErrRoot)
	}
	directory := filepath.Join(m.Unified, below)
	info, err := os.Stat(directory)
	if err != nil {
		return "", fmt.Errorf("find cgroup: %w", err)
	}
	if !info.IsDir() {
		return "", &fs.PathError{Op: "find cgroup", Path: directory, Err: unix.ENOTDIR}
	}
	return directory, nil
}

// Of is the directory of a process's cgroup.
func (m *Mounts) Of(pid int) (string, error) {
	path, err := m.Path(pid)
	if err != nil {
		return "", err
	}
	return m.Directory(path)
}

// ID is the number by which the kernel knows a cgroup: its directory's inode.
func ID(directory string) (uint64, error) {
	var stat unix.Stat_t
	if err := unix.Stat(directory, &stat); err != nil {
		return 0, &fs.PathError{Op: "stat cgroup", Path: directory, Err: err}
	}
	return stat.Ino, nil
}
