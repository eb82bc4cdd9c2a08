// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"log"
	"net"
	"testing"
	"time"

	"github.com/actplane/actplane/console"
	"github.com/actplane/actplane/console/consoletest"
	"github.com/actplane/actplane/engine/api"
)

// bench is a page that is served on a loopback address.
type bench struct {
	t       *testing.T
	engine  *consoletest.Engine
	watcher *console.Watcher
	server  *Server
	address string
}

func newBench(t *testing.T, change func(*Server)) *bench {
	t.Helper()
	engine := consoletest.Start(t)
	watcher := console.NewWatcher(engine.Connect)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := NewServer(Options{Source: watcher, Zone: time.UTC, Log: log.New(t.Output(), "", 0),
		Answers: func() *api.Operator { return &api.Operator{Uid: 1000, Name: "ada", Via: "web"} }})
	if change != nil {
		change(server)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	watched := make(chan struct{})
	go func() { watcher.Run(ctx); close(watched) }()
	go func() { ended <- server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		engine.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		<-watched
	})
	b := &bench{t, engine, watcher, server, listener.Addr().String()}
	b.await(func(v *console.View) bool { return v.Problem == "" })
	return b
}

func (b *bench) await(is func(*console.View) bool) {
	b.t.Helper()
	for timeout := time.After(10 * time.Second); ; {
		changed := b.watcher.Changed()
		if is(b.watcher.View()) {
			return
		}
		select {
		case <-changed:
		case <-timeout:
			b.t.Fatal("it never came")
		}
	}
}
