// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/actplane/actplane/internal/proc"
)

// TreeDepth finds out for process pid how many ancestors above it the root of
// its tree is: the nearest one that is a program of its own and not a shell or
// another program that only runs its arguments. That is the agent, for a hook as
// well as for a tool that the agent runs, or the whole scope's oldest process.
// It is what Query.Depth wants; -1 if no ancestor can be seen in directory, which
// is proc.Directory but in tests.
//
// Names do for this: whoever forges one gets other items of the same scope.
func TreeDepth(directory string, pid int) int {
	for depth := 1; depth <= maxDepth; depth++ {
		stat, err := proc.ReadStat(directory, pid)
		if err != nil || stat.Parent <= 0 {
			if depth == 1 {
				return -1
			}
			return depth - 1
		}
		if !isWrapper(programOf(directory, stat.Parent)) {
			return depth
		}
		pid = stat.Parent
	}
	return maxDepth
}

// programOf is the base name of a process's program, or, where that may not be
// read, what the process calls itself.
func programOf(directory string, pid int) string {
	directory = filepath.Join(directory, strconv.Itoa(pid))
	if exe, err := os.Readlink(filepath.Join(directory, "exe")); err == nil {
		return filepath.Base(strings.TrimSuffix(exe, " (deleted)"))
	}
	comm, _ := os.ReadFile(filepath.Join(directory, "comm")) // else no wrapper
	return strings.TrimSuffix(string(comm), "\n")
}

func isWrapper(name string) bool {
	return slices.Contains([]string{
		"sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "busybox",
		"env", "timeout", "nice", "nohup", "setsid", "stdbuf", "time", "xargs",
		"sudo", "su", "runuser", "setpriv", "gosu", "actplane-guest",
	}, name)
}
