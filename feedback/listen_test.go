// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A server that comes back on the same path serves, and a waiter does not keep
// the first one from going.
func TestServerComesBack(t *testing.T) {
	scope := newFakeScope()
	path := filepath.Join(t.TempDir(), strings.Repeat("long", 50), "feedback.sock")
	if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	near := filepath.Join(t.TempDir(), "s") // a path short enough to connect to
	if err := os.Symlink(path, near); err != nil {
		t.Fatal(err)
	}
	server := NewServer(scope, Options{})
	for range 3 {
		listener, err := Listen(path)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- server.Serve(ctx, listener) }()
		if page := pageFrom(t, near, ""); len(page.Items) != 0 {
			t.Error("items from nowhere")
		}
		conn, err := net.Dial("unix", near)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, "GET /v1/feedback?wait=30s HTTP/1.1\r\nHost: x\r\n\r\n")
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		conn.Close()
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o666 {
		t.Errorf("the socket: %v %v", info, err)
	}
}

func TestServeTellsOfABrokenListener(t *testing.T) {
	listener, err := Listen(filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	if err := NewServer(newFakeScope(), Options{}).Serve(t.Context(), listener); err == nil {
		t.Error("no error")
	}
	if _, err := Listen("/nonexistent/s"); err == nil {
		t.Error("no error for a directory that is not there")
	}
	occupied := filepath.Join(t.TempDir(), "s")
	if err := os.Mkdir(occupied, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(occupied); err == nil {
		t.Error("no error for a socket that cannot be put in place")
	}
}
