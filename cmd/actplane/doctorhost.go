// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/internal/cgroup"
	"github.com/actplane/actplane/shim/prepare"
)

func checkKernel(*cli.Context) finding {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return finding{bad, "kernel", err.Error(), ""}
	}
	release := unix.ByteSliceToString(name.Release[:])
	var major, minor int
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil {
		return finding{warn, "kernel", release, "its version cannot be read; the tier below is what counts"}
	}
	if major < 6 || major == 6 && minor < 1 {
		return finding{bad, "kernel", release, "boot kernel 6.1 or newer"}
	}
	return finding{good, "kernel", release, ""}
}

func checkBTF(*cli.Context) finding {
	const path = "/sys/kernel/btf/vmlinux"
	if !exists(path) {
		return finding{bad, "btf", path + " does not exist", "boot a kernel built with CONFIG_DEBUG_INFO_BTF=y"}
	}
	return finding{good, "btf", path, ""}
}

func checkLSM(*cli.Context) finding {
	const path = "/sys/kernel/security/lsm"
	text, err := os.ReadFile(path)
	if err != nil {
		return finding{warn, "lsm", path + " cannot be read", "mount -t securityfs securityfs /sys/kernel/security, to see the list"}
	}
	list := strings.TrimSpace(string(text))
	if !slices.Contains(strings.Split(list, ","), "bpf") {
		return finding{warn, "lsm", "bpf is not in " + list, "the second-best tier, fmod_ret, is used; boot with lsm=" + list + ",bpf for the best"}
	}
	return finding{good, "lsm", list, ""}
}

func checkCgroup(*cli.Context) []finding {
	mounts, err := cgroup.Find("/proc")
	if err != nil {
		return []finding{{bad, "cgroup", err.Error(), "boot with systemd.unified_cgroup_hierarchy=1"}}
	}
	if mounts.Root != "/" {
		return []finding{{warn, "cgroup", fmt.Sprintf("only %s of the hierarchy is mounted, at %s", mounts.Root, mounts.Unified),
			"run the engine outside of this container"}}
	}
	if len(mounts.Legacy) > 0 {
		return []finding{{good, "cgroup", fmt.Sprintf("hybrid: v2 at %s, which policies go by, and %d of v1, which limit processes and memory", mounts.Unified, len(mounts.Legacy)), ""}}
	}
	controllers, err := os.ReadFile(filepath.Join(mounts.Unified, "cgroup.controllers"))
	var missing []string
	for _, name := range []string{"cpu", "memory", "pids"} {
		if err == nil && !slices.Contains(strings.Fields(string(controllers)), name) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return []finding{{warn, "cgroup", fmt.Sprintf("v2 alone, at %s, without the controllers %s: such limits of policies are refused", mounts.Unified, strings.Join(missing, ", ")),
			"take cgroup_disable= out of the kernel's command line"}}
	}
	return []finding{{good, "cgroup", "v2 alone, at " + mounts.Unified, ""}}
}

func checkBPFFS(*cli.Context) finding {
	const path = "/sys/fs/bpf"
	var stat unix.Statfs_t
	if err := unix.Statfs(path, &stat); err != nil || stat.Type != unix.BPF_FS_MAGIC {
		return finding{warn, "bpffs", "no BPF file system is mounted at " + path, "the engine mounts it if it can: mount -t bpf bpf " + path}
	}
	return finding{good, "bpffs", path, ""}
}

// checkTier tries what counts: whether a denial happens.
func checkTier(c *cli.Context) finding {
	if os.Geteuid() != 0 {
		return finding{warn, "tier", "not tried: that needs root", "sudo actplane doctor"}
	}
	ctx, cancel := context.WithTimeout(c.Context, probeTime)
	defer cancel()
	tier, err := kernel.Probe(ctx)
	if err != nil {
		return finding{bad, "tier", err.Error(), ""}
	}
	skips, err := kernel.Skips(tier)
	if err != nil {
		return finding{bad, "tier", err.Error(), ""}
	}
	if skips {
		return finding{bad, "tier", string(tier) + ": a denial was tried and happened, but under load this kernel misses some",
			"boot with lsm=...,bpf; or accept that: \"degraded: allow\" in " + prepare.DefaultHost().Config}
	}
	if tier != kernel.LSM {
		return finding{good, "tier", string(tier) + ": a denial was tried and happened; with bpf in lsm= it would be lsm", ""}
	}
	return finding{good, "tier", string(tier) + ": a denial was tried and happened", ""}
}
