// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// SocketPath is where a scope's socket is, as its processes see it.
const SocketPath = "/run/actplane/feedback.sock"

// Options are what a Server may be given.
type Options struct {
	// Cursors defaults to NewMemoryCursors().
	Cursors Cursors
	// Log defaults to none. A well-formed or malformed request logs nothing.
	Log *slog.Logger
}

// limits bound what one scope's peers can make the engine hold and do.
type limits struct {
	connections int     // open at once
	perPeer     int     // of these, by one process
	arrivals    float64 // taken in a second, and as many more at once
	header      int     // bytes of a request's header
	body        int64
	receive     time.Duration // for a whole request to arrive
	send        time.Duration // for an answer to be taken
	idle        time.Duration
	rate, burst float64 // requests a second, and at once
}

func defaultLimits() limits {
	return limits{
		connections: 64,
		perPeer:     16,
		arrivals:    1000,
		header:      4 << 10,
		body:        1 << 10,
		receive:     5 * time.Second,
		send:        5 * time.Second,
		idle:        30 * time.Second,
		rate:        1000,
		burst:       2000,
	}
}

// Server answers on the socket of one scope.
type Server struct {
	scope  Scope
	ledger *ledger
	log    *log.Logger
	limits limits
	bucket bucket
	now    func() time.Time
}

// NewServer returns a server for a scope.
func NewServer(scope Scope, options Options) *Server {
	if options.Cursors == nil {
		options.Cursors = NewMemoryCursors()
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	return &Server{
		scope:  scope,
		ledger: &ledger{cursors: options.Cursors, now: time.Now, leases: map[string][]lease{}},
		log:    slog.NewLogLogger(options.Log.Handler(), slog.LevelWarn),
		limits: defaultLimits(),
		now:    time.Now,
	}
}

// Serve answers until the context is done, which is no error, or the listener
// fails. It closes the listener, and leaves no goroutine behind. It may be
// called again with another listener once it has returned.
func (s *Server) Serve(ctx context.Context, listener *net.UnixListener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	server := &http.Server{
		Handler:        s.routes(),
		ReadTimeout:    s.limits.receive,
		IdleTimeout:    s.limits.idle,
		MaxHeaderBytes: s.limits.header,
		ErrorLog:       s.log,
		BaseContext:    func(net.Listener) context.Context { return ctx },
		ConnContext:    withPeer,
		// New comes in Serve, before the connection's goroutine, and Closed is
		// the last that the goroutine does.
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				running.Add(1)
			case http.StateClosed:
				running.Done()
			}
		},
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		<-ctx.Done()
		server.Close()
	}()
	err := server.Serve(&gate{UnixListener: listener, scope: s.scope, limits: s.limits, open: map[int]int{}})
	stopped := ctx.Err() != nil
	cancel()
	<-closed
	running.Wait()
	if stopped && errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve feedback socket: %w", err)
}

// What work weighs in the bucket. A small request is 1, about 0.1 ms.
const (
	bytesPerToken = 8 << 10 // written
	itemsPerToken = 256     // looked at
)

// bucket bounds the work a second that the peers of a scope cause: it fills with
// time, every request takes one from it, and large answers take more afterwards.
type bucket struct {
	mu    sync.Mutex
	level float64
	at    time.Time
}

// take fills the bucket and takes one, unless the bucket is empty.
func (b *bucket) take(now time.Time, rate, burst float64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.at.IsZero() {
		b.level = burst
	} else if passed := now.Sub(b.at).Seconds(); passed > 0 {
		b.level = min(burst, b.level+passed*rate)
	}
	b.at = now
	if b.level <= 0 {
		return false
	}
	b.level--
	return true
}

// charge takes what a request turned out to cost, on credit if need be.
func (b *bucket) charge(tokens float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.level -= tokens
}
