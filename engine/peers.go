// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/containerd/ttrpc"
	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/internal/sockpeer"
)

// peer is who is at the other end of a connection, as the kernel knows it.
type peer struct {
	uid uint32
	// login is who had logged in, and loggedIn whether anybody had: sudo and su do not
	// change it.
	login    uint32
	loggedIn bool
}

// operator completes who a client says that it is: it acts for a person, and its socket
// is root's. Where somebody else had logged in, that is told too.
func (p peer) operator(by *api.Operator) operator {
	o := operatorOf(by)
	if by == nil {
		o.UID, o.Via = p.uid, "api"
		if p.loggedIn {
			o.UID = p.login
		}
		o.Name = userName(o.UID)
	}
	if p.loggedIn && p.login != o.UID {
		o.Login = fmt.Sprintf("uid %d", p.login)
		if name := userName(p.login); name != "" {
			o.Login = fmt.Sprintf("%s (uid %d)", name, p.login)
		}
	}
	return o
}

// Outside says what is wrong with the other end of a connection of this host, if it is inside
// a scope, or where it is cannot be told: a container that has the host's network could listen
// where an approver does not any more.
func (e *Engine) Outside(conn net.Conn) error {
	where, err := sockpeer.Cgroup(conn)
	if err != nil {
		return fmt.Errorf("whether it is outside of every scope cannot be told: %w", err)
	}
	return e.outside(where)
}

// outside is Outside of a cgroup, by its path below the mount.
func (e *Engine) outside(where string) error {
	mount, err := e.config.host.Mount()
	if err != nil {
		return fmt.Errorf("whether it is outside of every scope cannot be told: %w", err)
	}
	dir := filepath.Join(mount, where)
	for _, s := range e.live() {
		if r := s.now(); r.Cgroup != "" && within(dir, r.Cgroup) {
			return errors.New("it is inside a scope")
		}
	}
	return nil
}

// userName is the name of a user; "" if there is none.
func userName(uid uint32) string {
	known, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if err != nil {
		return ""
	}
	return known.Username
}

// peerOf looks at a connection, and lets in who may be.
func (e *Engine) peerOf(conn net.Conn) (peer, error) {
	var p peer
	_, _, err := ttrpc.UnixCredentialsFunc(func(credentials *unix.Ucred) error {
		p.uid = credentials.Uid
		p.login, p.loggedIn = e.config.host.Login(int(credentials.Pid))
		return e.checkPeer(credentials) // last: it says that the process was this one all the time
	}).Handshake(context.Background(), conn)
	return p, err
}

// serveAPI answers clients until ctx ends. Each connection has a server of its own, which
// knows who is there.
func (e *Engine) serveAPI(ctx context.Context, listener net.Listener) error {
	stop := context.AfterFunc(ctx, func() { listener.Close() })
	defer stop()
	var connections sync.WaitGroup
	defer connections.Wait()
	for {
		conn, err := listener.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ECONNABORTED) {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		if err != nil {
			return fmt.Errorf("serve the engine's socket: %w", err)
		}
		connections.Go(func() {
			if err := e.serveConnection(ctx, conn); err != nil {
				e.log.WithError(err).Error("a client was refused")
			}
		})
	}
}

func (e *Engine) serveConnection(ctx context.Context, conn net.Conn) error {
	defer conn.Close()
	p, err := e.peerOf(conn)
	if err != nil {
		return err
	}
	server, err := ttrpc.NewServer()
	if err != nil {
		return fmt.Errorf("make server: %w", err)
	}
	defer server.Close()
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	api.RegisterEngineService(server, &service{engine: e, peer: p})
	one := &oneConnection{conn: conn, ended: make(chan struct{})}
	if err := server.Serve(ctx, one); !errors.Is(err, net.ErrClosed) && !errors.Is(err, ttrpc.ErrServerClosed) {
		return err
	}
	return nil
}

// oneConnection listens for a connection that is there already, and ends with it.
type oneConnection struct {
	conn  net.Conn
	given bool // used by Accept alone
	once  sync.Once
	ended chan struct{}
}

// Accept implements net.Listener.
func (o *oneConnection) Accept() (net.Conn, error) {
	if !o.given {
		o.given = true
		return connection{o.conn, o}, nil
	}
	<-o.ended
	return nil, net.ErrClosed
}

// Close implements net.Listener.
func (o *oneConnection) Close() error {
	o.once.Do(func() { close(o.ended) })
	return nil
}

// Addr implements net.Listener.
func (o *oneConnection) Addr() net.Addr { return o.conn.LocalAddr() }

// connection ends its listener.
type connection struct {
	net.Conn
	of *oneConnection
}

// Close implements net.Conn.
func (c connection) Close() error {
	c.of.Close()
	return c.Conn.Close()
}
