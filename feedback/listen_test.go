// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"testing"

	"github.com/actplane/actplane/internal/testenv"
)

// A server that comes back on the same path serves, and a waiter does not keep
// the first one from going.
func TestServerComesBack(t *testing.T) {
	scope := newFakeScope()
	path := filepath.Join(t.TempDir(), "feedback.sock")
	server := NewServer(scope, Options{})
	for range 3 {
		listener := testenv.ListenUnix(t, path)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- server.Serve(ctx, listener) }()
		if page := pageFrom(t, path, ""); len(page.Items) != 0 {
			t.Error("items from nowhere")
		}
		conn, err := net.Dial("unix", path)
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
}

func TestServeTellsOfABrokenListener(t *testing.T) {
	listener := testenv.ListenUnix(t, filepath.Join(t.TempDir(), "s"))
	listener.Close()
	if err := NewServer(newFakeScope(), Options{}).Serve(t.Context(), listener); err == nil {
		t.Error("no error")
	}
}
