// SPDX-License-Identifier: Apache-2.0

package frontend

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/internal/atomicfile"
)

const (
	// BackupSuffix is of a file as it is without the runtime, beside the one that has it.
	BackupSuffix = ".before-actplane"
	maxFile      = 16 << 20
)

// An editor changes the text of a file, which is nil where there is no file, as
// what it returns is where there shall be none.
type editor interface {
	add(text []byte) ([]byte, error)
	remove(text []byte) ([]byte, error)
}

// An Edit is a change of one file that was checked and not yet made.
type Edit struct {
	Path          string // as it was named
	Before, After []byte // nil: there is no file
	target        string // Path behind its links
	without       []byte // the file without the runtime
	removing      bool
	dropIn        bool // the file is ours by its name: no backup, and a folder that was made for it goes with it
	mode          fs.FileMode
	owner         *atomicfile.Owner // nil: who writes it
}

// planEdit reads a file and makes its new text.
func planEdit(path string, ed editor, remove bool) (*Edit, error) {
	return plan(&Edit{Path: path, target: path, mode: 0o644, removing: remove}, ed)
}

// planDropIn is planEdit for a file that is ours by its name.
func planDropIn(path string, ed *block, remove bool) (*Edit, error) {
	own := *ed
	own.folderMade = !exists(filepath.Dir(path))
	ed = &own
	return plan(&Edit{Path: path, target: path, mode: 0o644, removing: remove, dropIn: true}, ed)
}

func plan(e *Edit, ed editor) (*Edit, error) {
	path, remove := e.Path, e.removing
	if err := e.read(); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	var err error
	if e.without, err = ed.remove(e.Before); err == nil {
		e.After = e.without
		if !remove {
			e.After, err = ed.add(e.Before)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w; it was not changed", path, err)
	}
	// A file that holds nothing but what we put there goes; that it was there before, even
	// if it was empty, tells its backup.
	if remove && e.Before != nil && isNothing(e.After) && e.backup() == nil && e.Changes() {
		e.After = nil
	}
	return e, nil
}

// isNothing tells whether a text says nothing, in TOML or in JSON.
func isNothing(text []byte) bool {
	return len(bytes.Join(bytes.Fields(text), nil)) == 0 || string(bytes.Join(bytes.Fields(text), nil)) == "{}"
}

func (e *Edit) read() error {
	target, err := filepath.EvalSymlinks(e.Path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(e.Path); err == nil {
			return errors.New("it is a link to what is not there")
		}
		return nil
	} else if err != nil {
		return err
	}
	e.target = target
	file, err := os.OpenFile(target, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a named pipe is not waited for
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is not a regular file")
	}
	e.mode = info.Mode().Perm()
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		e.owner = &atomicfile.Owner{UID: int(stat.Uid), GID: int(stat.Gid)}
	}
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("it has more than %d bytes", maxFile)
	}
	e.Before = append([]byte{}, text...)
	return err
}

// Check refuses what could not be written, before anything else is.
func (e *Edit) Check() error {
	if !e.Changes() {
		return nil
	}
	if e.Before != nil {
		if err := unix.Access(e.target, unix.W_OK); err != nil {
			return fmt.Errorf("change %s: %w", e.target, err)
		}
	}
	directory := filepath.Dir(e.target)
	for !exists(directory) && directory != filepath.Dir(directory) {
		directory = filepath.Dir(directory)
	}
	if err := unix.Access(directory, unix.W_OK|unix.X_OK); err != nil {
		return fmt.Errorf("write in %s: %w", directory, err)
	}
	return nil
}

// Changes tells whether there is anything to do.
func (e *Edit) Changes() bool {
	return !bytes.Equal(e.Before, e.After) || (e.Before == nil) != (e.After == nil)
}

// backup is what lies beside the file, nil if nothing does.
func (e *Edit) backup() []byte {
	text, err := os.ReadFile(e.target + BackupSuffix)
	if err != nil {
		return nil
	}
	return append([]byte{}, text...)
}

// Left is the backup that stays behind a removal, "" if none does: the file was changed
// meanwhile.
func (e *Edit) Left() string {
	if path := e.target + BackupSuffix; e.removing && exists(path) {
		return path
	}
	return ""
}

// write puts a text in the place of the file; it looks like what was there.
func (e *Edit) write(path string, text []byte) error {
	return atomicfile.Write(path, text, atomicfile.Options{Mode: uint32(e.mode), Owner: e.owner, Sync: true})
}

// apply makes the change. Whatever ends it half way, the file is the old one or the
// new one, and doing it again does the rest.
func (e *Edit) apply() error {
	e.sweep()
	if err := e.keepOriginal(); err != nil {
		return fmt.Errorf("back up %s: %w", e.Path, err)
	}
	if e.Changes() {
		if err := e.replace(); err != nil {
			return fmt.Errorf("change %s: %w", e.Path, err)
		}
	}
	if text := e.backup(); e.removing && text != nil && bytes.Equal(text, e.After) {
		return os.Remove(e.target + BackupSuffix)
	}
	return nil
}

func (e *Edit) replace() error {
	if e.After == nil {
		if err := os.Remove(e.target); err != nil && !errors.Is(err, fs.ErrNotExist) { // of another front end, too
			return err
		}
		if e.dropIn && bytes.Contains(e.Before, []byte(folderMade)) && os.Remove(filepath.Dir(e.target)) == nil { // it was empty
			return nil
		}
		return atomicfile.SyncDirectory(filepath.Dir(e.target))
	}
	if err := os.MkdirAll(filepath.Dir(e.target), 0o755); err != nil {
		return err
	}
	return e.write(e.target, e.After)
}

// keepOriginal writes the backup of a file that others made.
func (e *Edit) keepOriginal() error {
	if e.removing || e.dropIn || !e.Changes() || e.Before == nil || isNothing(e.without) && !bytes.Equal(e.without, e.Before) {
		return nil
	}
	return e.write(e.target+BackupSuffix, e.without)
}

// sweep removes what writers that were killed have left.
func (e *Edit) sweep() {
	for _, path := range []string{e.target, e.target + BackupSuffix} {
		left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".*"))
		for _, name := range left {
			if atomicfile.IsLeftover(name) {
				os.Remove(name)
			}
		}
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
