// SPDX-License-Identifier: Apache-2.0

package exposure

import (
	"fmt"
	"slices"
	"strings"
)

// strong is a capability that is stronger than a policy.
type strong struct {
	name string
	kind Kind
	can  string // what its programs can do with it
}

func strongCapabilities() []strong {
	return []strong{
		{"CAP_SYS_ADMIN", CapSysAdmin, "overwrite the tables of every policy on this host and mount what they like"},
		{"CAP_BPF", CapBPF, "overwrite the tables of every policy on this host"},
		{"CAP_SYS_MODULE", CapSysModule, "load code into the kernel"},
		{"CAP_SYS_RAWIO", CapSysRawIO, "write to the kernel's memory and to disks"},
		{"CAP_SYS_BOOT", CapSysBoot, "boot another kernel"},
		{"CAP_DAC_READ_SEARCH", CapReadSearch, "open every file of a file system that is mounted in it, by its handle"},
	}
}

func isCapability(kind Kind) bool {
	return kind == CapSysPtrace || slices.ContainsFunc(strongCapabilities(), func(s strong) bool { return s.kind == kind })
}

// StrongCapabilities are the names of those that are judged.
func StrongCapabilities() []string {
	names := []string{capPtrace}
	for _, s := range strongCapabilities() {
		names = append(names, s.name)
	}
	return names
}

const (
	capPtrace = "CAP_SYS_PTRACE"
	capAll    = "ALL"
)

// CapabilityName is a capability's name in capitals with its prefix; ALL stays ALL.
func CapabilityName(name string) string {
	name = strings.ToUpper(name)
	if name == capAll || strings.HasPrefix(name, "CAP_") {
		return name
	}
	return "CAP_" + name
}

// JudgeProcess judges the capabilities of a process that joins a container, which may
// share its process namespace with others.
func JudgeProcess(capabilities []string, sharedPID bool) []Finding {
	var list []Capability
	for _, name := range capabilities {
		list = append(list, Capability{Name: name, At: "capabilities"})
	}
	return Arrange(judgeCapabilities(list, sharedPID))
}

func judgeCapabilities(list []Capability, sharedPID bool) []Finding {
	has := func(name string) (Capability, bool) {
		i := slices.IndexFunc(list, func(c Capability) bool {
			canonical := CapabilityName(c.Name)
			return canonical == name || canonical == capAll
		})
		if i < 0 {
			return Capability{}, false
		}
		return list[i], true
	}
	var found []Finding
	at := ""
	for _, s := range strongCapabilities() {
		if c, ok := has(s.name); ok {
			at = c.At
			short := strings.TrimPrefix(s.name, "CAP_")
			found = append(found, Finding{s.kind, c.At, fmt.Sprintf("it has %s, with which its programs can %s", s.name, s.can),
				fmt.Sprintf("start it without --cap-add %s, or take it away with limits: {capabilities: {drop: [%s]}} in a policy", short, short)})
		}
	}
	// Managers that are older than CAP_BPF do not give it.
	others := slices.DeleteFunc(slices.Clone(found), func(f Finding) bool { return f.Kind == CapBPF })
	if len(others) == len(strongCapabilities())-1 {
		found = append(found, Finding{Privileged, at, "it is privileged: it has every capability", "start it without --privileged"})
	}
	if c, ok := has(capPtrace); ok && sharedPID {
		found = append(found, Finding{CapSysPtrace, c.At,
			"it has CAP_SYS_PTRACE and shares its process namespace, so that its programs can take over processes that are not its own",
			"start it without --cap-add SYS_PTRACE or with a process namespace of its own"})
	}
	return found
}
