// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/internal/atomicfile"
)

// The run directory:
//
//	engine.sock                     the API, root only
//	lock                            held by the running daemon
//	bin/actplane-guest              one copy for all scopes
//	scopes/ID/scope.json            what a new daemon must know
//	scopes/ID/events.jsonl          its newest events
//	scopes/ID/cursors.json          what was delivered to whom
//	scopes/ID/guest/                mounted read-only at /run/actplane
//	scopes/ID/guest/feedback.sock
//	scopes/ID/guest/bin/actplane-guest
const guestName = "actplane-guest"

// maxSocketPath is what fits into a socket address, with its final zero.
const maxSocketPath = 108

// Lock makes a run directory and takes its lock, which the kernel gives back when
// the process ends, however it ends. It fails with ErrRunning.
func Lock(directory string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(directory), 0o755); err != nil {
		return nil, fmt.Errorf("make run directory: %w", err)
	}
	if err := makeDir(directory, 0o755); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(directory, "lock"), os.O_RDWR|os.O_CREATE|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w (it holds %s)", ErrRunning, lock.Name())
		}
		return nil, fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	return lock, nil
}

// makeRunDirectory makes the tree and copies the guest binary.
func (e *Engine) makeRunDirectory() error {
	if e.lock == nil {
		lock, err := Lock(e.dir)
		if err != nil {
			return err
		}
		e.lock = lock
	}
	// Users inside a container with mapped ids must get through, not look around.
	for _, dir := range []string{"bin", "scopes"} {
		if err := makeDir(filepath.Join(e.dir, dir), 0o711); err != nil {
			return err
		}
	}
	if err := atomicfile.RemoveLeftovers(filepath.Join(e.dir, "bin")); err != nil {
		return fmt.Errorf("clean run directory: %w", err)
	}
	return e.copyGuest()
}

// makeDir makes a directory with exactly this mode, whatever the umask is.
func makeDir(path string, mode fs.FileMode) error {
	if err := os.Mkdir(path, mode); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make directory: %w", err)
	}
	if err := os.Chmod(path, mode); err != nil {
		return fmt.Errorf("set directory's mode: %w", err)
	}
	return nil
}

// copyGuest brings the guest binary onto the run directory's file system, where
// hard links give it to every scope for nothing.
func (e *Engine) copyGuest() error {
	if e.config.GuestBinary == "" {
		e.problem("actplane-guest is not installed beside actplaned: agents get no hook; run \"actplane install\"")
		return nil
	}
	source, err := os.Open(e.config.GuestBinary)
	if errors.Is(err, fs.ErrNotExist) {
		e.problem(fmt.Sprintf("%s does not exist: agents get no hook; run \"actplane install\"", e.config.GuestBinary))
		return nil
	}
	if err != nil {
		return fmt.Errorf("open guest binary: %w", err)
	}
	defer source.Close()
	path := filepath.Join(e.dir, "bin", guestName)
	if same, err := sameContent(source, path); err != nil || same {
		e.guest = path
		return err
	}
	err = atomicfile.Fill(path, atomicfile.Options{Mode: 0o555}, func(file io.Writer) error {
		_, err := io.Copy(file, source)
		return err
	})
	if err != nil {
		// No reason to be away: enforcement and the socket do without.
		e.problem(fmt.Sprintf("agents get no hook: copy guest binary: %v", err))
		return nil
	}
	e.guest = path
	return nil
}

// sameContent compares an open file, which is at its start afterwards, with what
// is at a path.
func sameContent(source *os.File, path string) (bool, error) {
	old, err := os.Open(path)
	if err != nil {
		return false, nil
	}
	defer old.Close()
	one, two := sha256.New(), sha256.New()
	if _, err := io.Copy(one, source); err != nil {
		return false, fmt.Errorf("read guest binary: %w", err)
	}
	if _, err := source.Seek(0, io.SeekStart); err != nil {
		return false, fmt.Errorf("read guest binary: %w", err)
	}
	if _, err := io.Copy(two, old); err != nil {
		return false, nil
	}
	return bytes.Equal(one.Sum(nil), two.Sum(nil)), nil
}

func (e *Engine) problem(sentence string) {
	e.log.Warn(sentence)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.problems = append(e.problems, sentence)
}

// listenUnix listens on a socket at path, in place of any that is there: the
// caller has made sure that nobody serves it. There is no moment at which a
// client finds no socket where there was one. The socket stays when it is
// closed, since a container may look at the path while the daemon restarts.
func listenUnix(path string, mode fs.FileMode) (*net.UnixListener, error) {
	return listenUnixWith(path, mode, nil)
}

// listenUnixWith calls ready with the new socket's temporary path before the
// socket takes its place.
func listenUnixWith(path string, mode fs.FileMode, ready func(path string) error) (*net.UnixListener, error) {
	staging := filepath.Join(filepath.Dir(path), ".sock")
	if err := os.Remove(staging); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove stale socket: %w", err)
	}
	address, done, err := socketAddress(staging)
	if err != nil {
		return nil, err
	}
	defer done()
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: address, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen on socket: %w", err)
	}
	listener.SetUnlinkOnClose(false)
	err = os.Chmod(staging, mode)
	if err == nil && ready != nil {
		err = ready(staging)
	}
	if err == nil {
		err = os.Rename(staging, path)
	}
	if err != nil {
		listener.Close()
		os.Remove(staging)
		return nil, fmt.Errorf("put socket in place: %w", err)
	}
	return listener, nil
}

// socketAddress gives a path that fits into a socket's address: containerd's ids
// may have 76 characters, and then ours does not.
func socketAddress(path string) (address string, done func(), err error) {
	if len(path) < maxSocketPath {
		return path, func() {}, nil
	}
	dir, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", nil, fmt.Errorf("open socket's directory: %w", err)
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir, filepath.Base(path)), func() { unix.Close(dir) }, nil
}

// checkID accepts what is safe as the name of a directory. The same characters
// are what runc accepts.
func checkID(id string) error {
	const most = 128
	switch {
	case id == "":
		return errors.New("the scope's id is empty")
	case len(id) > most:
		return fmt.Errorf("the scope's id has %d characters; the limit is %d", len(id), most)
	case id[0] == '.':
		return fmt.Errorf("scope id %q starts with a dot", id)
	}
	bad := func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("_+-.", r))
	}
	if i := strings.IndexFunc(id, bad); i >= 0 {
		return fmt.Errorf("scope id %q has a character other than letters, digits, dots and _+-", id)
	}
	return nil
}
