// SPDX-License-Identifier: Apache-2.0

package exposure

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// Mount is one mount that a container gets.
type Mount struct {
	Destination string
	// Source is a path on the host, of a bind mount; else Type says what is mounted.
	Source string
	Type   string
	// ReadOnly is of this mount; Deep says that what is mounted below the source is
	// read-only as well. Recursive brings that along.
	ReadOnly, Deep, Recursive bool
	At                        string
}

// part is one file system, or a part of one, that comes with a mount.
type part struct {
	place
	fstype   string
	writable bool
	// bind: it is the host's, not a new one.
	bind     bool
	whole    bool // a directory
	stat     *unix.Statx_t
	name     string // in sentences: the source
	mount    string // where it is mounted in the container
	at       string
	through  bool // below the source
	procOfIt bool
}

func (h *Host) judgeMounts(c *Container) []Finding {
	var found []Finding
	for _, m := range c.Mounts {
		found = append(found, h.judgeMount(m, c)...)
	}
	return found
}

func (h *Host) judgeMount(m Mount, c *Container) []Finding {
	if m.Source == "" {
		return judgeType(part{fstype: m.Type, writable: !m.ReadOnly, mount: m.Destination, at: m.At}, c)
	}
	parts, err := h.parts(m)
	if err != nil {
		return []Finding{{HostRoot, m.At, fmt.Sprintf("what is mounted at %q cannot be told: %v", m.Destination, err), "mount something else"}}
	}
	var found []Finding
	for _, p := range parts {
		found = append(found, h.judgePart(p, c)...)
	}
	return ofOneMount(found)
}

// ofOneMount keeps one finding of a kind: a folder with a socket is one folder too many,
// whatever else is in it, and the host's root is all there is.
func ofOneMount(found []Finding) []Finding {
	if i := slices.IndexFunc(found, func(f Finding) bool { return f.Kind == HostRoot }); i >= 0 {
		return found[i : i+1]
	}
	var kept []Finding
	for _, f := range found {
		if !slices.ContainsFunc(kept, func(k Finding) bool { return k.Kind == f.Kind }) {
			kept = append(kept, f)
		}
	}
	return kept
}

// parts are what a bind mount brings: its source and, if it is recursive, all that is
// mounted below it.
func (h *Host) parts(m Mount) ([]part, error) {
	at, err := h.locate(m.Source)
	if err != nil {
		return nil, err
	}
	first := part{place: at.place, fstype: at.fstype, writable: !m.ReadOnly, bind: true, name: m.Source, mount: m.Destination, at: m.At}
	if at.exists {
		first.stat, first.whole = &at.stat, at.stat.Mode&unix.S_IFMT == unix.S_IFDIR
	}
	// What such a path leads to depends on who asks.
	first.procOfIt = below(path.Clean(m.Source), "/proc")
	parts := []part{first}
	if !m.Recursive {
		return parts, nil
	}
	for _, mount := range h.submounts(at.real) {
		parts = append(parts, part{place: place{deviceOf(mount), mount.Root}, fstype: mount.FSType, bind: true, whole: true,
			writable: writable(mount) && !(m.ReadOnly && m.Deep), name: m.Source, mount: m.Destination, at: m.At, through: true})
	}
	return parts, nil
}

func writable(mount *mountinfo.Info) bool {
	return !slices.Contains(strings.Split(mount.Options, ","), "ro")
}

func (h *Host) judgePart(p part, c *Container) []Finding {
	found := judgeType(p, c)
	switch {
	case p.bind && (p.procOfIt || p.fstype == "proc"):
		found = append(found, p.finding(HostProc, ", and through the host's /proc its programs reach other processes, their files and the kernel's settings"))
	case p.bind && p.fstype == "devtmpfs" && p.whole:
		found = append(found, p.finding(HostDevices, ", which are all of the host's devices"))
	}
	if p.stat != nil {
		mode := p.stat.Mode & unix.S_IFMT
		if mode == unix.S_IFBLK || mode == unix.S_IFCHR {
			if what := h.raw(mode == unix.S_IFBLK, int64(p.stat.Rdev_major), int64(p.stat.Rdev_minor)); what != "" {
				found = append(found, p.finding(HostDevices, ", which is "+what))
			}
		}
	}
	return append(found, h.judgeGuards(p)...)
}

// judgeGuards compares a part with the host's own things, by what they are.
func (h *Host) judgeGuards(p part) []Finding {
	var found []Finding
	for _, g := range h.guards {
		if g.writable && !p.writable {
			continue
		}
		inside := g.within && g.place.covers(p.place)
		same := p.stat != nil && !p.whole && g.sameFile(p.stat)
		if !p.place.covers(g.place) && !inside && !same {
			continue
		}
		text := ": " + g.means
		switch {
		case g.kind == HostRoot:
			text = g.means
		case p.name == g.name:
		case same || p.place == g.place:
			text = fmt.Sprintf(", which is the host's %s: %s", g.name, g.means)
		case inside && !p.through:
			text = fmt.Sprintf(", which is part of the host's %s: %s", g.name, g.means)
		default:
			text = fmt.Sprintf(", which holds the host's %s: %s", g.name, g.means)
		}
		found = append(found, p.finding(g.kind, text))
	}
	return found
}

// kernelSettings are file systems by which the kernel is set and traced.
func kernelSettings() []string {
	return []string{"sysfs", "debugfs", "tracefs", "securityfs", "configfs", "efivarfs", "binfmt_misc", "pstore"}
}

// judgeType judges what a file system is of.
func judgeType(p part, c *Container) []Finding {
	switch {
	case !p.writable:
	case (p.fstype == "cgroup" || p.fstype == "cgroup2") && c.Cgroup.Of == Hosts:
		return []Finding{p.finding(HostCgroups, ", writable, with the host's cgroup namespace, so that its programs can move processes and limits of the whole host")}
	case p.fstype == "cgroup" || p.fstype == "cgroup2":
		return []Finding{p.finding(WritableCgroups, ", writable, so that its programs can change their own limits")}
	case slices.Contains(kernelSettings(), p.fstype):
		return []Finding{p.finding(WritableSys, ", writable, so that its programs can change how the kernel works")}
	}
	return nil
}

func (p part) finding(kind Kind, text string) Finding {
	name := p.name
	if name == "" {
		name = p.fstype
	}
	return Finding{kind, p.at, fmt.Sprintf("%q is mounted at %q%s", name, p.mount, text), p.fix(kind)}
}

func (p part) fix(kind Kind) string {
	switch kind {
	case WritableCgroups, HostCgroups, WritableSys:
		return "mount it read-only"
	case HostSystem:
		return "mount it read-only, or only the folder below it that is needed"
	}
	return "start it without this mount, or mount only what is needed"
}

// JudgeMounted judges what a container's first process has below its root directory, as
// the kernel tells it: whatever was exchanged between judging paths and mounting them. Own
// are directories of the host whose mounts are ours.
//
// crun makes mounts read-only later, so that the container's specification says what will be.
func (h *Host) JudgeMounted(c *Container, mounts []*mountinfo.Info, rootfs string, own []string) ([]Finding, error) {
	var ours []place
	for _, name := range own {
		at, err := h.locate(name)
		if err != nil {
			return nil, err
		}
		ours = append(ours, at.place)
	}
	var found []Finding
	whole := "" // where the host's root is, and what is mounted below it comes along
	there := false
	for _, mount := range mounts {
		if !below(mount.Mountpoint, rootfs) {
			continue
		}
		there = true
		p := part{place: place{deviceOf(mount), mount.Root}, fstype: mount.FSType, whole: mount.Root == "/",
			mount: path.Clean("/" + strings.TrimPrefix(mount.Mountpoint, rootfs))}
		p.at, p.writable = p.mount, writable(mount) && !c.willBeReadOnly(p)
		if whole != "" && below(p.mount, whole) || slices.ContainsFunc(ours, func(o place) bool { return o.covers(p.place) }) {
			continue
		}
		p.bind = p.fstype != "proc" || p.device == h.proc && c.PID.Of != Hosts
		its := ofOneMount(h.judgePart(p.named(mount), c))
		if len(its) > 0 && its[0].Kind == HostRoot {
			whole = p.mount
		}
		found = append(found, its...)
	}
	if !there {
		return nil, fmt.Errorf("nothing is mounted at %q", rootfs)
	}
	return Arrange(found), nil
}

// willBeReadOnly tells whether the specification makes a mount read-only: all that it has
// there, or the cgroups of which this is one.
func (c *Container) willBeReadOnly(p part) bool {
	readOnly := false
	for _, m := range c.Mounts {
		at := path.Clean("/" + m.Destination)
		if at != p.mount && !(m.Type == "cgroup" && p.fstype == "cgroup" && below(p.mount, at)) {
			continue
		}
		if !m.ReadOnly {
			return false
		}
		readOnly = true
	}
	return readOnly
}

// named says in sentences what is known of a mount: not the path that it was mounted by.
func (p part) named(mount *mountinfo.Info) part {
	p.name = mount.FSType
	if mount.Root != "/" {
		p.name = mount.Root
	}
	return p
}
