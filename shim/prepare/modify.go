// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/internal/bundle"
)

const (
	// scopeMount is where the container finds its scope's directory.
	scopeMount = "/run/actplane"
	hookName   = "actplane-hook"
	// hookTimeout in seconds: the engine may have to be started again.
	hookTimeout = 60
)

// modifier is one change to config.json. The list of them runs in order; each
// leaves alone what is not its business, and a second run changes nothing.
type modifier struct {
	name  string
	flags string // by which who starts the container does the same; empty: by none
	apply func(root bundle.Object) error
}

func (m modifier) run(root bundle.Object) error {
	if err := m.apply(root); err != nil {
		return fmt.Errorf("%s: %w", m.name, err)
	}
	return nil
}

// modifiers are those of the limits that are set.
func (l *limits) modifiers(swap func() bool) []modifier {
	var list []modifier
	if len(l.filters) > 0 || l.noNewPrivileges {
		list = append(list, modifier{"limit process", "--cap-drop, --security-opt no-new-privileges", func(root bundle.Object) error {
			return root.Update("process", func(process bundle.Object) error {
				return limitProcess(process, l.filters, l.noNewPrivileges)
			})
		}})
	}
	if l.pids > 0 {
		list = append(list, limitPids(l.pids))
	}
	if l.memory > 0 {
		list = append(list, limitMemory(l.memory, swap == nil || swap()))
	}
	if l.cpus > 0 {
		list = append(list, limitCPUs(l.cpus))
	}
	return list
}

// Keeps says whether a container's limits leave it a capability.
func Keeps(record *bundle.Record, capability string) bool {
	return keeps(record.Capabilities, capability)
}

// limitProcess narrows all capability sets. It adds to none: a set that is not
// there is empty.
func limitProcess(process bundle.Object, filters []bundle.CapabilityFilter, noNewPrivileges bool) error {
	if noNewPrivileges {
		if err := process.Set("noNewPrivileges", true); err != nil {
			return err
		}
	}
	if len(filters) == 0 {
		return nil
	}
	return process.Update("capabilities", func(sets bundle.Object) error {
		for _, set := range sets.Keys() {
			var list []string
			if found, err := sets.Get(set, &list); err != nil {
				return err
			} else if !found {
				continue
			}
			kept := []string{}
			for _, capability := range list {
				if keeps(filters, capability) {
					kept = append(kept, capability)
				}
			}
			if err := sets.Set(set, kept); err != nil {
				return err
			}
		}
		return nil
	})
}

// dropOwn takes out what an earlier create has put into the same bundle: bundles
// made by hand are run more than once.
func dropOwn() modifier {
	return modifier{"clean bundle", "", func(root bundle.Object) error {
		err := root.Filter("mounts", func(raw json.RawMessage) bool {
			var mount specs.Mount
			return json.Unmarshal(raw, &mount) == nil && strings.HasPrefix(filepath.Clean(mount.Source), api.Directory+"/scopes/")
		})
		if err != nil {
			return err
		}
		return root.Update("hooks", func(hooks bundle.Object) error {
			for _, stage := range hooks.Keys() {
				err := hooks.Filter(stage, func(raw json.RawMessage) bool {
					var hook specs.Hook
					return json.Unmarshal(raw, &hook) == nil && filepath.Base(hook.Path) == hookName
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
	}}
}

// mountScope mounts the scope's directory, last, so that no other mount covers
// it or lies in it.
func mountScope(directory string) modifier {
	return modifier{"mount scope", "", func(root bundle.Object) error {
		var mounts []specs.Mount
		if _, err := root.Get("mounts", &mounts); err != nil {
			return err
		}
		for _, mount := range mounts {
			destination := path.Clean("/" + mount.Destination)
			if destination == scopeMount || strings.HasPrefix(destination, scopeMount+"/") {
				return fmt.Errorf("the container has a mount of its own at %q, where ActPlane's is; remove it", destination)
			}
		}
		return root.Append("mounts", specs.Mount{
			Destination: scopeMount, Type: "bind", Source: directory,
			Options: []string{"bind", "ro", "nosuid", "nodev", "rprivate"},
		})
	}}
}

// addHooks puts our hooks behind those that are there; Docker has one.
func addHooks(program string) modifier {
	return modifier{"add hooks", "", func(root bundle.Object) error {
		return root.Update("hooks", func(hooks bundle.Object) error {
			for _, stage := range []string{"createRuntime", "poststop"} {
				timeout := hookTimeout
				err := hooks.Append(stage, specs.Hook{
					Path: program, Args: []string{hookName, stage}, Timeout: &timeout,
					// runc gives a hook without environment its own, crun none.
					Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
	}}
}

// FindProgram finds a program of ActPlane's, beside this one or where it is installed.
func FindProgram(name string) (string, error) {
	directories := []string{"/usr/local/bin", "/usr/local/sbin", "/usr/bin", "/usr/sbin"}
	self := "this program"
	if path, err := os.Executable(); err == nil {
		directories = append([]string{filepath.Dir(path)}, directories...)
		self = filepath.Base(path)
	}
	for _, directory := range directories {
		candidate := filepath.Join(directory, name)
		if info, err := os.Stat(candidate); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return candidate, nil
		}
	}
	return "", fmt.Errorf(`%s is neither beside %s nor in /usr/local/bin; run "actplane install"`, name, self)
}
