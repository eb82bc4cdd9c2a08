// SPDX-License-Identifier: Apache-2.0

// Package testenv tells tests what the machine they run on can do.
//
// A test that needs a kernel that enforces calls [RequireKernel] first. Where the
// kernel refuses such programs, the test is skipped with a reason; the guests of
// integration/vm promise the privilege (ACTPLANE_TEST_ROOT=1), and there not
// running is a failure. Every package whose tests call [RequireKernel], [RequireLSM]
// or [RequireBPF] is run in the guests by "make test"; what needs no more than root
// runs where it is.
//
// It is for tests only, and decides nothing about the product: what a host can do
// is found out by the engine's own probe.
package testenv

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The environment of a guest, set by integration/vm.
const (
	// RootEnv is "1" where the machine promises all that a test may need.
	RootEnv = "ACTPLANE_TEST_ROOT"
	// KernelEnv is the kernel's name there: 5.10, 6.1, 6.12 or new.
	KernelEnv = "ACTPLANE_TEST_KERNEL"
	// BrowserEnv is "1" where the programs of WantProgram are installed: it is not only
	// set in guests.
	BrowserEnv = "ACTPLANE_TEST_BROWSER"
	// LSMEnv is "bpf" or "nobpf": whether lsm= lists bpf.
	LSMEnv = "ACTPLANE_TEST_LSM"
)

// lsmFile lists the active security modules.
const lsmFile = "/sys/kernel/security/lsm"

// Promised reports whether the machine promises root and a kernel that enforces.
func Promised() bool { return os.Getenv(RootEnv) == "1" }

// Kernel is the guest's kernel, "6.1" or "new", and empty outside of a guest.
func Kernel() string { return os.Getenv(KernelEnv) }

// Tier is the guest's tier, "bpf" or "nobpf", and empty outside of a guest.
func Tier() string { return os.Getenv(LSMEnv) }

// RequireKernel skips the test unless the machine promises to be a guest of
// integration/vm: root, a kernel that lets enforcing programs attach, cgroup v2.
// It may be called by a parent test once for all its subtests.
func RequireKernel(t testing.TB) {
	t.Helper()
	requireKernel(t, Promised(), missing)
}

func requireKernel(t testing.TB, promised bool, missing func() string) {
	t.Helper()
	if !promised {
		t.Skip("needs a kernel that enforces; make test runs it in a VM")
	}
	if why := missing(); why != "" {
		t.Fatalf("%s=1 promises a machine that enforces, but %s", RootEnv, why)
	}
}

// RequireLSM is [RequireKernel] for a test of the lsm tier. In a guest without the
// BPF LSM it is skipped: the other guest runs it.
func RequireLSM(t testing.TB) {
	t.Helper()
	RequireKernel(t)
	if Tier() == "nobpf" {
		t.Skip("is about the lsm tier, and this guest has none")
	}
	if !lsmActive() {
		t.Fatalf("%s promises the BPF LSM, but %s does not list bpf", LSMEnv, lsmFile)
	}
}

// RequireRoot skips the test without root. CI and the guests promise root.
func RequireRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() == 0 {
		return
	}
	if promisedOrCI() {
		t.Fatal("needs root, which CI and the guests promise")
	}
	t.Skip("needs root")
}

// RequireBPF skips the test unless programs of SEC("syscall") can be loaded and
// run: the way in which matching and deciding are tested on any machine. CI and
// the guests promise it.
func RequireBPF(t testing.TB) {
	t.Helper()
	RequireRoot(t)
	err := tryProgram()
	switch {
	case err == nil:
	case promisedOrCI():
		t.Fatalf("the kernel loads no BPF program, which CI and the guests promise: %v", err)
	default:
		t.Skipf("needs a kernel that loads BPF programs: %v", err)
	}
}

// promisedOrCI reports whether the machine promises root.
func promisedOrCI() bool { return Promised() || os.Getenv("CI") == "true" }

// missing says what a promised machine lacks, or nothing.
func missing() string {
	if os.Geteuid() != 0 {
		return fmt.Sprintf("the user is %d, not root", os.Geteuid())
	}
	for _, path := range []string{"/sys/kernel/btf/vmlinux", "/sys/fs/cgroup/cgroup.procs"} {
		if _, err := os.Stat(path); err != nil {
			return err.Error()
		}
	}
	return ""
}

func lsmActive() bool {
	list, err := os.ReadFile(lsmFile)
	if err != nil {
		return false
	}
	for _, name := range strings.Split(strings.TrimSpace(string(list)), ",") {
		if name == "bpf" {
			return true
		}
	}
	return false
}
