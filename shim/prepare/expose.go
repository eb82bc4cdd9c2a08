// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"fmt"
	"path"
	"slices"

	"github.com/actplane/actplane/internal/bundle"
	"github.com/actplane/actplane/internal/exposure"
)

func checkExposures(config *Config) error {
	if err := exposure.CheckNames(config.Allow, didYouMean); err != nil {
		return fmt.Errorf("allow: %w", err)
	}
	for _, name := range config.GuardedPaths {
		if !path.IsAbs(name) {
			return fmt.Errorf("guarded_paths: %q is not an absolute path", name)
		}
	}
	return nil
}

// look looks at this host, with what its configuration guards.
func look(config *Config) (*exposure.Host, error) {
	return exposure.Look(exposure.Options{Guarded: config.GuardedPaths})
}

// expose refuses a container that has what is stronger than its policy, unless the host
// allows it: then it warns of it. What the limits take away it does not have; paths of
// the kernel that are open are left to be protected.
func (h *Host) expose(container Container, config *Config, root bundle.Object, plan *plan) (warnings []string, err error) {
	given, err := exposure.OfSpec(root, container.Bundle)
	if err != nil {
		return nil, err
	}
	given.Runtime = container.Runtime
	given.Capabilities = slices.DeleteFunc(given.Capabilities, func(c exposure.Capability) bool { return !keeps(plan.limits.filters, c.Name) })
	plan.sharedPID = given.PID.Of != exposure.Own
	here, err := look(config)
	if err != nil {
		return nil, err
	}
	refused, allowed := exposure.Sort(here.Judge(given), config.Allow)
	refused = slices.DeleteFunc(refused, func(f exposure.Finding) bool {
		if f.Kind != exposure.SystemPaths {
			return false
		}
		plan.openPaths = given.OpenPaths
		return true
	})
	if err := exposure.Refusal(fmt.Sprintf("container %q", plan.title(container.ID)), refused, h.Config); err != nil {
		return nil, err
	}
	for _, f := range allowed {
		warnings = append(warnings, bounded(fmt.Sprintf("the host allows %s: %s", f.Kind, f.Fact)))
	}
	return warnings, nil
}

// protectPaths masks paths or makes them read-only, as container managers do by default.
func protectPaths(open []string) modifier {
	return modifier{"protect paths", func(root bundle.Object) error {
		return root.Update("linux", func(linux bundle.Object) error {
			for key, paths := range map[string][]string{"maskedPaths": exposure.MaskedPaths(), "readonlyPaths": exposure.ReadonlyPaths()} {
				for _, name := range paths {
					if !contains(open, name) {
						continue
					}
					if err := linux.Append(key, name); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}}
}

// LimitExec limits the process of an exec as its container is limited, and refuses one
// that would have what is stronger than the policy. What else runs in the container stays
// as it is; a container without a policy is not limited.
func (h *Host) LimitExec(process bundle.Object, record *bundle.Record) error {
	if err := limitProcess(process, record.Capabilities, record.NoNewPrivileges); err != nil {
		return fmt.Errorf("limit process: %w", err)
	}
	names, err := exposure.ProcessCapabilities(process)
	if err != nil {
		return err
	}
	return h.CheckExec(names, record)
}

// CheckExec refuses capabilities of an exec that are stronger than the policy.
func (h *Host) CheckExec(capabilities []string, record *bundle.Record) error {
	if record.Unmanaged || len(capabilities) == 0 {
		return nil
	}
	config, err := LoadConfig(h.Config)
	if err != nil {
		return err
	}
	refused, _ := exposure.Sort(exposure.JudgeProcess(capabilities, record.SharedPID), config.Allow)
	return exposure.Refusal(fmt.Sprintf("a process in container %.12q", record.ID), refused, h.Config)
}
