// SPDX-License-Identifier: Apache-2.0

package exposure

import (
	"fmt"
	"slices"
	"strings"
)

// MaskedPaths are those that no program of a container may read, and ReadonlyPaths those
// that none may write, by which the kernel is set or its memory read. Container managers
// protect them unless told otherwise.
func MaskedPaths() []string {
	return []string{"/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/sched_debug", "/proc/scsi", "/proc/timer_list", "/sys/firmware"}
}

// ReadonlyPaths: see MaskedPaths.
func ReadonlyPaths() []string {
	return []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
}

// ProtectedPaths are both.
func ProtectedPaths() []string { return append(ReadonlyPaths(), MaskedPaths()...) }

// Open gives those of some paths that are neither masked nor read-only.
func Open(paths, masked, readonly []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(name string) bool {
		protects := func(folder string) bool { return below(name, strings.TrimRight(folder, "/")) && folder != "" }
		return slices.ContainsFunc(masked, protects) || slices.ContainsFunc(readonly, protects)
	})
}

const maxPathsTold = 3

func judgeOpenPaths(open []string, at string) []Finding {
	if len(open) == 0 {
		return nil
	}
	told := strings.Join(open[:min(len(open), maxPathsTold)], ", ")
	if more := len(open) - maxPathsTold; more > 0 {
		told = fmt.Sprintf("%s and %d more", told, more)
	}
	return []Finding{{SystemPaths, at, "its programs can set the kernel and read from it by " + told + ", which are not protected",
		"start it without --security-opt systempaths=unconfined or unmask"}}
}
