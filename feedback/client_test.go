// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/internal/testenv"
)

func TestClientWithoutAServer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "feedback.sock")
	_, err := NewClient(path).Status(t.Context())
	if want := "not in an ActPlane scope, or in one without feedback (no " + path + ")"; !errors.Is(err, ErrNoScope) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	listener.Close()
	_, err = NewClient(path).Status(t.Context())
	if err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "the policy is enforced all the same") {
		t.Errorf("got %v", err)
	}
}

func TestClientReportsARefusal(t *testing.T) {
	scope := newFakeScope()
	scope.stranger = true
	_, err := NewClient(serve(t, scope, nil)).Status(t.Context())
	if err == nil || !strings.Contains(err.Error(), "is not in the container") {
		t.Errorf("got %v", err)
	}
}

func TestTreeDepth(t *testing.T) {
	proc := t.TempDir()
	const rest = " 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0\n"
	process := func(pid, stat, exe, comm string) {
		directory := filepath.Join(proc, pid)
		if err := errors.Join(os.Mkdir(directory, 0o755),
			os.WriteFile(filepath.Join(directory, "stat"), []byte(stat+rest), 0o644),
			os.WriteFile(filepath.Join(directory, "comm"), []byte(comm+"\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
		if exe != "" {
			if err := os.Symlink(exe, filepath.Join(directory, "exe")); err != nil {
				t.Fatal(err)
			}
		}
	}
	process("1", "1 (tini) S 0 1", "/sbin/tini", "tini")
	process("2", "2 (node) S 1 2", "/usr/bin/node", "node")
	process("3", "3 (a) b) S 2 2", "/bin/bash (deleted)", "a) b")
	process("4", "4 (sh) S 3 2", "", "sh")
	process("5", "5 (guest) S 4 2", "/run/actplane/bin/actplane-guest", "guest")
	process("6", "6 (sh) S 0 2", "/bin/sh", "sh")
	process("7", "7 (bash) S 6 2", "/bin/bash", "bash")
	process("8", "8 (guest) S 7 2", "/x", "guest")
	process("9", "nonsense", "/x", "guest")
	for pid, want := range map[int]int{5: 3, 4: 2, 3: 1, 2: 1, 1: -1, 8: 2, 7: 1, 9: -1, 99: -1} {
		if got := TreeDepth(proc, pid); got != want {
			t.Errorf("process %d: depth %d, want %d", pid, got, want)
		}
	}
	if got := TreeDepth("/proc", os.Getpid()); got == 0 {
		t.Error("no depth for this process")
	}
}

// A queue that is full is not the end: a client waits for room in it, as long as it may.
func TestClientWaitsInTheQueue(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	listener := testenv.ListenUnix(t, path)
	raw, err := listener.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) { err = unix.Listen(int(fd), 0) }); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for err == nil { // until there is no more room
		var conn net.Conn
		if conn, err = net.Dial("unix", path); err == nil {
			t.Cleanup(func() { conn.Close() })
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := NewClient(path).Status(ctx); !errors.Is(err, unix.EAGAIN) && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	got := make(chan error, 1)
	go func() {
		_, err := NewClient(path).Status(t.Context())
		got <- err
	}()
	serveOn(t, newFakeScope(), nil, listener)
	if err := <-got; err != nil {
		t.Error(err)
	}
}
