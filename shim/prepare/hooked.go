// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"
	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/internal/bundle"
	"github.com/actplane/actplane/internal/exposure"
)

// aloneWarning tells what the hook alone cannot do.
const aloneWarning = "it was put under policy by the hook alone: processes that are added to it (podman exec) are under the policy, and nothing limits their capabilities; its programs are told of nothing"

// Verify judges a container whose mounts are made and whose program has not begun: that it
// has what its specification says and the record asks for, and nothing that is stronger
// than its policy. A runtime after ours may have changed the bundle, and a folder on the way
// to a mount's source may have been exchanged meanwhile. Without a record there are no limits.
func (h *Host) Verify(state *specs.State, rootfs string, record *bundle.Record) error {
	file, err := bundle.Open(filepath.Join(state.Bundle, bundle.ConfigName))
	if err != nil {
		return err
	}
	config, err := LoadConfig(h.Config)
	if err != nil {
		return err
	}
	if record != nil {
		if err := verifyProcess(file.Root, record); err != nil {
			return err
		}
	}
	return h.verify(config, file.Root, state, rootfs)
}

// verifyProcess says whether a runtime has given back what the limits took.
func verifyProcess(root bundle.Object, record *bundle.Record) error {
	var process bundle.Object
	if _, err := root.Get("process", &process); err != nil {
		return err
	}
	names, err := exposure.ProcessCapabilities(process)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !Keeps(record, name) {
			return fmt.Errorf("a runtime after actplane-runtime has added %s, which the policy drops", name)
		}
	}
	var set bool
	if _, err := process.Get("noNewPrivileges", &set); err != nil {
		return err
	}
	if record.NoNewPrivileges && !set {
		return fmt.Errorf("a runtime after actplane-runtime has taken away no_new_privileges, which the policy requires")
	}
	return nil
}

func (h *Host) verify(config *Config, root bundle.Object, state *specs.State, rootfs string) error {
	given, err := exposure.OfSpec(root, state.Bundle)
	if err != nil {
		return err
	}
	given.Runtime, given.RuntimeAt = h.program(state.Pid), "runtime"
	bare := *given
	bare.Mounts = nil // judged as they are
	here, err := exposure.Look(exposure.Options{Guarded: config.GuardedPaths})
	if err != nil {
		return err
	}
	mounts, err := h.mountsOf(state.Pid)
	if err != nil {
		return err
	}
	if resolved, err := filepath.EvalSymlinks(rootfs); err == nil {
		rootfs = resolved
	}
	mounted, err := here.JudgeMounted(given, mounts, rootfs, []string{filepath.Join(api.Directory, "scopes", state.ID)})
	if err != nil {
		return fmt.Errorf("look at the container's mounts: %w", err)
	}
	refused, _ := exposure.Sort(exposure.Arrange(append(here.Judge(&bare), mounted...)), config.Allow)
	return exposure.Refusal(fmt.Sprintf("container %.12q", state.ID), refused, h.Config)
}

func (h *Host) proc(pid int, name string) string {
	directory := h.Proc
	if directory == "" {
		directory = "/proc"
	}
	return filepath.Join(directory, strconv.Itoa(pid), name)
}

func (h *Host) mountsOf(pid int) ([]*mountinfo.Info, error) {
	text, err := os.ReadFile(h.proc(pid, "mountinfo"))
	if err != nil {
		return nil, fmt.Errorf("read the container's mounts: %w", err)
	}
	return mountinfo.GetMountsFromReader(bytes.NewReader(text), nil)
}

// program is what a process runs; empty if that cannot be told.
func (h *Host) program(pid int) string {
	name, _ := os.Readlink(h.proc(pid, "exe"))
	return strings.TrimSuffix(name, " (deleted)")
}

// Adopt puts a container under policy from a hook alone, where no runtime of ours has
// prepared it: its specification cannot be changed any more, so that it has to meet the
// limits as it is. It gives nothing for a container that is exempt, or that needs no policy;
// else the policy is staged, and the engine has to be told to attach it.
func (h *Host) Adopt(ctx context.Context, state *specs.State, rootfs string) (*Staged, error) {
	directory, err := filepath.EvalSymlinks(state.Bundle)
	if err != nil {
		return nil, fmt.Errorf("find bundle: %w", err)
	}
	file, err := bundle.Open(filepath.Join(directory, bundle.ConfigName))
	if err != nil {
		return nil, err
	}
	config, err := LoadConfig(h.Config)
	if err != nil {
		return nil, err
	}
	plan, err := h.plan(Container{ID: state.ID, Bundle: directory, Runtime: h.program(state.Pid)}, config, file.Root)
	if err != nil || plan.program == nil {
		return nil, err
	}
	if err := unmet(file.Root, plan.hardening(h.Swap)); err != nil {
		return nil, fmt.Errorf("container %q: %w", plan.title(state.ID), err)
	}
	if err := h.verify(config, file.Root, state, rootfs); err != nil {
		return nil, err
	}
	plan.silent, plan.agents = true, nil
	plan.warnings = append([]string{aloneWarning}, plan.warnings...)
	staged := &Staged{host: h, record: bundle.Record{ID: state.ID, Bundle: directory, SharedPID: plan.sharedPID,
		Capabilities: plan.limits.filters, NoNewPrivileges: plan.limits.noNewPrivileges}}
	if _, err := staged.stage(ctx, plan); err != nil {
		staged.Undo()
		return nil, err
	}
	if err := h.Records.Save(&staged.record); err != nil {
		staged.Undo()
		return nil, err
	}
	return staged, nil
}

// exempt tells whether a container is one of those that the host exempts.
func exempt(root bundle.Object, config *Config) (bool, error) {
	var annotations map[string]string
	if _, err := root.Get("annotations", &annotations); err != nil {
		return false, err
	}
	return slices.ContainsFunc(config.Exempt, func(text string) bool {
		key, value, _ := strings.Cut(text, "=")
		got, there := annotations[key]
		return there && got == value
	}), nil
}

// unmet says which limits a specification does not meet: those that would change it.
func unmet(root bundle.Object, limits []modifier) error {
	var missing []string
	for _, limit := range limits {
		before, after := bundle.Object{}, bundle.Object{}
		text, err := json.Marshal(root)
		if err != nil {
			return fmt.Errorf("read limits: %w", err)
		}
		for _, copied := range []*bundle.Object{&before, &after} {
			if err := json.Unmarshal(text, copied); err != nil {
				return fmt.Errorf("read limits: %w", err)
			}
		}
		if err := limit.run(after); err != nil {
			return err
		}
		same, err := equal(before, after)
		if err != nil {
			return err
		}
		if !same {
			missing = append(missing, limit.name+" ("+limit.flags+")")
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("its policy has limits that it does not meet, and a hook alone can set none: %s; start it with them, or with --runtime actplane", strings.Join(missing, "; "))
}

// equal compares what two documents say, and not how.
func equal(a, b bundle.Object) (bool, error) {
	var values [2]any
	for i, object := range []bundle.Object{a, b} {
		text, err := json.Marshal(object)
		if err == nil {
			err = json.Unmarshal(text, &values[i])
		}
		if err != nil {
			return false, fmt.Errorf("compare limits: %w", err)
		}
	}
	return reflect.DeepEqual(values[0], values[1]), nil
}
