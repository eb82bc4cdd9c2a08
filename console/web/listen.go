// SPDX-License-Identifier: Apache-2.0

package web

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/internal/sockpeer"
)

// ListenUnix listens on a socket that only its owner can reach. One that nobody serves any
// more is replaced.
func ListenUnix(path string) (net.Listener, error) {
	if conn, err := net.Dial("unix", path); err == nil {
		conn.Close()
		return nil, fmt.Errorf("listen on %q: another process serves it", path)
	}
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("listen: %w", err)
	case info.Mode().Type() != fs.ModeSocket:
		return nil, fmt.Errorf("listen on %q: it is there, and no socket", path)
	default:
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("listen: %w", err)
		}
	}
	// The mode has to be there from the first moment on. The mask is the process's: no other
	// file is made here meanwhile.
	mask := unix.Umask(0o177)
	defer unix.Umask(mask)
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return listener, nil
}

// CheckLoopback tells what is wrong with an address to listen on.
func CheckLoopback(address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%q is no address and port, such as 127.0.0.1:8700 or 127.0.0.1:0", address)
	}
	if !at.Addr().IsLoopback() || at.Addr().Zone() != "" {
		return fmt.Errorf("%s is no loopback address; other machines reach the page through SSH, see \"actplane web --help\"", at.Addr())
	}
	return nil
}

// ListenLoopback listens on a loopback address and a port; port 0 is any that is free. It
// fails where the kernel does not tell whose a connection is.
func ListenLoopback(address string) (net.Listener, error) {
	if err := CheckLoopback(address); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if err := tryPeer(listener); err != nil {
		listener.Close()
		return nil, fmt.Errorf("no connection could be told from a container's: %w; \"modprobe tcp_diag\" may help, or listen on the socket", err)
	}
	return listener, nil
}

// tryPeer connects to a listener and looks whether it finds out who that was.
func tryPeer(listener net.Listener) error {
	near, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		return err
	}
	defer near.Close()
	for {
		far, err := listener.Accept()
		if err != nil {
			return err
		}
		defer far.Close()
		if far.RemoteAddr().String() == near.LocalAddr().String() { // nobody was faster
			_, err := sockpeer.Cgroup(far)
			return err
		}
	}
}
