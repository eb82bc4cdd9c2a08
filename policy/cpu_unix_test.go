// SPDX-License-Identifier: Apache-2.0

//go:build unix

package policy

import (
	"syscall"
	"time"
)

// cpuTime is what this process has computed: other than the clock it does not
// depend on what else the machine does.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
