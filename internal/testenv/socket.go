// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"testing"
)

// ListenUnix listens on a scope's socket as the engine does: in place of one that is
// there, and the socket stays when the listener is closed. Who serves it closes it.
func ListenUnix(t testing.TB, path string) *net.UnixListener {
	t.Helper()
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	return listener
}
