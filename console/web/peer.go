// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/internal/cgroup"
	"github.com/actplane/actplane/internal/proc"
)

// errInside is why a peer is refused that may be a container's.
var errInside = errors.New("the peer is inside a scope")

// peers tells who may connect: no process of a scope, whatever it knows.
type peers struct {
	scopes func(context.Context) ([]*api.Scope, error)
}

// check lets a connection's other end in. What cannot be found out is refused.
func (p peers) check(ctx context.Context, conn net.Conn) error {
	where, err := peerCgroup(conn)
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

// peerCgroup is the path, below the cgroup v2 mount, of who is at the other end.
func peerCgroup(conn net.Conn) (string, error) {
	mounts, err := cgroup.Find(proc.Directory)
	if err != nil {
		return "", err
	}
	if conn, is := conn.(*net.UnixConn); is {
		return unixCgroup(mounts, conn)
	}
	local, err := netip.ParseAddrPort(conn.LocalAddr().String())
	if err != nil {
		return "", err
	}
	remote, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return "", err
	}
	if !remote.Addr().Unmap().IsLoopback() {
		return "", errors.New("the peer is on another machine")
	}
	id, err := socketCgroup(remote, local) // as the other end sees it
	if err != nil {
		return "", err
	}
	return cgroupPath(mounts, id)
}

// unixCgroup asks who connected; 0600 has asked already whose user that is.
func unixCgroup(mounts *cgroup.Mounts, conn *net.UnixConn) (string, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return "", fmt.Errorf("read peer credentials: %w", err)
	}
	var peer *unix.Ucred
	var failure error
	err = raw.Control(func(fd uintptr) { peer, failure = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err := errors.Join(err, failure); err != nil {
		return "", fmt.Errorf("read peer credentials: %w", err)
	}
	if int(peer.Uid) != os.Geteuid() {
		return "", errors.New("the peer is another user")
	}
	where, err := mounts.Path(int(peer.Pid))
	if errors.Is(err, cgroup.ErrRoot) {
		where, err = "/", nil
	}
	if err != nil {
		return "", err
	}
	// Asked last: what lives now lived when it was looked up.
	if _, err := os.Stat(path.Join(proc.Directory, strconv.Itoa(int(peer.Pid)))); err != nil {
		return "", fmt.Errorf("find the peer: %w", err)
	}
	return below(mounts, where), nil
}

// below is a path of the hierarchy as one below its mount.
func below(mounts *cgroup.Mounts, where string) string {
	if mounts.Root != "/" {
		return "/" + strings.TrimPrefix(strings.TrimPrefix(where, mounts.Root), "/")
	}
	return where
}

// fileidKernfs is the type of a kernfs file handle (linux/exportfs.h), which is a
// cgroup's number.
const fileidKernfs = 0xfe

// cgroupPath finds a cgroup by the kernel's number for it.
func cgroupPath(mounts *cgroup.Mounts, id uint64) (string, error) {
	mount, err := unix.Open(mounts.Unified, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", &fs.PathError{Op: "open cgroup mount", Path: mounts.Unified, Err: err}
	}
	defer unix.Close(mount)
	handle := unix.NewFileHandle(fileidKernfs, binary.NativeEndian.AppendUint64(nil, id))
	fd, err := unix.OpenByHandleAt(mount, handle, unix.O_PATH|unix.O_CLOEXEC)
	if err != nil {
		return "", fmt.Errorf("find cgroup %d: %w", id, err)
	}
	defer unix.Close(fd)
	directory, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil {
		return "", fmt.Errorf("find cgroup %d: %w", id, err)
	}
	where, found := strings.CutPrefix(directory, mounts.Unified)
	if !found || strings.HasSuffix(where, " (deleted)") {
		return "", fmt.Errorf("find cgroup %d: it is not below %s", id, mounts.Unified)
	}
	return "/" + strings.TrimPrefix(where, "/"), nil
}
