// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// gate bounds the connections, and finds out who each is from while the peer
// has had the least time to die and leave its pid to another.
type gate struct {
	*net.UnixListener
	scope  Scope
	limits limits
	pace   bucket // of connections

	mu    sync.Mutex
	total int
	open  map[int]int // connections by pid
}

// peerConn is a connection whose other end is known.
type peerConn struct {
	*net.UnixConn
	peer   Process
	member bool // of the scope
	pid    int
	gate   *gate
	once   sync.Once
}

// Accept implements net.Listener. It does not wait for any peer. Those that
// are too many in a second wait in the kernel: a connection costs the engine more
// than the peer.
func (g *gate) Accept() (net.Conn, error) {
	for {
		for !g.pace.take(time.Now(), g.limits.arrivals, g.limits.arrivals) {
			time.Sleep(time.Second / 100)
		}
		conn, err := g.AcceptUnix()
		if err != nil {
			return nil, err
		}
		pid, err := peerPID(conn)
		if err != nil {
			conn.Close()
			continue
		}
		if !g.enter(pid) {
			refuse(conn)
			continue
		}
		accepted := &peerConn{UnixConn: conn, pid: pid, gate: g}
		// A peer outside this process's pid namespace has pid 0.
		if pid > 0 {
			accepted.peer, accepted.member = g.scope.Peer(pid)
		}
		return accepted, nil
	}
}

func (g *gate) enter(pid int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.total >= g.limits.connections || g.open[pid] >= g.limits.perPeer {
		return false
	}
	g.total++
	g.open[pid]++
	return true
}

func (g *gate) leave(pid int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.total--
	if g.open[pid]--; g.open[pid] == 0 {
		delete(g.open, pid)
	}
}

// Close implements net.Conn and makes room at the gate.
func (c *peerConn) Close() error {
	c.once.Do(func() { c.gate.leave(c.pid) })
	return c.UnixConn.Close()
}

// refuse tells a peer that there are too many and hangs up. The answer fits
// into the socket's buffer; the deadline is for a buffer that a peer made tiny.
func refuse(conn *net.UnixConn) {
	const body = `{"error":"too many connections to the feedback socket are open; try again later"}` + "\n"
	conn.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
	fmt.Fprintf(conn, "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"+
		"Content-Length: %d\r\nRetry-After: 1\r\nConnection: close\r\n\r\n%s", len(body), body)
	conn.Close()
}

// peerPID is the process that connected, as the kernel noted it at connect.
func peerPID(conn *net.UnixConn) (int, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("read peer credentials: %w", err)
	}
	var cred *unix.Ucred
	var failure error
	err = raw.Control(func(fd uintptr) {
		cred, failure = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err := errors.Join(err, failure); err != nil {
		return 0, fmt.Errorf("read peer credentials: %w", err)
	}
	return int(cred.Pid), nil
}

type peerKey struct{}

// withPeer is http.Server.ConnContext.
func withPeer(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, peerKey{}, conn)
}

// peerOf is the process that a request comes from, and whether it is in the scope.
func peerOf(ctx context.Context) (Process, bool) {
	conn, ok := ctx.Value(peerKey{}).(*peerConn)
	if !ok {
		return Process{}, false
	}
	return conn.peer, conn.member
}
