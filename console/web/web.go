// SPDX-License-Identifier: Apache-2.0

// Package web is the page of `actplane web`: what waits for an answer, what happened and
// why, what each rule did, and what is under policy, in a browser on this host or behind
// an SSH tunnel.
//
// Who gets in: a connection comes over a Unix socket of mode 0600 or from a loopback
// address, and never from a process of a scope, which is looked up before a byte is read.
// A request names this host as localhost, so that no name of somebody else's leads here,
// and shows the token of this run in a header. There is no cookie: other ports of
// localhost would get it too, and those of a container with the host's network.
//
// What the page shows is escaped here, and put into text nodes there; the content security
// policy lets nothing run but the two scripts of this package.
package web

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/actplane/actplane/console"
	"github.com/actplane/actplane/engine/api"
)

// Source is where the page has its picture from; [console.Watcher] is one.
type Source interface {
	View() *console.View
	Changed() <-chan struct{}
	Answer(context.Context, *api.AnswerRequest) (*api.Request, error)
	Revoke(context.Context, *api.RevokeRequest) (*api.Request, error)
	Lockdown(context.Context, *api.LockdownRequest) (*api.Lock, error)
	Unlock(context.Context, *api.UnlockRequest) (*api.Lock, error)
	Graph(context.Context, *api.Event, *time.Location) console.Graph
	// Scopes lists what is under policy now; who is in one of them gets no connection.
	Scopes(context.Context) ([]*api.Scope, error)
}

// Options say whose page it is.
type Options struct {
	Source  Source
	Answers func() *api.Operator // who answers
	Zone    *time.Location       // of the times in answers; default time.Local
	Log     *log.Logger          // of refused connections; default none
}

// Server serves the page.
type Server struct {
	options Options
	token   string
	peers   peers
	limits  limits
	open    atomic.Int64 // connections
}

// limits bound what those who connect can make this process hold and do.
type limits struct {
	connections int64
	header      int   // bytes
	body        int64 // bytes
	receive     time.Duration
	send        time.Duration // for a piece to be taken
	idle        time.Duration
	pace        time.Duration // between two pictures
	alive       time.Duration // between two signs of life on a stream
}

// NewServer makes a server with a token of its own.
func NewServer(options Options) *Server {
	if options.Zone == nil {
		options.Zone = time.Local
	}
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails
	return &Server{
		options: options, token: base64.RawURLEncoding.EncodeToString(secret[:]), peers: peers{options.Source.Scopes},
		limits: limits{
			connections: 64, header: 8 << 10, body: 8 << 10, receive: 5 * time.Second, send: 10 * time.Second,
			idle: time.Minute, pace: 300 * time.Millisecond, alive: 15 * time.Second,
		},
	}
}

// Token is what a browser has to show; who has it is an operator.
func (s *Server) Token() string { return s.token }

// Serve answers until the context ends, which is no error. It closes the listener.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := &http.Server{
		Handler:        s.routes(),
		ReadTimeout:    s.limits.receive,
		IdleTimeout:    s.limits.idle,
		MaxHeaderBytes: s.limits.header,
		ErrorLog:       s.options.Log,
		BaseContext:    func(net.Listener) context.Context { return ctx },
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		server.Close()
	}()
	err := server.Serve(&gate{Listener: listener, server: s, ctx: ctx})
	done := ctx.Err() != nil
	cancel()
	<-stopped
	if done && errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// gate bounds the connections, and lets in only who may be.
type gate struct {
	net.Listener
	server *Server
	ctx    context.Context
}

// Accept implements net.Listener. Who is refused is hung up on, without a word.
func (g *gate) Accept() (net.Conn, error) {
	for {
		conn, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if err := g.server.peers.check(g.ctx, conn); err != nil {
			conn.Close()
			if g.server.options.Log != nil {
				g.server.options.Log.Printf("a connection was refused: %v", err)
			}
			continue
		}
		if leave := sync.OnceFunc(func() { g.server.open.Add(-1) }); g.server.open.Add(1) > g.server.limits.connections {
			leave()
			conn.Close()
		} else {
			return &countedConn{Conn: conn, leave: leave}, nil
		}
	}
}

type countedConn struct {
	net.Conn
	leave func()
}

// Close implements net.Conn and makes room at the gate.
func (c *countedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
