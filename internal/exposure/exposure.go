// SPDX-License-Identifier: Apache-2.0

// Package exposure judges what a container is given: with some of it, its programs
// could lift the policy that is to hold them, or reach around it. It decides for the
// runtime, the shim, the hook and `actplane lint` alike, before a container exists by
// its specification, and once its mounts are made by what the kernel has mounted.
//
// A path is judged by what it is on the host, by file system and place there, and not
// by its name. The package knows nothing of policies.
package exposure

import (
	"fmt"
	"slices"
	"strings"
)

// Kind is one way to be stronger than a policy.
type Kind struct {
	Code string // stable, such as S101
	Name string // as the host's configuration allows it
}

func (k Kind) String() string { return k.Name }

// The kinds, in the order in which they are told.
var (
	Privileged      = Kind{"S101", "privileged"}
	CapSysAdmin     = Kind{"S102", "cap-sys-admin"}
	CapBPF          = Kind{"S103", "cap-bpf"}
	CapSysModule    = Kind{"S104", "cap-sys-module"}
	CapSysRawIO     = Kind{"S105", "cap-sys-rawio"}
	CapSysBoot      = Kind{"S106", "cap-sys-boot"}
	CapReadSearch   = Kind{"S107", "cap-dac-read-search"}
	CapSysPtrace    = Kind{"S108", "cap-sys-ptrace"}
	HostPID         = Kind{"S111", "host-pid"}
	HostRoot        = Kind{"S112", "host-root"}
	HostSystem      = Kind{"S113", "host-system"}
	HostProc        = Kind{"S114", "host-proc"}
	DockerSocket    = Kind{"S121", "docker-socket"}
	ContainerdSock  = Kind{"S122", "containerd-socket"}
	CrioSocket      = Kind{"S123", "crio-socket"}
	PodmanSocket    = Kind{"S124", "podman-socket"}
	SystemdSocket   = Kind{"S125", "systemd-socket"}
	GuardedPath     = Kind{"S126", "guarded-path"}
	HostDevices     = Kind{"S131", "host-devices"}
	BPFFiles        = Kind{"S132", "bpf-files"}
	WritableCgroups = Kind{"S133", "writable-cgroups"}
	HostCgroups     = Kind{"S134", "host-cgroups"}
	WritableSys     = Kind{"S135", "writable-sys"}
	SystemPaths     = Kind{"S136", "system-paths"}
	ActPlaneFiles   = Kind{"S141", "actplane-files"}
	VMRuntime       = Kind{"S142", "vm-runtime"}
)

// Kinds are all of them.
func Kinds() []Kind {
	return []Kind{Privileged, CapSysAdmin, CapBPF, CapSysModule, CapSysRawIO, CapSysBoot, CapReadSearch, CapSysPtrace,
		HostPID, HostRoot, DockerSocket, ContainerdSock, CrioSocket, PodmanSocket, SystemdSocket, HostSystem, HostProc, GuardedPath,
		HostDevices, BPFFiles, WritableCgroups, HostCgroups, WritableSys, SystemPaths, ActPlaneFiles, VMRuntime}
}

// Names are those that a host can allow.
func Names() []string {
	var names []string
	for _, kind := range Kinds() {
		names = append(names, kind.Name)
	}
	return names
}

// partOfPrivileged are what `docker run --privileged` gives: it is one thing to allow,
// and to tell of.
func partOfPrivileged() []Kind {
	return []Kind{CapSysAdmin, CapBPF, CapSysModule, CapSysRawIO, CapSysBoot, CapReadSearch, CapSysPtrace,
		HostDevices, WritableCgroups, HostCgroups, WritableSys, SystemPaths}
}

// Finding is one thing that a container should not have. Fact and Fix are clauses of a
// sentence, without a full stop.
type Finding struct {
	Kind Kind
	At   string // where it is in what was judged
	Fact string
	Fix  string
}

// Container is what of a container is judged. At of each part says where it is.
type Container struct {
	Capabilities     []Capability // of all sets
	Mounts           []Mount      // in the order in which they are mounted; the root first
	Devices          []Device
	Rules            []DeviceRule
	PID, Cgroup, Mnt Namespace
	// OpenPaths are those of SystemPaths and MaskedPaths that are not protected.
	OpenPaths []string
	OpenAt    string
	// Runtime is the program that makes the container; empty is not known.
	Runtime, RuntimeAt string
}

// Capability is one that a process has or can get.
type Capability struct {
	Name string // CAP_SYS_ADMIN
	At   string
}

// Namespace says whose one is.
type Namespace struct {
	Of NamespaceOf
	At string
}

// NamespaceOf is whose a namespace is.
type NamespaceOf int

// A container's own, another container's, or the host's.
const (
	Own NamespaceOf = iota
	Shared
	Hosts
)

// Judge tells all that a container should not have, in the order of Kinds.
func (h *Host) Judge(c *Container) []Finding {
	var found []Finding
	found = append(found, judgeCapabilities(c.Capabilities, c.PID.Of != Own)...)
	found = append(found, judgeNamespaces(c)...)
	found = append(found, h.judgeMounts(c)...)
	found = append(found, h.judgeDevices(c)...)
	found = append(found, judgeOpenPaths(c.OpenPaths, c.OpenAt)...)
	found = append(found, judgeRuntime(c.Runtime, c.RuntimeAt)...)
	return Arrange(found)
}

// Arrange puts findings of several judgements together, as Judge does: in the order of
// Kinds, each once, and of a privileged container without what that word says.
func Arrange(found []Finding) []Finding {
	privileged := slices.ContainsFunc(found, func(f Finding) bool { return f.Kind == Privileged })
	order := Kinds()
	found = slices.Clone(found)
	slices.SortStableFunc(found, func(a, b Finding) int { return slices.Index(order, a.Kind) - slices.Index(order, b.Kind) })
	var kept []Finding
	for _, f := range found {
		if privileged && slices.Contains(partOfPrivileged(), f.Kind) || slices.Contains(kept, f) {
			continue
		}
		kept = append(kept, f)
	}
	return kept
}

// Sort parts findings into those that a host refuses and those that it allows by name.
func Sort(found []Finding, allow []string) (refused, allowed []Finding) {
	for _, f := range found {
		if slices.Contains(allow, f.Kind.Name) {
			allowed = append(allowed, f)
		} else {
			refused = append(refused, f)
		}
	}
	return refused, allowed
}

// Bounds of a refusal, which is one sentence on somebody's terminal: facts, and the length
// of one in bytes. Container managers cut what is much longer.
const (
	maxTold = 3
	maxFact = 240
)

// Refusal is the error for findings, in one sentence; nil for none. Of a mount it tells
// one fact, and the names of all. The configuration is the file in which a host allows.
func Refusal(subject string, refused []Finding, configuration string) error {
	if len(refused) == 0 {
		return nil
	}
	var facts, names, places []string
	for _, f := range refused {
		if !slices.Contains(names, f.Kind.Name) {
			names = append(names, f.Kind.Name)
		}
		if slices.Contains(places, f.At) && !isCapability(f.Kind) {
			continue
		}
		places = append(places, f.At)
		facts = append(facts, shorten(f.Fact))
	}
	if more := len(facts) - maxTold; more > 0 {
		facts = facts[:maxTold]
		facts = append(facts, fmt.Sprintf("and %d more (\"actplane lint\" shows all)", more))
	}
	fix := "start it without"
	if len(facts) == 1 {
		fix = refused[0].Fix
	}
	return fmt.Errorf("%s could get around its policy: %s. %s, or have the host allow it: allow: [%s] in %s",
		subject, strings.Join(facts, "; "), strings.ToUpper(fix[:1])+fix[1:], strings.Join(names, ", "), configuration)
}

func shorten(fact string) string {
	if len(fact) <= maxFact {
		return fact
	}
	return strings.ToValidUTF8(fact[:maxFact], "") + "…"
}

// CheckNames says which of the names that a host allows is none.
func CheckNames(names []string, hint func(word string, known []string) string) error {
	for _, name := range names {
		if !slices.Contains(Names(), name) {
			return fmt.Errorf("%q is nothing that can be allowed%s", name, hint(name, Names()))
		}
	}
	return nil
}

func judgeNamespaces(c *Container) []Finding {
	var found []Finding
	if c.PID.Of == Hosts {
		found = append(found, Finding{HostPID, c.PID.At,
			"it shares the host's process namespace, and with it the files, environment and memory of the host's processes", "start it without --pid host"})
	}
	if c.Mnt.Of != Own {
		found = append(found, Finding{HostRoot, c.Mnt.At, "it has no mount namespace of its own, so that the host's files are its own", "give it one"})
	}
	return found
}

// vmRuntimes are programs that run containers in a virtual machine, or on a kernel of
// their own, by the beginning of their name.
func vmRuntimes() []string {
	return []string{"runsc", "kata", "containerd-shim-kata", "containerd-shim-runsc", "krun", "runv", "runq", "rune", "runz", "sysbox-kvm", "urunc", "qemu", "cloud-hypervisor", "firecracker", "crun-vm", "crun-krun"}
}

// IsVM tells whether a program makes containers that the host's kernel does not see into.
func IsVM(program string) bool {
	name := program[strings.LastIndexByte(program, '/')+1:]
	return slices.ContainsFunc(vmRuntimes(), func(known string) bool {
		rest, ok := strings.CutPrefix(name, known)
		return ok && (rest == "" || strings.ContainsRune("-_.", rune(rest[0])))
	})
}

func judgeRuntime(program, at string) []Finding {
	if !IsVM(program) {
		return nil
	}
	return []Finding{{VMRuntime, at,
		fmt.Sprintf("the runtime %q runs it on a kernel of its own, so that this host's kernel does not see what its programs do", program),
		"run it with runc or crun"}}
}
