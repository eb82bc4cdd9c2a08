// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// network is a network namespace where every address is this machine's own, with
// what listens in it.
type network struct {
	path      string // of the namespace, for the container to join
	listeners []io.Closer
	peers     map[string]bool // that are listened at
}

// newNetwork makes the namespace, mounted at a path, and listens at the peers; Unix
// sockets that have a path are below root.
func newNetwork(path, root string, peers []peer) (*network, error) {
	n := &network{path: path, peers: map[string]bool{}}
	if err := onThread(func() error { return n.make(root, peers) }); err != nil {
		return nil, errors.Join(err, n.close())
	}
	return n, nil
}

// onThread calls f on a thread of its own, which ends with it: its namespaces can change.
func onThread(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		done <- f()
	}()
	return <-done
}

// add listens at further peers.
func (n *network) add(root string, peers []peer) error {
	return onThread(func() error {
		file, err := os.Open(n.path)
		if err != nil {
			return err
		}
		defer file.Close()
		if err := unix.Setns(int(file.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter a network namespace: %w", err)
		}
		return n.listenAll(root, peers)
	})
}

func (n *network) listenAll(root string, peers []peer) error {
	for _, p := range peers {
		if n.peers[p.text] {
			continue
		}
		if err := n.listen(root, p); err != nil {
			return fmt.Errorf("listen at %s: %w", p.text, err)
		}
		n.peers[p.text] = true
	}
	return nil
}

func (n *network) make(root string, peers []peer) error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("make a network namespace: %w", err)
	}
	file, err := os.Create(n.path)
	if err != nil {
		return err
	}
	file.Close()
	if err := unix.Mount("/proc/thread-self/ns/net", n.path, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("keep a network namespace: %w", err)
	}
	for _, line := range []string{
		"link set lo up", "route add local 0.0.0.0/0 dev lo", "-6 route add local ::/0 dev lo",
	} {
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", line, err, out)
		}
	}
	// To listen at an address, the route is not enough for IPv6.
	if err := os.WriteFile("/proc/sys/net/ipv6/ip_nonlocal_bind", []byte("1"), 0); err != nil {
		return err
	}
	return n.listenAll(root, peers)
}

// listen serves whoever comes: a greeting, and then it takes what is sent.
func (n *network) listen(root string, p peer) error {
	switch {
	case p.udp:
		conn, err := net.ListenPacket("udp", p.addr.String())
		if err == nil {
			n.listeners = append(n.listeners, conn)
		}
		return err
	case p.unix != "":
		return n.listenUnix(root, p.unix)
	}
	listener, err := net.Listen("tcp", p.addr.String())
	if err != nil {
		return err
	}
	n.listeners = append(n.listeners, listener)
	go serve(listener)
	// What is sent there without a connection.
	conn, err := net.ListenPacket("udp", p.addr.String())
	if err == nil {
		n.listeners = append(n.listeners, conn)
	}
	return err
}

func (n *network) listenUnix(root, name string) error {
	if name[0] != '@' {
		// The way there may be longer than a socket's name can be.
		dir, err := os.Open(filepath.Join(root, filepath.Dir(name)))
		if err != nil {
			return err
		}
		defer dir.Close()
		name = fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(name))
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		return err
	}
	listener.SetUnlinkOnClose(false)
	n.listeners = append(n.listeners, listener)
	go serve(listener)
	return nil
}

func serve(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return // closed
		}
		go func() {
			defer conn.Close()
			if _, err := conn.Write([]byte("hello")); err == nil {
				_, _ = io.Copy(io.Discard, conn)
			}
		}()
	}
}

func (n *network) close() error {
	var errs []error
	for _, l := range n.listeners {
		errs = append(errs, l.Close())
	}
	if err := unix.Unmount(n.path, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		errs = append(errs, fmt.Errorf("unmount %q: %w", n.path, err))
	}
	return errors.Join(errs...)
}
