// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/engine/state"
	"github.com/actplane/actplane/internal/daemon"
	"github.com/actplane/actplane/internal/frontend"
)

func uninstallCommand() *cli.Command {
	return &cli.Command{
		Name:  "uninstall",
		Usage: "undo install: runtime, unit, engine, what is pinned in the kernel, programs",
		Description: "Refused while anything is under policy. What others wrote in the configurations stays, and so does\n" +
			"/etc/actplane. Programs of a package go with it: apt-get remove actplane.",
		Flags: append(setupFlags(),
			&cli.BoolFlag{Name: "package-removal", Usage: "of the package's scripts: leave its programs and unit, and what is kept of containers", Hidden: true},
			&cli.BoolFlag{Name: "force", Usage: "also while containers run under policy, which they then lose"}),
		Action: uninstall,
	}
}

func uninstall(c *cli.Context) error {
	s, err := newSetup(c)
	if err != nil {
		return err
	}
	if s.packaged && !c.Bool("package-removal") {
		return environmentError("these programs belong to a package, and go with it: apt-get remove actplane")
	}
	if err := s.planFrontEnds(true); err != nil {
		return err
	}
	pid, err := s.checkIdle(c.Bool("force"))
	if err != nil {
		return err
	}
	if err := s.releaseFrontEnds(); err != nil {
		return err
	}
	if s.systemd {
		if err := s.removeUnit(); err != nil {
			return err
		}
	}
	if err := s.stopEngine(pid); err != nil {
		return err
	}
	if err := s.removePins(); err != nil {
		return err
	}
	if s.packaged {
		return nil
	}
	return s.removePrograms()
}

// checkIdle refuses while something is under policy, and gives the engine's
// process id, 0 if it does not run.
func (s *setup) checkIdle(force bool) (pid int, err error) {
	var names []string
	client, err := daemon.Connect(s.ctx, s.engine)
	if err == nil {
		defer client.Close()
		pid = int(client.Status.Pid)
		response, err := client.List(s.ctx, &api.ListRequest{})
		if err != nil {
			return 0, engineError(err)
		}
		for _, scope := range response.Scopes {
			if scope.State != "closed" {
				names = append(names, clean(short(scope.Id)))
			}
		}
	} else if entries, err := os.ReadDir(filepath.Join(s.runDir(), "scopes")); err == nil {
		for _, entry := range entries {
			names = append(names, clean(short(entry.Name())))
		}
	}
	if len(names) == 0 || force {
		return pid, nil
	}
	return 0, environmentError("%d under policy (%s): stop them first, or take their policy away with --force", len(names), strings.Join(names, ", "))
}

func (s *setup) runDir() string {
	if s.engine.Directory == "" {
		return api.Directory
	}
	return s.engine.Directory
}

// stopEngine ends a daemon that no unit keeps.
func (s *setup) stopEngine(pid int) error {
	running := func() bool { return pid > 1 && syscall.Kill(pid, 0) == nil }
	if !running() {
		return nil
	}
	s.say("stop the engine, process %d", pid)
	if s.dry {
		return nil
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return environmentError("stop the engine: %v", err)
	}
	if !frontend.Poll(s.ctx, verifyTime, func() bool { return !running() }) {
		return environmentError("the engine, process %d, does not end", pid)
	}
	return nil
}

func (s *setup) removePins() error {
	if exists(s.pinDir) {
		s.say("remove %s", s.pinDir)
		if !s.dry {
			if err := kernel.Uninstall(s.pinDir); err != nil {
				return environmentError("remove what is pinned in the kernel: %v", err)
			}
		}
	}
	if s.engine.Directory == "" && exists(stateParent) && !s.packaged {
		s.say("remove %s", stateParent)
		if !s.dry {
			if err := os.RemoveAll(stateParent); err != nil {
				return environmentError("remove what is kept of stopped containers: %v", err)
			}
		}
	}
	if !exists(s.runDir()) {
		return nil
	}
	s.say("remove %s", s.runDir())
	if s.dry {
		return nil
	}
	if err := os.RemoveAll(s.runDir()); err != nil {
		return environmentError("remove the run directory: %v", err)
	}
	return nil
}

// stateParent holds what the engine keeps of stopped containers.
var stateParent = filepath.Dir(state.Directory)

func (s *setup) removePrograms() error {
	for _, name := range append(requiredPrograms[:], optionalPrograms[:]...) {
		path := s.bin(name)
		if !exists(path) {
			continue
		}
		s.say("remove %s", path)
		if s.dry {
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return environmentError("remove program: %v", err)
		}
	}
	if exists("/etc/actplane") {
		fmt.Fprintln(s.out, "/etc/actplane is left: it is yours")
	}
	return nil
}
