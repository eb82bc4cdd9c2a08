// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/internal/sockpeer"
)

// errInside is why a peer is refused that may be a container's.
var errInside = errors.New("the peer is inside a scope")

// peers tells who may connect: no process of a scope, whatever it knows.
type peers struct {
	scopes func(context.Context) ([]*api.Scope, error)
}

// check lets a connection's other end in. What cannot be found out is refused.
func (p peers) check(ctx context.Context, conn net.Conn) error {
	if conn, is := conn.(*net.UnixConn); is { // 0600 has asked already
		switch peer, err := sockpeer.Credentials(conn); {
		case err != nil:
			return err
		case int(peer.Uid) != os.Geteuid():
			return errors.New("the peer is another user")
		}
	}
	where, err := sockpeer.Cgroup(conn)
	if err != nil {
		return err
	}
	scopes, err := p.scopes(ctx)
	if err != nil {
		return fmt.Errorf("list scopes: %w", err)
	}
	for _, s := range scopes {
		if s.State != "closed" && (s.Cgroup == "" && s.State != "staged" || s.Cgroup != "" && within(where, s.Cgroup)) {
			return errInside
		}
	}
	return nil
}

func within(where, dir string) bool {
	return where == dir || strings.HasPrefix(where, strings.TrimSuffix(dir, "/")+"/")
}
