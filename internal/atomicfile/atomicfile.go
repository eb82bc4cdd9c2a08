// SPDX-License-Identifier: Apache-2.0

// Package atomicfile puts files in the place of others in one step: whoever opens
// the path finds the old content or the new one, and who has the old file open
// keeps it.
package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Options are what the new file is to have besides its content.
type Options struct {
	Mode uint32 // as chmod(2) takes it, whatever the umask is
	// Owner, if set, are the user and the group that the file is to belong to.
	Owner *Owner
	// Sync makes the content reach the disk before the file takes its place, and its
	// name before Write returns: a host that loses its power during that keeps the old
	// file or has the new one, and afterwards has the new one.
	Sync bool
}

// Owner is a user and a group.
type Owner struct{ UID, GID int }

// suffix ends the names of files that are being written, before CreateTemp's digits.
const suffix = ".new-"

// Write makes path a new file with this content.
func Write(path string, content []byte, options Options) error {
	return Fill(path, options, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// Fill makes path a new file with what fill writes. When fill or anything else
// fails, what was at the path is still there.
func Fill(path string, options Options, fill func(io.Writer) error) (err error) {
	// Made for us alone (0600, O_EXCL): nobody else has it open.
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+suffix+"*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			file.Close()
			os.Remove(file.Name())
		}
	}()
	if err := fill(file); err != nil {
		return err
	}
	if o := options.Owner; o != nil {
		if err := own(file, *o); err != nil {
			return err
		}
	}
	// After the owner, whose change takes set-user-ID bits away.
	if err := unix.Fchmod(int(file.Fd()), options.Mode); err != nil {
		return &fs.PathError{Op: "chmod", Path: file.Name(), Err: err}
	}
	if options.Sync {
		if err := file.Sync(); err != nil {
			return err
		}
	}
	if err := file.Close(); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return err
	}
	if options.Sync {
		return SyncDirectory(filepath.Dir(path))
	}
	return nil
}

// SyncDirectory makes what was renamed or removed in a directory reach the disk.
func SyncDirectory(path string) error {
	directory, err := os.Open(path)
	if err != nil {
		return err
	}
	defer directory.Close()
	// Some file systems have nothing to do there, and say so.
	if err := directory.Sync(); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOTSUP) {
		return err
	}
	return nil
}

// own gives a file to its owner. Which group a new file has depends on its directory.
func own(file *os.File, o Owner) error {
	var stat unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &stat); err != nil {
		return &fs.PathError{Op: "stat", Path: file.Name(), Err: err}
	}
	if int(stat.Uid) == o.UID && int(stat.Gid) == o.GID {
		return nil
	}
	return file.Chown(o.UID, o.GID)
}

// IsLeftover tells whether a name is of a file that is being written, or whose
// writer was killed.
func IsLeftover(name string) bool {
	base := filepath.Base(name)
	at := strings.LastIndex(base, suffix)
	return at > 0 && base[0] == '.' && strings.Trim(base[at+len(suffix):], "0123456789") == ""
}

// RemoveLeftovers removes what killed writers have left in a directory. Nobody
// may be writing in it.
func RemoveLeftovers(directory string) error {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Type().IsRegular() && IsLeftover(entry.Name()) {
			if err := os.Remove(filepath.Join(directory, entry.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
