// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/internal/approval"
	"github.com/actplane/actplane/internal/cgroup"
	"github.com/actplane/actplane/internal/daemon"
	"github.com/actplane/actplane/shim/prepare"
)

func doctorCommand() *cli.Command {
	return &cli.Command{
		Name:  "doctor",
		Usage: "tell whether this host can enforce, and what to do if not",
		Flags: append(frontEndFiles(), runDirFlag()),
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usageError("doctor: unexpected argument %q", c.Args().First())
			}
			return doctor(c)
		},
	}
}

// finding is one line of the doctor's.
type finding struct {
	verdict string // ok, warn or FAIL
	subject string
	fact    string
	remedy  string // what to do; empty when it is ok
}

const (
	good = "ok"
	warn = "warn"
	bad  = "FAIL" // the host cannot enforce
)

const probeTime = time.Minute

func doctor(c *cli.Context) error {
	checks := []func(*cli.Context) finding{
		checkKernel, checkBTF, checkLSM, checkCgroup, checkBPFFS, checkTier, checkConfig, checkEngine, checkGuest,
	}
	failed := false
	var findings []finding
	for _, check := range checks {
		findings = append(findings, check(c))
	}
	for _, f := range append(findings, checkFrontEnds(c)...) {
		fmt.Fprintf(c.App.Writer, "%-4s  %-10s  %s\n", f.verdict, f.subject, clean(f.fact))
		if f.remedy != "" {
			fmt.Fprintf(c.App.Writer, "%18s-> %s\n", "", clean(f.remedy))
		}
		failed = failed || f.verdict == bad
	}
	if failed {
		return &failure{exitEnvironment, "this host cannot enforce policies yet; see the lines with FAIL"}
	}
	return nil
}

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

func checkCgroup(*cli.Context) finding {
	mounts, err := cgroup.Find("/proc")
	if err != nil {
		return finding{bad, "cgroup", err.Error(), "boot with systemd.unified_cgroup_hierarchy=1"}
	}
	if mounts.Root != "/" {
		return finding{warn, "cgroup", fmt.Sprintf("only %s of the hierarchy is mounted, at %s", mounts.Root, mounts.Unified),
			"run the engine outside of this container"}
	}
	return finding{good, "cgroup", "v2 at " + mounts.Unified, ""}
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

// checkConfig looks at the host's configuration, and at the programs and secrets in it.
func checkConfig(*cli.Context) finding {
	path := prepare.DefaultHost().Config
	config, err := prepare.LoadConfig(path)
	if errors.Is(err, os.ErrPermission) {
		return finding{warn, "config", "only root may read " + path, "sudo actplane doctor"}
	}
	if err == nil && os.Geteuid() == 0 {
		err = approval.CheckHost(config.Approvers, config.Notifications)
	}
	if err != nil {
		return finding{bad, "config", err.Error(), "mend " + path + "; until then no container starts under policy"}
	}
	return finding{good, "config", fmt.Sprintf("%s: %d approvers, %d notifications", path, len(config.Approvers), len(config.Notifications)), ""}
}

func checkEngine(c *cli.Context) finding {
	client, err := daemon.Connect(c.Context, engineOptions(c))
	if errors.Is(err, os.ErrPermission) {
		return finding{warn, "engine", "only root may ask it", "sudo actplane doctor"}
	}
	if err != nil {
		return finding{warn, "engine", "it is not running", "it is started with the first container, or: systemctl start actplaned"}
	}
	defer client.Close()
	status := client.Status
	if status.Problem != "" {
		return finding{bad, "engine", status.Problem, ""}
	}
	if len(status.Degraded) > 0 {
		return finding{warn, "engine", strings.Join(status.Degraded, "; "), ""}
	}
	if len(status.Notices) > 0 {
		return finding{warn, "engine", strings.Join(status.Notices, "; "), "look at the receivers; people may not know of requests: actplane requests"}
	}
	return finding{good, "engine", fmt.Sprintf("process %d, version %s, tier %s, %d under policy", status.Pid, status.Version, status.Tier, status.Scopes), ""}
}

// checkGuest looks at the program that is mounted into containers of any image.
func checkGuest(*cli.Context) finding {
	self, err := os.Executable()
	if err != nil {
		return finding{warn, "guest", err.Error(), ""}
	}
	path := filepath.Join(filepath.Dir(self), "actplane-guest")
	program, err := elf.Open(path)
	if err != nil {
		return finding{warn, "guest", "no program " + path + ": agents get no hook", "actplane install"}
	}
	defer program.Close()
	for _, part := range program.Progs {
		if part.Type == elf.PT_INTERP {
			return finding{warn, "guest", path + " is linked dynamically and does not run in every image", "build it with CGO_ENABLED=0"}
		}
	}
	return finding{good, "guest", path + ", static", ""}
}
