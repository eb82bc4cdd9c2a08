// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/bpf"
)

// UnsupportedError says why this host cannot enforce, in one sentence with the
// remedy.
type UnsupportedError struct {
	Reason string
	cause  error
}

func (e *UnsupportedError) Error() string { return e.Reason }

func (e *UnsupportedError) Unwrap() error { return e.cause }

// Probe finds the best tier of this host by its effect: it attaches a program
// that denies one open of its own, and looks whether that open was denied. The
// error is an UnsupportedError when neither tier works.
func Probe(ctx context.Context) (Tier, error) {
	var causes []error
	for _, tier := range []Tier{LSM, FmodRet} {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		works, err := denies(tier)
		if err != nil {
			causes = append(causes, fmt.Errorf("%s: %w", tier, err))
		}
		if works {
			return tier, nil
		}
	}
	return "", unsupported(errors.Join(causes...))
}

// denies tells whether a program of the tier denies.
func denies(tier Tier) (bool, error) {
	file, err := os.CreateTemp("", "actplane-probe-")
	if err != nil {
		return false, fmt.Errorf("make a file to open: %w", err)
	}
	defer os.Remove(file.Name())
	defer file.Close()
	var stat unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &stat); err != nil {
		return false, fmt.Errorf("stat %q: %w", file.Name(), err)
	}

	spec, err := bpf.LoadProber()
	if err != nil {
		return false, fmt.Errorf("read the prober: %w", err)
	}
	name := map[Tier]string{LSM: "lsm_file_open", FmodRet: "mod_file_open"}[tier]
	keepPrograms(spec, map[string]bool{name: true})
	for variable, value := range map[string]any{"prober_tgid": uint32(os.Getpid()), "probe_ino": stat.Ino} {
		if err := spec.Variables[variable].Set(value); err != nil {
			return false, fmt.Errorf("set %q: %w", variable, err)
		}
	}
	collection, err := ebpf.NewCollection(spec)
	if err != nil {
		return false, fmt.Errorf("load: %w", err)
	}
	defer collection.Close()
	attached, err := attach(collection.Programs[name])
	if err != nil {
		return false, fmt.Errorf("attach: %w", err)
	}
	defer attached.Close()

	opened, err := os.Open(file.Name())
	if err == nil {
		return false, errors.Join(errors.New("a program was attached and had no effect"), opened.Close())
	}
	return errors.Is(err, unix.EPERM), nil
}

// attach attaches an LSM or tracing program.
func attach(program *ebpf.Program) (link.Link, error) {
	if program.Type() == ebpf.LSM {
		return link.AttachLSM(link.LSMOptions{Program: program})
	}
	return link.AttachTracing(link.TracingOptions{Program: program})
}

// Release returns the running kernel's release, as uname -r prints it.
func Release() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(name.Release[:])
}

// OldestKernel is the oldest release with all that the programs call.
const OldestKernel = "6.1"

// unsupported turns the causes into the sentence that helps most.
func unsupported(cause error) error {
	release := Release()
	var major, minor int
	_, scanErr := fmt.Sscanf(release, "%d.%d", &major, &minor)
	reason := fmt.Sprintf("kernel %s refuses BPF programs on security hooks (%v); run a kernel built with "+
		"CONFIG_BPF_LSM, CONFIG_DEBUG_INFO_BTF and CONFIG_FUNCTION_TRACER, and boot it with lsm=...,bpf",
		release, lastLine(cause))
	switch {
	case scanErr == nil && (major < 6 || major == 6 && minor < 1):
		reason = fmt.Sprintf("kernel %s is too old; boot kernel %s or newer", release, OldestKernel)
	case !exists("/sys/kernel/btf/vmlinux"):
		reason = fmt.Sprintf("kernel %s has no BTF; boot a kernel built with CONFIG_DEBUG_INFO_BTF", release)
	case strings.Contains(read("/sys/kernel/security/lockdown"), "[confidentiality]"):
		reason = "the kernel is locked down to confidentiality, which forbids BPF to read kernel memory; " +
			"boot with lockdown=integrity or without lockdown"
	case os.Geteuid() != 0:
		reason = "loading BPF programs needs root; run as root"
	}
	return &UnsupportedError{Reason: reason, cause: cause}
}

// lastLine shortens the causes to what the kernel answered last.
func lastLine(err error) string {
	var errno syscall.Errno
	switch {
	case err == nil:
		return "no cause known"
	case errors.As(err, &errno):
		return errno.Error() // the library's own hints mislead here
	}
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	return lines[len(lines)-1]
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func read(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(data)
}
