// SPDX-License-Identifier: Apache-2.0

// Package api is the protocol of the engine daemon, its socket and a client.
package api

//go:generate sh -c "protoc --go_out=. --go_opt=paths=source_relative --go-ttrpc_out=. --go-ttrpc_opt=paths=source_relative --plugin=protoc-gen-go=$(go tool -n protoc-gen-go) --plugin=protoc-gen-go-ttrpc=$(go tool -n protoc-gen-go-ttrpc) engine.proto"

import (
	"fmt"
	"net"

	"github.com/containerd/ttrpc"
)

// Socket is where the engine daemon listens, and Directory what it keeps there.
const (
	Directory = "/run/actplane"
	Socket    = Directory + "/engine.sock"
)

// Dial connects to the engine daemon; the caller closes the client.
func Dial(socket string) (EngineClient, *ttrpc.Client, error) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return nil, nil, fmt.Errorf("connect to the engine: %w", err)
	}
	client := ttrpc.NewClient(conn)
	return NewEngineClient(client), client, nil
}
