// SPDX-License-Identifier: Apache-2.0

package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/internal/testenv"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// names lists a directory.
func names(t *testing.T, directory string) string {
	t.Helper()
	entries, err := os.ReadDir(directory)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, entry := range entries {
		all = append(all, entry.Name())
	}
	return strings.Join(all, " ")
}

func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, sync := range []bool{false, true} {
		if err := Write(path, []byte("one"), Options{Mode: 0o640, Sync: sync}); err != nil {
			t.Fatal(err)
		}
	}
	old, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	umask := syscall.Umask(0o077)
	err = Write(path, []byte("two"), Options{Mode: 0o666})
	syscall.Umask(umask)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := io.ReadAll(old)
	info, statErr := os.Stat(path)
	if got := read(t, path); got != "two" || string(kept) != "one" || err != nil || statErr != nil || info.Mode() != 0o666 {
		t.Errorf("new %q, old %q, %v %v", got, kept, info, errors.Join(err, statErr))
	}
	if got := names(t, filepath.Dir(path)); got != "file" {
		t.Errorf("the directory has %s", got)
	}
}

func TestOwner(t *testing.T) {
	testenv.RequireRoot(t)
	path := filepath.Join(t.TempDir(), "file")
	if err := Write(path, nil, Options{Mode: 0o4755, Owner: &Owner{UID: 65534, GID: 65533}}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if stat := info.Sys().(*syscall.Stat_t); stat.Uid != 65534 || stat.Gid != 65533 || stat.Mode&0o7777 != 0o4755 {
		t.Errorf("owner %d:%d, mode %o", stat.Uid, stat.Gid, stat.Mode)
	}
}

// In a directory that gives its group to new files, a file has the group that is asked for.
func TestGroupOfDirectory(t *testing.T) {
	testenv.RequireRoot(t)
	directory := t.TempDir()
	if err := errors.Join(os.Chown(directory, 0, 65533), unix.Chmod(directory, 0o2755)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(directory, "file")
	if err := Write(path, nil, Options{Mode: 0o644, Owner: &Owner{}}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if stat := info.Sys().(*syscall.Stat_t); stat.Uid != 0 || stat.Gid != 0 {
		t.Errorf("owner %d:%d", stat.Uid, stat.Gid)
	}
}

// Whatever fails, the old file stays and nothing else does.
func TestFailures(t *testing.T) {
	directory := t.TempDir()
	path := filepath.Join(directory, "file")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	reason := errors.New("reason")
	err := Fill(path, Options{Mode: 0o644}, func(w io.Writer) error {
		_, err := io.WriteString(w, "half")
		return errors.Join(err, reason)
	})
	if !errors.Is(err, reason) || read(t, path) != "old" || names(t, directory) != "file" {
		t.Errorf("%v, %q, %s", err, read(t, path), names(t, directory))
	}
	occupied := filepath.Join(directory, "folder")
	if err := os.MkdirAll(filepath.Join(occupied, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Write(occupied, nil, Options{}); err == nil || names(t, directory) != "file folder" {
		t.Errorf("%v, %s", err, names(t, directory))
	}
	if err := Write(filepath.Join(directory, "none", "file"), nil, Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in no directory: %v", err)
	}
}

// Writers of one path don't spoil each other's work.
func TestTogether(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			text := strings.Repeat(string(rune('a'+i)), 1<<16)
			for range 20 {
				if err := Write(path, []byte(text), Options{Mode: 0o600}); err != nil {
					t.Error(err)
				}
				got := read(t, path)
				if len(got) != 1<<16 || strings.Trim(got, got[:1]) != "" {
					t.Errorf("%d bytes, not all the same", len(got))
				}
			}
		})
	}
	group.Wait()
}

func TestLeftovers(t *testing.T) {
	directory := t.TempDir()
	for _, name := range []string{".file.new-123", ".a b.new-0", ".file.new-12x", "file.new-123", ".new", "file", ".file.new-1.new-"} {
		if err := os.WriteFile(filepath.Join(directory, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(directory, ".folder.new-1"), 0o700); err != nil {
		t.Fatal(err)
	}
	// What Fill really makes is one.
	path := filepath.Join(directory, "file")
	err := Fill(path, Options{Mode: 0o600}, func(w io.Writer) error {
		if name := w.(*os.File).Name(); !IsLeftover(name) {
			t.Errorf("%s is no leftover", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := RemoveLeftovers(directory); err != nil {
		t.Fatal(err)
	}
	if got := names(t, directory); got != ".file.new-12x .folder.new-1 .new file file.new-123" {
		t.Errorf("left are %s", got)
	}
}
