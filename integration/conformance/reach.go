// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// unreachableError is a path that a policy is never asked about, since the kernel
// itself finds no way there.
type unreachableError struct{ why string }

func (e *unreachableError) Error() string { return e.why }

// reachable looks from outside whether the kernel gets to what a step is about: to
// the directories, and over the symbolic links.
func (s *stage) reachable(words []string) error {
	root, err := unix.Open(s.root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %q: %w", s.root, err)
	}
	defer unix.Close(root)
	for _, name := range paths(words) {
		if strings.HasPrefix(name, "/dev/") || strings.HasPrefix(name, "/proc/") {
			continue // mounted in the container only
		}
		switch err := look(root, path.Dir(name)); {
		case errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR):
			return &unreachableError{"there is no directory " + path.Dir(name) + " any more"}
		case err != nil && !errors.Is(err, unix.ELOOP):
			return fmt.Errorf("look at %s: %w", path.Dir(name), err)
		}
		if err := look(root, name); errors.Is(err, unix.ELOOP) {
			return &unreachableError{"the kernel follows no such symbolic links"}
		}
	}
	if words[1] == "link" && isDirectory(root, words[2]) {
		return &unreachableError{"the kernel gives no directory a second name"} // and says EPERM
	}
	return nil
}

// moves looks whether what a step moves are folders, as the model supposes.
func (s *stage) moves(words []string, folders []bool) error {
	root, err := unix.Open(s.root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %q: %w", s.root, err)
	}
	defer unix.Close(root)
	for i, folder := range folders {
		if name := words[2+i]; isDirectory(root, name) != folder {
			return &unreachableError{"what " + name + " is, nothing has shown before"}
		}
	}
	return nil
}

func isDirectory(root int, name string) bool {
	fd, err := unix.Openat2(root, name, &unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT})
	if err == nil {
		_ = unix.Close(fd)
	}
	return err == nil
}

func look(root int, name string) error {
	fd, err := unix.Openat2(root, name, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT})
	if err == nil {
		err = unix.Close(fd)
	}
	return err
}

// file tells which regular file a path of the container leads to: its name without
// symbolic links, and its inode. "" for none.
func (s *stage) file(path string) (name string, inode uint64, err error) {
	root, err := unix.Open(s.root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", 0, fmt.Errorf("open %q: %w", s.root, err)
	}
	defer unix.Close(root)
	fd, err := unix.Openat2(root, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT})
	if err != nil {
		return "", 0, nil // it leads nowhere
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return "", 0, fmt.Errorf("stat %q: %w", path, err)
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return "", 0, nil
	}
	name, err = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	return strings.TrimPrefix(name, s.root), stat.Ino, err
}

// paths are those of a step that the kernel resolves.
func paths(words []string) []string {
	if isRestart(words) {
		return nil
	}
	op, args := words[1], words[2:]
	switch op {
	case "exec", "execfails", "mapexec", "open", "read", "write", "append", "truncate", "unlink", "rmdir", "mkdir",
		"chmod", "chown", "mmapshared":
		return args[:1]
	case "execscript", "rename", "exchange", "link":
		return args[:2]
	case "symlink":
		return args[1:2]
	case "fdopen":
		return args[2:3]
	}
	return nil
}
