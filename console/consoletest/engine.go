// SPDX-License-Identifier: Apache-2.0

// Package consoletest has an engine for tests of who shows it: it says over a real socket
// what a test tells it to, and takes answers.
package consoletest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/containerd/ttrpc"
	"google.golang.org/protobuf/proto"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/internal/daemon"
)

// Engine is a daemon without a kernel.
type Engine struct {
	api.EngineService // what is not below panics

	Dir string // its run directory

	mu       sync.Mutex
	scopes   []*api.Scope
	events   []*api.Event
	requests []*api.Request
	answers  []*api.AnswerRequest
	revoked  []*api.RevokeRequest
	locked   []*api.LockdownRequest
	unlocked []*api.UnlockRequest
	graphs   map[string]*api.ProvenanceResponse // by scope and number
	refuse   error
	changed  chan struct{}
	server   *ttrpc.Server
	listener *closingListener
	stopped  chan struct{}
	t        testing.TB
}

// closingListener closes its connections with it, as the end of a process does.
type closingListener struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
}

// Accept implements net.Listener.
func (l *closingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.conns = append(l.conns, conn)
	}
	return conn, err
}

func (l *closingListener) closeAll() {
	l.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range l.conns {
		conn.Close()
	}
}

// Start serves an engine until the test ends.
func Start(t testing.TB) *Engine {
	e := &Engine{Dir: t.TempDir(), t: t, changed: make(chan struct{})}
	e.Resume()
	t.Cleanup(e.Stop)
	return e
}

// Stop ends the daemon, as an upgrade would; [Engine.Resume] starts it again.
func (e *Engine) Stop() {
	if e.server == nil {
		return
	}
	close(e.stopped)
	e.listener.closeAll()
	e.server.Close()
	e.server = nil
}

// Resume starts it after Stop.
func (e *Engine) Resume() {
	e.t.Helper()
	socket := filepath.Join(e.Dir, "engine.sock")
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		e.t.Fatal(err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		e.t.Fatal(err)
	}
	if e.server, err = ttrpc.NewServer(); err != nil {
		e.t.Fatal(err)
	}
	api.RegisterEngineService(e.server, e)
	e.listener, e.stopped = &closingListener{Listener: listener}, make(chan struct{})
	go e.server.Serve(context.Background(), e.listener)
}

// Connect is how a watcher reaches it.
func (e *Engine) Connect(ctx context.Context) (*daemon.Client, error) {
	return daemon.Connect(ctx, daemon.Options{Socket: filepath.Join(e.Dir, "engine.sock"), Directory: e.Dir})
}

// change edits what there is and tells those who follow.
func (e *Engine) change(edit func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	edit()
	close(e.changed)
	e.changed = make(chan struct{})
}

// SetScopes says what is under policy.
func (e *Engine) SetScopes(scopes ...*api.Scope) { e.change(func() { e.scopes = scopes }) }

// Happen tells of events.
func (e *Engine) Happen(events ...*api.Event) {
	e.change(func() { e.events = append(e.events, events...) })
}

// Ask opens a request, or gives one of that id another state.
func (e *Engine) Ask(requests ...*api.Request) {
	e.change(func() {
		for _, r := range requests {
			e.requests = slices.DeleteFunc(e.requests, func(old *api.Request) bool { return old.Id == r.Id })
			e.requests = append(e.requests, r)
		}
	})
}

// Refuse makes answers fail; nil lets them through again.
func (e *Engine) Refuse(err error) { e.change(func() { e.refuse = err }) }

// Explain says how an event came about.
func (e *Engine) Explain(scope string, sequence uint64, p *api.ProvenanceResponse) {
	e.change(func() {
		if e.graphs == nil {
			e.graphs = map[string]*api.ProvenanceResponse{}
		}
		e.graphs[fmt.Sprint(scope, " ", sequence)] = p
	})
}

// Provenance implements api.EngineService.
func (e *Engine) Provenance(_ context.Context, req *api.ProvenanceRequest) (*api.ProvenanceResponse, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if p := e.graphs[fmt.Sprint(req.Scope, " ", req.Sequence)]; p != nil {
		return p, nil
	}
	return nil, errors.New("no such event")
}

// Revoked lists what was taken back.
func (e *Engine) Revoked() []*api.RevokeRequest {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.revoked)
}

// Revoke implements api.EngineService.
func (e *Engine) Revoke(_ context.Context, req *api.RevokeRequest) (r *api.Request, err error) {
	e.change(func() {
		i := slices.IndexFunc(e.requests, func(r *api.Request) bool { return r.Id == req.Id && r.Answered != nil })
		if i < 0 {
			err = errors.New("no such answer")
			return
		}
		e.revoked = append(e.revoked, req)
		r = proto.Clone(e.requests[i]).(*api.Request)
		r.State, r.Answered.Over, r.Answered.OverBy = "revoked", "revoked", req.By
		e.requests[i] = r
	})
	return r, err
}

// Answers lists what was answered.
func (e *Engine) Answers() []*api.AnswerRequest {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.answers)
}

// ListGrants implements api.EngineService.
func (e *Engine) ListGrants(context.Context, *api.ListGrantsRequest) (*api.ListGrantsResponse, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	response := &api.ListGrantsResponse{}
	for _, r := range e.requests {
		if r.Answered == nil || r.Answered.Over != "" {
			continue
		}
		g := &api.Grant{Request: r, Left: r.Answered.Count, Used: r.Answered.Used}
		if r.Answered.UntilUnixMs > Now.UnixMilli() {
			g.LeftMs = r.Answered.UntilUnixMs - Now.UnixMilli()
		}
		response.Grants = append(response.Grants, g)
	}
	return response, nil
}

// Locked lists what was locked, and Unlocked what was unlocked.
func (e *Engine) Locked() []*api.LockdownRequest {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.locked)
}

// Unlocked lists what was unlocked.
func (e *Engine) Unlocked() []*api.UnlockRequest {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.unlocked)
}

// Lockdown implements api.EngineService.
func (e *Engine) Lockdown(_ context.Context, req *api.LockdownRequest) (response *api.LockdownResponse, err error) {
	e.change(func() {
		if err = e.refuse; err == nil {
			e.locked = append(e.locked, req)
			lock := &api.Lock{Id: req.Scope, By: "ada (uid 1000)", Because: req.Because, SinceUnixMs: Now.UnixMilli(), Running: true}
			response = &api.LockdownResponse{Locks: []*api.Lock{e.setLock(lock, "locked", lock)}}
		}
	})
	return response, err
}

// Unlock implements api.EngineService.
func (e *Engine) Unlock(_ context.Context, req *api.UnlockRequest) (response *api.UnlockResponse, err error) {
	e.change(func() {
		if err = e.refuse; err == nil {
			e.unlocked = append(e.unlocked, req)
			lock := e.setLock(&api.Lock{Id: req.Scope, Refused: 7, Running: true}, "enforcing", nil)
			response = &api.UnlockResponse{Locks: []*api.Lock{lock}}
		}
	})
	return response, err
}

// setLock gives the scope of a lock another state, and the lock its name. mu is held.
func (e *Engine) setLock(lock *api.Lock, state string, now *api.Lock) *api.Lock {
	scopes := slices.Clone(e.scopes)
	for i, s := range scopes {
		if s.Id == lock.Id {
			lock.Name = s.Name
			changed := proto.Clone(s).(*api.Scope)
			changed.State, changed.Lock = state, now
			scopes[i] = changed
		}
	}
	e.scopes = scopes
	return lock
}

// Status implements api.EngineService.
func (e *Engine) Status(context.Context, *api.StatusRequest) (*api.StatusResponse, error) {
	return &api.StatusResponse{Version: "test", Tier: "lsm", Kernel: "6.12.118", Pid: 1}, nil
}

// List implements api.EngineService.
func (e *Engine) List(context.Context, *api.ListRequest) (*api.ListResponse, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return &api.ListResponse{Scopes: slices.Clone(e.scopes)}, nil
}

// Events implements api.EngineService.
func (e *Engine) Events(ctx context.Context, req *api.EventsRequest, stream api.Engine_EventsServer) error {
	stopped := e.stopped
	for sent := 0; ; {
		e.mu.Lock()
		events, changed := e.events[sent:], e.changed
		e.mu.Unlock()
		for _, event := range events {
			if err := stream.Send(event); err != nil {
				return err
			}
		}
		sent += len(events)
		if !req.Follow {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-stopped:
			return nil
		case <-changed:
		}
	}
}

// Requests implements api.EngineService.
func (e *Engine) Requests(ctx context.Context, req *api.RequestsRequest, stream api.Engine_RequestsServer) error {
	sent, stopped := map[string]*api.Request{}, e.stopped
	for {
		e.mu.Lock()
		requests, changed := slices.Clone(e.requests), e.changed
		e.mu.Unlock()
		for _, r := range requests {
			if sent[r.Id] == r {
				continue
			}
			sent[r.Id] = r
			if err := stream.Send(r); err != nil {
				return err
			}
		}
		if !req.Follow {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-stopped:
			return nil
		case <-changed:
		}
	}
}

// Answer implements api.EngineService.
func (e *Engine) Answer(_ context.Context, req *api.AnswerRequest) (r *api.Request, err error) {
	e.change(func() {
		if err = e.refuse; err != nil {
			return
		}
		i := slices.IndexFunc(e.requests, func(r *api.Request) bool { return r.Id == req.Id })
		if i < 0 {
			err = errors.New("no such request")
			return
		}
		e.answers = append(e.answers, req)
		r = answered(e.requests[i], req)
		e.requests[i] = r
	})
	return r, err
}

func answered(old *api.Request, req *api.AnswerRequest) *api.Request {
	r := proto.Clone(old).(*api.Request)
	r.State, r.Answered = "granted", &api.Answered{
		Denied: req.Denied, Count: req.Count, ScopeLifetime: req.ScopeLifetime, Because: req.Because, By: req.By,
		TimeUnixMs: old.OpenedUnixMs + 1000, UntilUnixMs: old.OpenedUnixMs + 1000 + req.ForMs,
	}
	if req.Denied {
		r.State = "denied"
	}
	return r
}
