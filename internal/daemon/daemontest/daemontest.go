// SPDX-License-Identifier: Apache-2.0

// Package daemontest is an engine daemon for tests: it speaks the protocol,
// notes what it is asked, and enforces nothing.
package daemontest

import (
	"context"
	"net"
	"path/filepath"
	"sync"
	"testing"

	"github.com/containerd/ttrpc"

	"github.com/actplane/actplane/engine/api"
)

// Engine answers with what its fields say. Set them before it serves.
type Engine struct {
	api.EngineService // what is not defined here panics, which fails the test

	About     api.StatusResponse
	Directory string
	PrepErr   error
	AttachErr error
	CloseErr  error

	mu       sync.Mutex
	prepared []*api.PrepareRequest
	attached []*api.AttachRequest
	closed   []string
}

// Start serves an engine that can enforce, until the test ends, and tells its
// socket.
func Start(t testing.TB) (engine *Engine, socket string) {
	t.Helper()
	engine = &Engine{About: api.StatusResponse{Version: "test", Tier: "lsm"}, Directory: t.TempDir()}
	socket = filepath.Join(t.TempDir(), "engine.sock")
	stop, err := engine.Serve(socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return engine, socket
}

// Serve serves on a socket.
func (e *Engine) Serve(socket string) (stop func(), err error) {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	server, err := ttrpc.NewServer()
	if err != nil {
		return nil, err
	}
	api.RegisterEngineService(server, e)
	go server.Serve(context.Background(), listener)
	return func() { server.Close() }, nil
}

// Status implements the protocol.
func (e *Engine) Status(context.Context, *api.StatusRequest) (*api.StatusResponse, error) {
	return &api.StatusResponse{Version: e.About.Version, Tier: e.About.Tier, Problem: e.About.Problem}, nil
}

// Prepare implements the protocol.
func (e *Engine) Prepare(_ context.Context, request *api.PrepareRequest) (*api.PrepareResponse, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.prepared = append(e.prepared, request)
	if e.PrepErr != nil {
		return nil, e.PrepErr
	}
	return &api.PrepareResponse{Directory: e.Directory}, nil
}

// Attach implements the protocol.
func (e *Engine) Attach(_ context.Context, request *api.AttachRequest) (*api.AttachResponse, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.attached = append(e.attached, request)
	if e.AttachErr != nil {
		return nil, e.AttachErr
	}
	return &api.AttachResponse{Tier: "lsm", Cgroup: 1}, nil
}

// Close implements the protocol.
func (e *Engine) Close(_ context.Context, request *api.CloseRequest) (*api.CloseResponse, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = append(e.closed, request.Id)
	return &api.CloseResponse{}, e.CloseErr
}

// Prepared are the requests so far.
func (e *Engine) Prepared() []*api.PrepareRequest {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]*api.PrepareRequest(nil), e.prepared...)
}

// Attached are the requests so far.
func (e *Engine) Attached() []*api.AttachRequest {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]*api.AttachRequest(nil), e.attached...)
}

// Closed are the ids so far.
func (e *Engine) Closed() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.closed...)
}
