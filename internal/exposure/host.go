// SPDX-License-Identifier: Apache-2.0

package exposure

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// Host is what containers are judged against: what is mounted on this host and where
// its own things are. It is of one moment.
type Host struct {
	mounts  []*mountinfo.Info
	guards  []guarded
	devices map[number]string
	proc    uint64 // the device of the host's proc file system
	// folders are those of which it is known that a path below them does not exist, while
	// the host is looked at.
	folders map[string]*located
}

// Options are for hosts that are not as usual, and for tests.
type Options struct {
	// Prefix stands before all paths of the host's own things.
	Prefix string
	// Guarded are further paths of the host that no container should have.
	Guarded []string
}

// Look looks at this host.
func Look(options Options) (*Host, error) {
	mounts, err := mountinfo.GetMounts(nil)
	if err != nil {
		return nil, fmt.Errorf("read this host's mounts: %w", err)
	}
	h := &Host{mounts: mounts, devices: rawNumbers(), folders: map[string]*located{}}
	defer func() { h.folders = nil }() // what is judged later is looked at anew
	if text, err := os.ReadFile("/proc/devices"); err == nil {
		h.devices = parseDevices(text)
	}
	if at, err := h.locate("/proc"); err == nil && at.fstype == "proc" {
		h.proc = at.device
	}
	for _, g := range guards(options) {
		if err := h.guard(g, options.Prefix); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// place is a directory or file in its file system, whatever it is called: bind mounts
// of one thing have one place.
type place struct {
	device uint64
	path   string // below the file system's root
}

// covers tells whether what is at the other place is this or below it.
func (p place) covers(other place) bool {
	return p.device == other.device && below(other.path, p.path)
}

// below tells whether a clean path is another one, or below that.
func below(name, folder string) bool {
	return name == folder || folder == "/" || strings.HasPrefix(name, folder+"/")
}

// located is what a path on this host leads to.
type located struct {
	place
	fstype string
	real   string // the path without links
	// Of the file itself; without it the path does not exist, and its place is where it would be.
	exists bool
	stat   unix.Statx_t
}

// sameFile compares the inodes of two files that exist.
func (l *located) sameFile(stat *unix.Statx_t) bool {
	return l.exists && l.stat.Dev_major == stat.Dev_major && l.stat.Dev_minor == stat.Dev_minor && l.stat.Ino == stat.Ino
}

const maxPathSegments = 4096

// locate follows a path as mount(2) does. What of it does not exist is taken by its
// name.
func (h *Host) locate(name string) (*located, error) {
	name = path.Clean("/" + name)
	rest := ""
	for range maxPathSegments {
		if known, ok := h.folders[name]; ok && rest != "" {
			return known.missing(rest), nil
		}
		fd, err := unix.Open(name, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err == nil {
			at, err := h.locateOpen(fd)
			unix.Close(fd)
			if err != nil {
				return nil, fmt.Errorf("find %q: %w", name, err)
			}
			if rest == "" {
				return at, nil
			}
			if h.folders != nil {
				h.folders[name] = at
			}
			return at.missing(rest), nil
		}
		if !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR) || name == "/" {
			return nil, &os.PathError{Op: "open", Path: name, Err: err}
		}
		name, rest = path.Dir(name), path.Join(path.Base(name), rest)
	}
	return nil, fmt.Errorf("find %.60q: it has too many parts", name)
}

// missing is what is not there, below what is.
func (l *located) missing(rest string) *located {
	return &located{place: place{l.device, path.Join(l.path, rest)}, fstype: l.fstype, real: path.Join(l.real, rest)}
}

// errElsewhere is of what no path of this mount namespace leads to, as a directory of
// another one by /proc/PID/root.
var errElsewhere = errors.New("it is in another mount namespace, or is gone")

func (h *Host) locateOpen(fd int) (*located, error) {
	at := &located{exists: true}
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_BASIC_STATS|unix.STATX_MNT_ID, &at.stat); err != nil {
		return nil, err
	}
	if at.stat.Mask&unix.STATX_MNT_ID == 0 {
		return nil, errors.New("the kernel does not tell its mount; Linux 5.8 does")
	}
	name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return nil, err
	}
	mount := h.byID(int(at.stat.Mnt_id))
	if mount == nil || !below(name, mount.Mountpoint) {
		return nil, errElsewhere
	}
	at.fstype, at.real = mount.FSType, name
	at.place = place{deviceOf(mount), path.Join(mount.Root, strings.TrimPrefix(name, mount.Mountpoint))}
	return at, nil
}

func (h *Host) byID(id int) *mountinfo.Info {
	for _, mount := range h.mounts {
		if mount.ID == id {
			return mount
		}
	}
	return nil
}

func deviceOf(mount *mountinfo.Info) uint64 { return uint64(mount.Major)<<32 | uint64(mount.Minor) }

// submounts are the mounts below a directory, which a recursive bind brings along.
func (h *Host) submounts(folder string) []*mountinfo.Info {
	var found []*mountinfo.Info
	for _, mount := range h.mounts {
		if mount.Mountpoint != folder && below(mount.Mountpoint, folder) {
			found = append(found, mount)
		}
	}
	return found
}

// guard is something of the host's that containers should not have.
type guard struct {
	kind  Kind
	means string   // what who has it can do
	paths []string // globs
	// within: also what is below it. writable: only to write.
	within, writable bool
}

// guarded is a guard's path as found on this host.
type guarded struct {
	*guard
	name string // as in the guard
	*located
}

// guard finds a guard's paths.
func (h *Host) guard(g guard, prefix string) error {
	for _, name := range g.paths {
		names := []string{filepath.Join("/", prefix, name)}
		if strings.ContainsRune(name, '*') {
			names, _ = filepath.Glob(names[0])
		}
		for _, found := range names {
			at, err := h.locate(found)
			if errors.Is(err, errElsewhere) {
				continue // cannot be mounted from here
			}
			if err != nil {
				return fmt.Errorf("look for %s of this host: %w", name, err)
			}
			h.guards = append(h.guards, guarded{&g, found, at})
		}
	}
	return nil
}

func guards(options Options) []guard {
	const start = "who can speak to it can start containers without a policy, and is root on this host"
	return []guard{
		{kind: HostRoot, means: ", and with it all of the host's files", paths: []string{"/"}},
		{kind: DockerSocket, means: start, paths: []string{"/run/docker.sock", "/var/run/docker.sock", "/run/user/*/docker.sock", "/run/docker/metrics.sock", "/run/docker/plugins"}},
		{kind: ContainerdSock, means: start, paths: []string{"/run/containerd/containerd.sock", "/run/containerd/containerd.sock.ttrpc", "/run/docker/containerd/containerd.sock",
			"/run/docker/containerd/containerd.sock.ttrpc", "/var/run/docker/containerd/containerd.sock", "/run/k3s/containerd/containerd.sock"}},
		{kind: ContainerdSock, means: start, paths: []string{"/run/containerd/s"}, within: true},
		{kind: CrioSocket, means: start, paths: []string{"/run/crio/crio.sock", "/var/run/crio/crio.sock"}},
		{kind: PodmanSocket, means: start, paths: []string{"/run/podman/podman.sock", "/run/user/*/podman/podman.sock"}},
		{kind: SystemdSocket, means: "who can speak to it as root can start programs on this host", paths: []string{"/run/systemd/private", "/run/dbus/system_bus_socket", "/var/run/dbus/system_bus_socket"}},
		{kind: BPFFiles, means: "who has the pinned tables can overwrite policies, also through a read-only mount", paths: []string{"/sys/fs/bpf"}, within: true},
		{kind: ActPlaneFiles, means: "who has it can speak for the engine and spoil its records", paths: []string{"/run/actplane", "/var/lib/actplane"}, within: true},
		{kind: ActPlaneFiles, means: "who can write it decides what policies hold", paths: []string{"/etc/actplane"}, within: true, writable: true},
		{kind: HostSystem, means: "who can write it decides what this host runs", within: true, writable: true, paths: []string{
			"/bin", "/sbin", "/lib", "/lib64", "/usr/bin", "/usr/sbin", "/usr/lib/systemd", "/usr/lib/modules", "/usr/local/bin", "/usr/local/sbin", "/boot",
			"/etc/passwd", "/etc/shadow", "/etc/sudoers", "/etc/sudoers.d", "/etc/pam.d", "/etc/crontab", "/etc/cron.d", "/etc/init.d", "/etc/udev",
			"/etc/ld.so.preload", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/systemd", "/etc/docker", "/etc/containerd", "/etc/containers", "/etc/crio", "/run/systemd/system", "/var/spool/cron",
		}},
		// What managers keep of containers: single folders in it are volumes of these.
		{kind: HostSystem, means: "who can write it decides what containers run, and with what", writable: true, paths: []string{
			"/run/docker", "/run/containerd", "/run/containers", "/run/runc", "/run/crun", "/var/lib/docker", "/var/lib/docker/containers", "/var/lib/docker/overlay2", "/var/lib/docker/volumes",
			"/var/lib/containerd", "/var/lib/containers", "/var/lib/containers/storage", "/var/lib/kubelet", "/var/lib/kubelet/pods",
		}},
		{kind: GuardedPath, means: "the host's configuration guards it", paths: options.Guarded, within: true},
	}
}
