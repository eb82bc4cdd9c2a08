// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/internal/exposure"
)

// Given is what one container of a service gets.
type Given struct {
	Service string
	// Part is what of the service it is: empty for its container, else a hook.
	Part    string
	Runtime string // as the file names it; empty is Docker's default
	At      string // where the service is
	// Unconfined says where seccomp is switched off; empty is nowhere.
	Unconfined string
	// Unknown are containers that are named and not in the files, by whose volumes or
	// namespaces something may come.
	Unknown []string
	*exposure.Container
}

// Given tells what the containers of a service get.
func (p *Project) Given(service string) ([]*Given, error) {
	config, err := p.GetService(service)
	if err != nil {
		return nil, err
	}
	main, err := p.given(service, "", &config.ContainerSpec)
	if err != nil {
		return nil, err
	}
	all := []*Given{main}
	for i := range config.PreStart {
		hook, err := p.given(service, "pre_start", &config.PreStart[i].ContainerSpec)
		if err != nil {
			return nil, err
		}
		all = append(all, hook)
	}
	for key, hooks := range map[string][]types.ServiceHook{"post_start": config.PostStart, "pre_stop": config.PreStop} {
		if slices.ContainsFunc(hooks, func(h types.ServiceHook) bool { return h.Privileged }) {
			main.Capabilities = append(main.Capabilities, exposure.Capability{Name: "ALL", At: p.at(service, key, "privileged")})
		}
	}
	return all, nil
}

func (p *Project) given(service, part string, spec *types.ContainerSpec) (*Given, error) {
	at := func(key, text string) string {
		if part != "" {
			key, text = part, "" // the line of the hooks
		}
		return p.at(service, key, text)
	}
	g := &Given{Service: service, Part: part, Runtime: spec.Runtime, At: p.at(service, "", ""), Container: &exposure.Container{Runtime: spec.Runtime, RuntimeAt: at("runtime", "")}}
	if part == "" {
		g.At = p.at(service, "runtime", "")
	}
	g.capabilities(spec, at)
	g.PID = namespace(spec.Pid, at("pid", ""))
	g.Cgroup = namespace(spec.Cgroup, at("cgroup", ""))
	for _, option := range spec.SecurityOpt {
		switch strings.ReplaceAll(option, ":", "=") {
		case "systempaths=unconfined":
			g.OpenPaths, g.OpenAt = exposure.ProtectedPaths(), at("security_opt", option)
		case "seccomp=unconfined":
			g.Unconfined = at("security_opt", option)
		}
	}
	if err := p.volumes(g, service, spec, at, 0); err != nil {
		return nil, err
	}
	return g, g.devices(spec, at)
}

type locator func(key, text string) string

func (g *Given) capabilities(spec *types.ContainerSpec, at locator) {
	listed := func(list []string, name string) bool {
		return slices.ContainsFunc(list, func(n string) bool { return exposure.CapabilityName(n) == name })
	}
	// As Docker does it: what is added is there, whatever is dropped; of ALL what is dropped is not.
	for _, name := range spec.CapAdd {
		g.Capabilities = append(g.Capabilities, exposure.Capability{Name: exposure.CapabilityName(name), At: at("cap_add", name)})
	}
	if listed(spec.CapAdd, "ALL") && len(spec.CapDrop) > 0 {
		where := g.Capabilities[0].At
		g.Capabilities = nil
		for _, name := range exposure.StrongCapabilities() {
			if !listed(spec.CapDrop, name) {
				g.Capabilities = append(g.Capabilities, exposure.Capability{Name: name, At: where})
			}
		}
	}
	if spec.Privileged {
		g.Capabilities = append(g.Capabilities, exposure.Capability{Name: "ALL", At: at("privileged", "")})
		g.Rules = append(g.Rules, exposure.DeviceRule{Allow: true, Major: exposure.Any, Minor: exposure.Any, Access: "rwm", At: at("privileged", "")})
	}
}

func namespace(mode, at string) exposure.Namespace {
	switch {
	case mode == "host":
		return exposure.Namespace{Of: exposure.Hosts, At: at}
	case mode == "", mode == "private":
		return exposure.Namespace{Of: exposure.Own, At: at}
	}
	return exposure.Namespace{Of: exposure.Shared, At: at}
}

const maxFrom = 16 // services that have their volumes from one another

func (p *Project) volumes(g *Given, service string, spec *types.ContainerSpec, at locator, depth int) error {
	if depth > maxFrom {
		return fmt.Errorf("service %q: volumes_from goes round in a circle", service)
	}
	for _, v := range spec.Volumes {
		if m, ok := p.mount(v); ok {
			m.At = at("volumes", v.Target)
			g.Mounts = append(g.Mounts, m)
		}
	}
	if spec.UseAPISocket {
		g.Mounts = append(g.Mounts, exposure.Mount{Source: "/var/run/docker.sock", Destination: "/var/run/docker.sock", At: at("use_api_socket", "")})
	}
	for _, s := range spec.Secrets {
		g.file(p.Secrets[s.Source].File, path.Join("/run/secrets", s.Target), at("secrets", s.Source))
	}
	for _, c := range spec.Configs {
		g.file(p.Configs[c.Source].File, path.Join("/", c.Target), at("configs", c.Source))
	}
	for _, from := range spec.VolumesFrom {
		name, _, _ := strings.Cut(strings.TrimSuffix(strings.TrimSuffix(from, ":ro"), ":rw"), ":")
		other, err := p.GetService(name)
		if err != nil || strings.HasPrefix(from, "container:") {
			g.Unknown = append(g.Unknown, from)
			continue
		}
		if err := p.volumes(g, name, &other.ContainerSpec, func(string, string) string { return at("volumes_from", from) }, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (g *Given) file(source, target, at string) {
	if source != "" {
		g.Mounts = append(g.Mounts, exposure.Mount{Source: source, Destination: target, ReadOnly: true, At: at})
	}
}

// mount is what a volume mounts of the host; of volumes that Docker keeps it is nothing.
func (p *Project) mount(v types.ServiceVolumeConfig) (exposure.Mount, bool) {
	m := exposure.Mount{Destination: v.Target, Source: v.Source, ReadOnly: v.ReadOnly, Recursive: true}
	switch v.Type {
	case types.VolumeTypeBind:
		m.Recursive = v.Bind == nil || v.Bind.Recursive != "disabled"
		m.Deep = v.Bind != nil && v.Bind.Recursive == "readonly"
		return m, true
	case types.VolumeTypeVolume:
		options := p.Volumes[v.Source].DriverOpts
		if device := options["device"]; path.IsAbs(device) {
			m.Source = device
			return m, true
		}
	}
	return m, false
}

// blockNames are the names of disks, for files that are checked on another machine.
var blockNames = regexp.MustCompile(`^/dev/(s[dr]|vd|xvd|nvme[0-9]+n[0-9]|dm-|mapper/[^c]|md[0-9]|loop[0-9]|mmcblk|nbd|zd|ram|disk/)`)

func (g *Given) devices(spec *types.ContainerSpec, at locator) error {
	for _, d := range spec.Devices {
		where := at("devices", d.Source)
		var stat unix.Stat_t
		err := unix.Stat(d.Source, &stat)
		mode := stat.Mode & unix.S_IFMT
		switch {
		case err == nil && mode == unix.S_IFDIR: // Docker gives all devices in it
			g.Mounts = append(g.Mounts, exposure.Mount{Source: d.Source, Destination: d.Target, Recursive: true, At: where})
		case err == nil:
			g.Devices = append(g.Devices, exposure.Device{Path: d.Source, Block: mode == unix.S_IFBLK, At: where,
				Major: int64(unix.Major(stat.Rdev)), Minor: int64(unix.Minor(stat.Rdev))})
		default:
			g.Devices = append(g.Devices, exposure.DeviceByName(d.Source, blockNames.MatchString(d.Source), where))
		}
	}
	for _, text := range spec.DeviceCgroupRules {
		rule, err := parseRule(text)
		if err != nil {
			return fmt.Errorf("%s: %w", at("device_cgroup_rules", text), err)
		}
		rule.At = at("device_cgroup_rules", text)
		g.Rules = append(g.Rules, rule)
	}
	return nil
}

var ruleForm = regexp.MustCompile(`^([abc]) (\*|[0-9]{1,10}):(\*|[0-9]{1,10}) ([rwm]{1,3})$`)

func parseRule(text string) (exposure.DeviceRule, error) {
	parts := ruleForm.FindStringSubmatch(text)
	if parts == nil {
		return exposure.DeviceRule{}, fmt.Errorf("device rule %q is not of the form \"c 1:3 rwm\"", text)
	}
	number := func(text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return exposure.Any
		}
		return n
	}
	return exposure.DeviceRule{Allow: true, Type: parts[1], Major: number(parts[2]), Minor: number(parts[3]), Access: parts[4]}, nil
}
