// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/actplane/actplane/internal/atomicfile"
	"github.com/actplane/actplane/internal/daemon"
)

// requiredPrograms are installed or the installation is refused.
var requiredPrograms = [...]string{"actplane", "actplaned", "actplane-runtime", "actplane-hook", "actplane-guest"}

// optionalPrograms are installed where they were built.
var optionalPrograms = [...]string{"containerd-shim-actplane-v2"}

// setup is one installation or its removal.
type setup struct {
	ctx     context.Context
	out     io.Writer
	prefix  string
	source  string // the folder of the programs to install
	dry     bool
	systemd bool
	restart bool // front ends that read their files only then
	// packaged is set where programs and unit belong to a package of the distribution.
	packaged bool
	engine   daemon.Options
	pinDir   string
	served   []*served
}

func setupFlags() []cli.Flag {
	return append([]cli.Flag{
		&cli.StringFlag{Name: "prefix", Value: "/usr/local", Usage: "the programs go to `DIRECTORY`/bin"},
		&cli.BoolFlag{Name: "no-systemd", Usage: "no unit; the engine is started when it is needed"},
		&cli.BoolFlag{Name: "dry-run", Usage: "say what would be done"},
		&cli.StringFlag{Name: "pin-dir", Value: "/sys/fs/bpf/actplane", Usage: "the engine's `DIRECTORY` of pins", Hidden: true},
		runDirFlag(),
	}, frontEndFlags()...)
}

func newSetup(c *cli.Context) (*setup, error) {
	if c.Args().Present() {
		return nil, usageError("%s: unexpected argument %q", c.Command.Name, c.Args().First())
	}
	prefix, err := filepath.Abs(c.String("prefix"))
	if err != nil {
		return nil, usageError("%v", err)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, environmentError("find this program: %v", err)
	}
	s := &setup{
		ctx: c.Context, out: c.App.Writer, prefix: prefix, source: filepath.Dir(self),
		dry: c.Bool("dry-run"), systemd: !c.Bool("no-systemd") && systemdRuns(), restart: c.Bool("restart"),
		engine: engineOptions(c), pinDir: c.String("pin-dir"),
	}
	if s.packaged = !c.IsSet("prefix") && isPackaged(s.source); s.packaged {
		s.prefix = filepath.Dir(s.source)
	}
	if err := s.checkUser(c); err != nil {
		return nil, err
	}
	s.served = findFrontEnds(c, s.bin(""))
	return s, nil
}

// isPackaged tells whether the programs in a folder came with a package.
func isPackaged(directory string) bool {
	return directory == "/usr/bin" && (exists("/usr/lib/systemd/system/"+daemon.Unit) || exists("/lib/systemd/system/"+daemon.Unit))
}

// checkUser refuses who may not do it before anything is changed. What is not named
// is root's.
func (s *setup) checkUser(c *cli.Context) error {
	own := c.IsSet("prefix") && !s.systemd && frontEndsNamed(c) && (c.Command.Name == installName || c.IsSet("pin-dir"))
	if os.Geteuid() == 0 || s.dry || own {
		return nil
	}
	return environmentError("%s needs root: run \"sudo actplane %[1]s\"; --dry-run tells what it would do", c.Command.Name)
}

func (s *setup) bin(name string) string { return filepath.Join(s.prefix, "bin", name) }

// say tells what is done, or what would be.
func (s *setup) say(format string, args ...any) {
	if s.dry {
		format = "would " + format
	}
	fmt.Fprintln(s.out, clean(fmt.Sprintf(format, args...)))
}

const installName = "install"

func installCommand() *cli.Command {
	return &cli.Command{
		Name:  installName,
		Usage: "install the programs, the engine's unit, and the runtime of Docker, containerd, CRI-O and podman",
		Description: "Of the front ends, those are configured that are here. Docker and podman know the runtime at once;\n" +
			"containerd and CRI-O when they are restarted, which --restart does. Each is tried with a container\n" +
			"that needs no image. All else in the configurations stays as it is. Doing it again is an upgrade.",
		Flags: append(setupFlags(),
			&cli.BoolFlag{Name: "no-verify", Usage: "do not start containers to see whether they are under policy"}),
		Action: install,
	}
}

func install(c *cli.Context) error {
	s, err := newSetup(c)
	if err != nil {
		return err
	}
	// What can be refused is refused before anything is changed.
	if err := s.planFrontEnds(false); err != nil {
		return err
	}
	if !s.packaged {
		changed, err := s.installPrograms()
		if err != nil {
			return err
		}
		if s.systemd {
			if err := s.installUnit(changed); err != nil {
				return err
			}
		}
	}
	if err := s.renewEngine(); err != nil {
		return err
	}
	if err := s.configureFrontEnds(!c.Bool("no-verify")); err != nil {
		return err
	}
	if !s.dry {
		fmt.Fprintln(s.out, "done; \"actplane doctor\" tells whether this host can enforce")
	}
	return nil
}

// installPrograms tells whether the engine's program changed.
func (s *setup) installPrograms() (engineChanged bool, err error) {
	names := append([]string{}, requiredPrograms[:]...)
	for _, name := range optionalPrograms {
		if _, err := os.Stat(filepath.Join(s.source, name)); err == nil {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(s.source, name)); err != nil {
			return false, environmentError("%s is not beside this program in %s; build all of them with \"make\"", name, s.source)
		}
	}
	for _, name := range names {
		changed, err := s.installFile(filepath.Join(s.source, name), s.bin(name))
		if err != nil {
			return false, environmentError("install %s: %v", name, err)
		}
		engineChanged = engineChanged || changed && name == "actplaned"
	}
	return engineChanged, nil
}

func (s *setup) installFile(from, to string) (changed bool, err error) {
	content, err := os.ReadFile(from)
	if err != nil {
		return false, err
	}
	if old, err := os.ReadFile(to); err == nil && bytes.Equal(old, content) {
		return false, nil
	}
	s.say("install %s", to)
	if s.dry {
		return true, nil
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return false, err
	}
	return true, atomicfile.Write(to, content, atomicfile.Options{Mode: 0o755, Sync: true})
}

// renewEngine ends an engine that runs a program which is no longer there, and that no
// unit keeps: what begins a container next starts the new one. What runs stays under
// policy.
func (s *setup) renewEngine() error {
	client, err := daemon.Connect(s.ctx, s.engine)
	if err != nil {
		return nil // none runs, or it is being started anew
	}
	pid := int(client.Status.Pid)
	client.Close()
	path, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil || path != s.bin("actplaned")+" (deleted)" {
		return nil
	}
	if err := s.stopEngine(pid); err != nil || s.dry {
		return err
	}
	client, err = daemon.Ensure(s.ctx, s.engine)
	if err != nil {
		s.say("note that the engine does not start: \"actplane doctor\" tells why")
		return nil
	}
	return client.Close()
}

const verifyTime = 20 * time.Second

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
