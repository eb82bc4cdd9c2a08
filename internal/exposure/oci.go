// SPDX-License-Identifier: Apache-2.0

package exposure

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/actplane/actplane/internal/bundle"
)

// OfSpec reads what is judged from an OCI specification, of a bundle in a directory.
func OfSpec(root bundle.Object, directory string) (*Container, error) {
	c := &Container{}
	if err := c.readProcess(root); err != nil {
		return nil, err
	}
	if err := c.readMounts(root, directory); err != nil {
		return nil, err
	}
	return c, c.readLinux(root)
}

func (c *Container) readProcess(root bundle.Object) error {
	var process bundle.Object
	if _, err := root.Get("process", &process); err != nil {
		return err
	}
	names, err := ProcessCapabilities(process)
	if err != nil {
		return fmt.Errorf("process: %w", err)
	}
	for _, name := range names {
		c.Capabilities = append(c.Capabilities, Capability{Name: name, At: "process.capabilities"})
	}
	return nil
}

// ProcessCapabilities are those in any of the sets of a process.
func ProcessCapabilities(process bundle.Object) ([]string, error) {
	var sets map[string][]string
	if _, err := process.Get("capabilities", &sets); err != nil {
		return nil, err
	}
	var names []string
	for _, set := range sets {
		for _, name := range set {
			if name = CapabilityName(name); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names, nil
}

func (c *Container) readMounts(root bundle.Object, directory string) error {
	var rootfs specs.Root
	if _, err := root.Get("root", &rootfs); err != nil {
		return err
	}
	c.Mounts = []Mount{{Destination: "/", Source: within(directory, rootfs.Path), ReadOnly: rootfs.Readonly, Recursive: true, At: "root"}}
	var mounts []specs.Mount
	if _, err := root.Get("mounts", &mounts); err != nil {
		return err
	}
	for i, m := range mounts {
		c.Mounts = append(c.Mounts, ofSpec(m, directory, fmt.Sprintf("mounts[%d]", i))...)
	}
	return nil
}

func within(directory, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(directory, name)
}

// ofSpec is a mount of a specification; the layers of an overlay are one each.
func ofSpec(m specs.Mount, directory, at string) []Mount {
	mount := Mount{Destination: m.Destination, Type: m.Type, At: at}
	var layers []Mount
	for _, option := range m.Options {
		switch option {
		case "ro", "rro":
			mount.ReadOnly, mount.Deep = true, mount.Deep || option == "rro"
		case "rw", "rrw":
			mount.ReadOnly, mount.Deep = false, mount.Deep && option == "rw"
		case "bind":
			mount.Source = m.Source
		case "rbind":
			mount.Source, mount.Recursive = m.Source, true
		}
		if key, list, ok := strings.Cut(option, "="); ok && strings.Contains(key, "dir") { // lowerdir, lowerdir+, datadir+, upperdir
			for _, layer := range strings.FieldsFunc(list, func(r rune) bool { return r == ':' }) {
				layers = append(layers, Mount{Destination: m.Destination, Source: within(directory, layer), ReadOnly: key != "upperdir", At: at})
			}
		}
	}
	if m.Type == "bind" && mount.Source == "" { // runtimes differ in what else they take from it
		mount.Source, mount.Recursive = m.Source, true
	}
	if mount.Source != "" {
		mount.Source = within(directory, mount.Source)
		return []Mount{mount}
	}
	mounts := []Mount{mount}
	if info, err := os.Stat(m.Source); filepath.IsAbs(m.Source) && err == nil && info.Mode()&os.ModeDevice != 0 {
		mounts = append(mounts, Mount{Destination: m.Destination, Source: m.Source, ReadOnly: mount.ReadOnly, At: at}) // a disk
	}
	if m.Type != "overlay" {
		return mounts
	}
	return append(mounts, layers...)
}

func (c *Container) readLinux(root bundle.Object) error {
	var linux bundle.Object
	if _, err := root.Get("linux", &linux); err != nil {
		return err
	}
	var namespaces []specs.LinuxNamespace
	var devices []specs.LinuxDevice
	var resources bundle.Object
	var masked, readonly []string
	for key, into := range map[string]any{"namespaces": &namespaces, "devices": &devices, "resources": &resources, "maskedPaths": &masked, "readonlyPaths": &readonly} {
		if _, err := linux.Get(key, into); err != nil {
			return fmt.Errorf("linux: %w", err)
		}
	}
	c.PID, c.Cgroup, c.Mnt = namespaceOf(namespaces, specs.PIDNamespace, "pid"), namespaceOf(namespaces, specs.CgroupNamespace, "cgroup"), namespaceOf(namespaces, specs.MountNamespace, "mnt")
	for i, d := range devices {
		c.Devices = append(c.Devices, Device{Path: d.Path, Block: d.Type == "b", Major: d.Major, Minor: d.Minor, At: fmt.Sprintf("linux.devices[%d]", i)})
	}
	c.OpenPaths, c.OpenAt = Open(ProtectedPaths(), masked, readonly), "linux.readonlyPaths"
	var rules []specs.LinuxDeviceCgroup
	if _, err := resources.Get("devices", &rules); err != nil {
		return fmt.Errorf("linux.resources: %w", err)
	}
	for i, r := range rules {
		rule := DeviceRule{Allow: r.Allow, Type: r.Type, Major: Any, Minor: Any, Access: r.Access, At: fmt.Sprintf("linux.resources.devices[%d]", i)}
		if r.Major != nil {
			rule.Major = *r.Major
		}
		if r.Minor != nil {
			rule.Minor = *r.Minor
		}
		if rule.Access == "" {
			rule.Access = "rwm"
		}
		c.Rules = append(c.Rules, rule)
	}
	return nil
}

// namespaceOf tells whose namespace of a kind a container gets. One that cannot be looked
// at counts as the host's.
func namespaceOf(list []specs.LinuxNamespace, kind specs.LinuxNamespaceType, file string) Namespace {
	for i, namespace := range list {
		if namespace.Type != kind {
			continue
		}
		at := fmt.Sprintf("linux.namespaces[%d]", i)
		if namespace.Path == "" {
			return Namespace{Own, at}
		}
		return Namespace{ofFile(namespace.Path, file), at}
	}
	return Namespace{Hosts, "linux.namespaces"}
}

// ofFile compares a namespace's file with the host's: that of its first process, and the
// one in which this program runs.
func ofFile(name, file string) NamespaceOf {
	its, err := os.Stat(name)
	if err != nil {
		return Hosts
	}
	known := false
	for _, process := range []string{"1", "self"} {
		hosts, err := os.Stat(filepath.Join("/proc", process, "ns", file))
		if err == nil && os.SameFile(its, hosts) {
			return Hosts
		}
		known = known || err == nil
	}
	if !known {
		return Hosts
	}
	return Shared
}
