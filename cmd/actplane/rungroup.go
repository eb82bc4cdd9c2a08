// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/actplane/actplane/internal/cgroup"
	"github.com/actplane/actplane/internal/frontend"
)

// group is the transient cgroup of one run.
type group struct {
	dir string
}

// groupParent is below the cgroup v2 mount. Leftovers older than leftoverAge and
// empty are of runs that were killed.
const (
	groupParent = "actplane"
	leftoverAge = time.Minute
	emptyTime   = 10 * time.Second
)

func makeGroup(id string) (*group, error) {
	mounts, err := cgroup.Find("/proc")
	if err != nil {
		return nil, err
	}
	parent := filepath.Join(mounts.Unified, groupParent)
	if err := os.Mkdir(parent, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if leftovers, err := filepath.Glob(filepath.Join(parent, "run-*")); err == nil {
		for _, dir := range leftovers {
			if info, err := os.Stat(dir); err == nil && time.Since(info.ModTime()) > leftoverAge {
				_ = os.Remove(dir) // works on empty ones only
			}
		}
	}
	g := &group{dir: filepath.Join(parent, id)}
	return g, os.Mkdir(g.dir, 0o755)
}

// kill ends what the command left running, and waits until it is gone.
func (g *group) kill() {
	killed := os.WriteFile(filepath.Join(g.dir, "cgroup.kill"), []byte("1"), 0) == nil
	frontend.Poll(context.Background(), emptyTime, func() bool {
		text, err := os.ReadFile(filepath.Join(g.dir, "cgroup.events"))
		if err != nil || !strings.Contains(string(text), "populated 1") {
			return true
		}
		if !killed {
			g.killEach() // before Linux 5.14
		}
		return false
	})
}

func (g *group) killEach() {
	g.walk(func(dir string) {
		text, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil {
			return
		}
		for _, field := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(field); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	})
}

// remove removes the cgroup and those that the command made in it.
func (g *group) remove() {
	g.walk(func(dir string) { _ = os.Remove(dir) })
}

// walk visits the cgroups, inner ones first.
func (g *group) walk(visit func(dir string)) {
	var dirs []string
	_ = filepath.WalkDir(g.dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			dirs = append(dirs, path)
		}
		return nil
	})
	for i := len(dirs) - 1; i >= 0; i-- {
		visit(dirs[i])
	}
}
