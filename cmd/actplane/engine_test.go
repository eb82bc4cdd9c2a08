// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containerd/ttrpc"

	"github.com/actplane/actplane/engine/api"
)

// standing is the part of an engine that is there; who embeds it answers more.
type standing struct{ api.EngineService }

func (standing) Status(context.Context, *api.StatusRequest) (*api.StatusResponse, error) {
	return &api.StatusResponse{Version: "test", Tier: "lsm"}, nil
}

// serveEngine serves an engine until the test ends, in a run directory that it returns.
func serveEngine(t *testing.T, engine api.EngineService) (dir string) {
	t.Helper()
	dir = t.TempDir()
	listener, err := net.Listen("unix", filepath.Join(dir, "engine.sock"))
	if err != nil {
		t.Fatal(err)
	}
	server, err := ttrpc.NewServer()
	if err != nil {
		t.Fatal(err)
	}
	api.RegisterEngineService(server, engine)
	go server.Serve(context.Background(), listener)
	t.Cleanup(func() { server.Close() })
	return dir
}

// commands runs commands of actplane that ask the engine of a run directory, and returns
// what they print; they have to succeed.
func commands(t *testing.T, dir string) func(args ...string) string {
	return func(args ...string) string {
		t.Helper()
		var out, errs strings.Builder
		if code := run(append(append([]string{"actplane"}, args...), "--run-dir", dir), nil, &out, &errs); code != 0 {
			t.Fatalf("%v: status %d: %s", args, code, &errs)
		}
		return out.String()
	}
}
