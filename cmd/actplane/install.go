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
	ctx      context.Context
	out      io.Writer
	prefix   string
	source   string // the folder of the programs to install
	docker   dockerSetup
	dry      bool
	systemd  bool
	engine   daemon.Options
	pinDir   string
	attended bool // Docker's configuration was named, or Docker is here
}

func setupFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "prefix", Value: "/usr/local", Usage: "the programs go to `DIRECTORY`/bin"},
		&cli.StringFlag{Name: "docker-config", Value: "/etc/docker/daemon.json", Usage: "Docker's configuration `FILE`"},
		&cli.BoolFlag{Name: "no-docker", Usage: "leave Docker alone"},
		&cli.BoolFlag{Name: "no-systemd", Usage: "no unit; the engine is started when it is needed"},
		&cli.BoolFlag{Name: "dry-run", Usage: "say what would be done"},
		&cli.StringFlag{Name: "pin-dir", Value: "/sys/fs/bpf/actplane", Usage: "the engine's `DIRECTORY` of pins", Hidden: true},
		runDirFlag(),
	}
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
		dry: c.Bool("dry-run"), systemd: !c.Bool("no-systemd") && systemdRuns(),
		engine: engineOptions(c), pinDir: c.String("pin-dir"),
	}
	s.docker = dockerSetup{ctx: c.Context, out: s.out, dry: s.dry, file: c.String("docker-config")}
	s.attended = !c.Bool("no-docker") && (c.IsSet("docker-config") || s.docker.present())
	return s, s.checkUser(c)
}

// checkUser refuses who may not do it before anything is changed. What is not named
// is root's.
func (s *setup) checkUser(c *cli.Context) error {
	own := c.IsSet("prefix") && !s.systemd && (!s.attended || c.IsSet("docker-config")) &&
		(c.Command.Name == installName || c.IsSet("pin-dir"))
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
		Name:   installName,
		Usage:  "install the programs, the engine's unit and the Docker runtime",
		Flags:  setupFlags(),
		Action: install,
	}
}

func install(c *cli.Context) error {
	s, err := newSetup(c)
	if err != nil {
		return err
	}
	// What can be refused is refused before anything is changed.
	var edited *edit
	if s.attended {
		if edited, err = s.docker.plan(func(text []byte) ([]byte, error) { return addRuntime(text, s.bin(runtimeProgram)) }); err != nil {
			return err
		}
	}
	changed, err := s.installPrograms()
	if err != nil {
		return err
	}
	if s.systemd {
		if err := s.installUnit(changed); err != nil {
			return err
		}
	}
	switch {
	case edited != nil:
		if err := s.docker.apply(edited); err != nil {
			return err
		}
		if err := s.docker.verify(true); err != nil {
			return err
		}
	case !c.Bool("no-docker"):
		fmt.Fprintln(s.out, "Docker is not installed here; run \"actplane install\" again once it is")
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

const verifyTime = 20 * time.Second

// poll asks until the answer is yes, or the time is up.
func poll(ctx context.Context, limit time.Duration, yes func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for !yes() {
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
	}
	return true
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
