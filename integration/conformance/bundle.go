// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/policy/model"
)

// stage is the folder of one case: a bundle, with an overlay as its root file system.
type stage struct {
	dir    string
	root   string   // the merged overlay
	places []string // of what was mounted beside it; see remount
}

func newStage(dir string) (*stage, error) {
	s := &stage{dir: dir, root: filepath.Join(dir, "rootfs")}
	for _, name := range []string{"lower/proc", "lower/sys", "lower/dev", "lower/run", "lower/etc", "lower/tmp", "upper", "work", "rootfs"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			return nil, fmt.Errorf("make a bundle: %w", err)
		}
	}
	if err := s.mount(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *stage) mount() error {
	options := fmt.Sprintf("lowerdir=%[1]s/lower,upperdir=%[1]s/upper,workdir=%[1]s/work", s.dir)
	if err := unix.Mount("overlay", s.root, "overlay", 0, options); err != nil {
		return fmt.Errorf("mount an overlay: %w", err)
	}
	return nil
}

func (s *stage) close() error {
	err := unix.Unmount(s.root, unix.MNT_DETACH)
	for _, place := range s.places {
		err = errors.Join(err, unix.Unmount(place, unix.MNT_DETACH))
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

// populate makes the files that a case finds. Each program is a file of its own: two
// links to one would be one file, with one set of labels.
func (s *stage) populate(c *planned, first string, actor []byte) error {
	files := append([]model.Found{{Path: first, Use: model.Program}}, c.Files...)
	if c.Workspace != "/" {
		files = append(files, model.Found{Path: c.Workspace})
	}
	for _, f := range files {
		path := filepath.Join(s.root, f.Path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("make what the case finds: %w", err)
		}
		if err := makeFile(path, f, actor); err != nil {
			return fmt.Errorf("make what the case finds: %w", err)
		}
	}
	return nil
}

func makeFile(path string, f model.Found, actor []byte) error {
	if strings.HasPrefix(f.Path, "/dev/") {
		return nil // a device, which the runtime makes
	}
	switch f.Use {
	case model.Directory:
		return os.MkdirAll(path, 0o755)
	case model.Socket:
		return nil // made by who listens
	case model.Program:
		return os.WriteFile(path, actor, 0o755)
	case model.Script:
		return os.WriteFile(path, []byte("#!"+f.Interpreter+"\n"), 0o755)
	}
	return os.WriteFile(path, []byte("from outside\n"), 0o644)
}

// capabilities are Docker's, and those that look into other processes.
var capabilities = []string{
	"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FSETID", "CAP_FOWNER", "CAP_MKNOD", "CAP_NET_RAW", "CAP_SETGID", "CAP_SETUID",
	"CAP_SETFCAP", "CAP_SETPCAP", "CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT", "CAP_KILL", "CAP_AUDIT_WRITE", "CAP_SYS_PTRACE",
}

// configure writes config.json.
func (s *stage) configure(c *planned, id, first, netns string) error {
	mount := func(to, kind string, options ...string) specs.Mount {
		return specs.Mount{Destination: to, Type: kind, Source: kind, Options: options}
	}
	caps := &specs.LinuxCapabilities{Bounding: capabilities, Effective: capabilities, Permitted: capabilities}
	spec := specs.Spec{
		Version:  "1.0.2",
		Root:     &specs.Root{Path: s.root},
		Hostname: "conformance",
		Process: &specs.Process{
			Args: []string{first}, Env: []string{"PATH=/usr/bin:/bin"}, Cwd: "/", Capabilities: caps,
		},
		Mounts: []specs.Mount{
			mount("/proc", "proc"),
			mount("/dev", "tmpfs", "nosuid", "mode=755"),
			mount("/dev/pts", "devpts", "nosuid", "noexec", "newinstance", "ptmxmode=0666"),
			mount("/dev/shm", "tmpfs", "nosuid", "nodev", "noexec"),
			mount("/sys", "sysfs", "nosuid", "noexec", "nodev", "ro"),
		},
		Annotations: map[string]string{"dev.actplane.policy": c.Document, "dev.actplane.workspace": c.Workspace},
		Linux: &specs.Linux{
			CgroupsPath: "/conformance/" + id,
			Namespaces: []specs.LinuxNamespace{
				{Type: specs.PIDNamespace}, {Type: specs.IPCNamespace}, {Type: specs.UTSNamespace}, {Type: specs.MountNamespace},
				{Type: specs.CgroupNamespace}, {Type: specs.NetworkNamespace, Path: netns},
			},
		},
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return fmt.Errorf("write config.json: %w", err)
	}
	return os.WriteFile(filepath.Join(s.dir, "config.json"), text, 0o600)
}
