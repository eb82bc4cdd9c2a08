// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

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

// prober is an attached program that denies the opening of a file of its own.
type prober struct {
	path       string // opens the file
	file       *os.File
	collection *ebpf.Collection
	program    *ebpf.Program
	link       link.Link
}

// newProber attaches a prober of the tier whose calls take some rounds of a loop.
// The file has no name, so that nothing is left behind.
func newProber(tier Tier, rounds uint32) (*prober, error) {
	fd, err := unix.MemfdCreate("actplane-probe", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make a file to open: %w", err)
	}
	p := &prober{file: os.NewFile(uintptr(fd), "probe"), path: fmt.Sprintf("/proc/self/fd/%d", fd)}
	if err := p.attach(tier, rounds); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

func (p *prober) attach(tier Tier, rounds uint32) error {
	id, err := fileIDOf(p.file)
	if err != nil {
		return err
	}
	spec, err := bpf.LoadProber()
	if err != nil {
		return fmt.Errorf("read the prober: %w", err)
	}
	name := map[Tier]string{LSM: "lsm_file_open", FmodRet: "mod_file_open"}[tier]
	keepPrograms(spec, map[string]bool{name: true})
	for variable, value := range map[string]any{"probe_ino": id.Ino, "probe_dev": id.Dev, "rounds": rounds} {
		if err := spec.Variables[variable].Set(value); err != nil {
			return fmt.Errorf("set %q: %w", variable, err)
		}
	}
	if p.collection, err = ebpf.NewCollection(spec); err != nil {
		return fmt.Errorf("load: %w", err)
	}
	p.program = p.collection.Programs[name]
	if p.link, err = attach(p.program); err != nil {
		return fmt.Errorf("attach: %w", err)
	}
	return nil
}

// denied opens the file and tells whether that was refused.
func (p *prober) denied() bool {
	fd, err := unix.Open(p.path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		_ = unix.Close(fd)
	}
	return errors.Is(err, unix.EPERM)
}

func (p *prober) close() error {
	var errs []error
	if p.link != nil {
		errs = append(errs, p.link.Close())
	}
	if p.collection != nil {
		p.collection.Close()
	}
	return errors.Join(append(errs, p.file.Close())...)
}

// denies tells whether a program of the tier denies.
func denies(tier Tier) (bool, error) {
	p, err := newProber(tier, 1)
	if err != nil {
		return false, err
	}
	denied := p.denied()
	if err := p.close(); err != nil {
		return false, err
	}
	if !denied {
		return false, errors.New("a program was attached and had no effect")
	}
	return true, nil
}

const (
	preemptionProbe  = 400 * time.Millisecond
	preemptionRounds = 20_000 // some 100 µs a call
)

// Skips tells whether this kernel skips programs of a tier. Those of the fmod_ret tier it does when
// a thread enters a program while another on the same CPU was preempted inside of
// it, which takes a kernel that preempts. Two threads on one CPU show it.
func Skips(tier Tier) (bool, error) {
	if tier == LSM {
		return false, nil
	}
	p, err := newProber(FmodRet, preemptionRounds)
	if err != nil {
		return false, err
	}
	var allowed atomic.Int64
	end := time.Now().Add(preemptionProbe)
	var threads sync.WaitGroup
	for range 4 {
		threads.Go(func() {
			runtime.LockOSThread() // never unlocked: the thread keeps its CPU until it ends
			var cpu unix.CPUSet
			cpu.Set(firstCPU())
			if unix.SchedSetaffinity(0, &cpu) != nil {
				return
			}
			for time.Now().Before(end) {
				if !p.denied() {
					allowed.Add(1)
				}
			}
		})
	}
	threads.Wait()
	return allowed.Load() > 0, p.close()
}

// firstCPU is one that this process may run on.
func firstCPU() int {
	var allowed unix.CPUSet
	if unix.SchedGetaffinity(0, &allowed) == nil {
		for cpu := range 1024 {
			if allowed.IsSet(cpu) {
				return cpu
			}
		}
	}
	return 0
}

// attach attaches an LSM or tracing program.
func attach(program *ebpf.Program) (link.Link, error) {
	if program.Type() == ebpf.LSM {
		return link.AttachLSM(link.LSMOptions{Program: program})
	}
	return link.AttachTracing(link.TracingOptions{Program: program})
}

// errSkips is why the fmod_ret tier is not used on kernels that preempt.
func errSkips() error {
	return &UnsupportedError{Reason: fmt.Sprintf("kernel %s preempts BPF programs, and without bpf in lsm= it then skips some, "+
		"so that forbidden operations go through under load; boot with lsm=...,bpf (or, if you accept that, set "+
		"\"degraded: allow\" in /etc/actplane/config.yaml)", Release())}
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
