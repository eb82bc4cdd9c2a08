// SPDX-License-Identifier: Apache-2.0

// Package sockpeer finds out where the other end of a connection on this host is: in which
// cgroup, of which the kernel tells, whatever the other end says of itself.
package sockpeer

import (
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

	"github.com/actplane/actplane/internal/cgroup"
	"github.com/actplane/actplane/internal/proc"
)

// Cgroup is the path, below the cgroup v2 mount, of who is at the other end of a connection:
// who has connected, or who listens there. Of a TCP connection, which has to be over the
// loopback device, it is where the socket was made; of a Unix one where the process is that
// did it, which has to be alive.
func Cgroup(conn net.Conn) (string, error) {
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

// Credentials are who is at the other end of a Unix socket, as the kernel noted it.
func Credentials(conn *net.UnixConn) (*unix.Ucred, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("read peer credentials: %w", err)
	}
	var peer *unix.Ucred
	var failure error
	err = raw.Control(func(fd uintptr) { peer, failure = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err := errors.Join(err, failure); err != nil {
		return nil, fmt.Errorf("read peer credentials: %w", err)
	}
	return peer, nil
}

func unixCgroup(mounts *cgroup.Mounts, conn *net.UnixConn) (string, error) {
	peer, err := Credentials(conn)
	if err != nil {
		return "", err
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
