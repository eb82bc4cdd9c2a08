// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"

	"github.com/actplane/actplane/internal/bundle"
	"github.com/actplane/actplane/internal/exposure"
	"github.com/actplane/actplane/policy/ir"
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

// Judge parts what a container should not have into what this host refuses and what its
// configuration allows. What the limits take away it does not have. Open paths of the
// kernel's are neither: they are protected.
func Judge(config *Config, given *exposure.Container, layers ...ir.Limits) (refused, allowed []exposure.Finding, err error) {
	var all limits
	for _, l := range layers {
		all.tighten(l)
	}
	return judge(config, given, &all)
}

// Lint judges a bundle as Prepare would, and changes nothing: with the limits of the
// policies that it has, and of others that it is to have. Without any policy it is judged
// all the same.
func (h *Host) Lint(container Container, layers ...ir.Limits) (refused, allowed []exposure.Finding, err error) {
	file, err := bundle.Open(filepath.Join(container.Bundle, bundle.ConfigName))
	if err != nil {
		return nil, nil, err
	}
	config, err := LoadConfig(h.Config)
	if err != nil {
		return nil, nil, err
	}
	if err := dropOwn().run(file.Root); err != nil {
		return nil, nil, err
	}
	plan, err := h.read(container, config, file.Root)
	if err != nil {
		return nil, nil, err
	}
	for _, l := range layers {
		plan.limits.tighten(l)
	}
	given, err := exposure.OfSpec(file.Root, container.Bundle)
	if err != nil {
		return nil, nil, err
	}
	given.Runtime, given.RuntimeAt = container.Runtime, "runtime"
	return judge(config, given, &plan.limits)
}

func judge(config *Config, given *exposure.Container, l *limits) (refused, allowed []exposure.Finding, err error) {
	here, err := exposure.Look(exposure.Options{Guarded: config.GuardedPaths})
	if err != nil {
		return nil, nil, err
	}
	left := *given
	left.Capabilities = nil
	for _, c := range given.Capabilities {
		left.Capabilities = append(left.Capabilities, l.left(c)...)
	}
	refused, allowed = exposure.Sort(here.Judge(&left), config.Allow)
	return refused, allowed, nil
}

// left is what of a capability passes the limits; ALL is taken apart.
func (l *limits) left(c exposure.Capability) []exposure.Capability {
	if len(l.filters) == 0 {
		return []exposure.Capability{c}
	}
	names := []string{c.Name}
	if canonical(c.Name) == capabilityAll {
		names = exposure.StrongCapabilities()
	}
	var kept []exposure.Capability
	for _, name := range names {
		if keeps(l.filters, name) {
			kept = append(kept, exposure.Capability{Name: name, At: c.At})
		}
	}
	return kept
}

// expose refuses a container that has what is stronger than its policy, unless the host
// allows it: then it warns of it. Paths of the kernel that are open are left to be protected.
func (h *Host) expose(container Container, config *Config, root bundle.Object, plan *plan) (warnings []string, err error) {
	given, err := exposure.OfSpec(root, container.Bundle)
	if err != nil {
		return nil, err
	}
	given.Runtime, given.RuntimeAt = container.Runtime, "runtime"
	plan.sharedPID = given.PID.Of != exposure.Own
	refused, allowed, err := judge(config, given, &plan.limits)
	if err != nil {
		return nil, err
	}
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
	return modifier{"protect paths", "without --security-opt unmask or systempaths=unconfined", func(root bundle.Object) error {
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
