// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/internal/frontend"
	"github.com/actplane/actplane/packaging"
)

// frontEndFiles are the flags by which front ends are found.
func frontEndFiles() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "docker-config", Value: frontend.DockerConfig, Usage: "Docker's configuration `FILE`"},
		&cli.StringFlag{Name: "containerd-config", Value: frontend.ContainerdConfig, Usage: "containerd's configuration `FILE`; naming it says that its CRI is used"},
	}
}

func frontEndFlags() []cli.Flag {
	return append(frontEndFiles(),
		&cli.BoolFlag{Name: "no-docker", Usage: "leave Docker alone"},
		&cli.BoolFlag{Name: "no-containerd", Usage: "leave containerd alone"},
		&cli.BoolFlag{Name: "no-crio", Usage: "leave CRI-O alone"},
		&cli.BoolFlag{Name: "no-podman", Usage: "leave podman alone"},
		&cli.BoolFlag{Name: "restart", Usage: "restart containerd and CRI-O where they need it; containers go on meanwhile"},
	)
}

// frontEndsNamed tells whether each front end's files were named, or it is left alone.
func frontEndsNamed(c *cli.Context) bool {
	return (c.Bool("no-docker") || c.IsSet("docker-config")) && (c.Bool("no-containerd") || c.IsSet("containerd-config")) &&
		c.Bool("no-crio") && c.Bool("no-podman")
}

// frontEnds are those that are not to be left alone.
func frontEnds(c *cli.Context, bin string) []frontend.FrontEnd {
	programs := frontend.Programs{Directory: bin, Hook: packaging.Hook}
	if self, err := os.Executable(); err == nil {
		programs.Source = filepath.Dir(self)
	}
	probe := frontend.Probe{Able: ableOnce()}
	var all []frontend.FrontEnd
	if !c.Bool("no-docker") {
		all = append(all, &frontend.Docker{Programs: programs, Config: pathOf(c, "docker-config", frontend.DockerConfig), Named: c.IsSet("docker-config"), Probe: probe})
	}
	if !c.Bool("no-containerd") {
		all = append(all, &frontend.Containerd{Programs: programs, Config: pathOf(c, "containerd-config", frontend.ContainerdConfig), Named: c.IsSet("containerd-config"), Probe: probe})
	}
	if !c.Bool("no-crio") {
		all = append(all, &frontend.CRIO{Programs: programs, Config: frontend.CRIOConfig})
	}
	if !c.Bool("no-podman") {
		all = append(all, &frontend.Podman{Programs: programs, Config: frontend.PodmanConfig, Probe: probe})
	}
	return all
}

func pathOf(c *cli.Context, flag, standard string) string {
	if path := c.String(flag); path != "" {
		return path
	}
	return standard
}

// ableOnce tries once whether this host can enforce.
func ableOnce() func(context.Context) error {
	var once sync.Once
	var err error
	return func(ctx context.Context) error {
		once.Do(func() {
			ctx, cancel := context.WithTimeout(ctx, probeTime)
			defer cancel()
			_, err = kernel.Probe(ctx)
		})
		return err
	}
}

// served is a front end that is here.
type served struct {
	frontend.FrontEnd
	state frontend.State
	edits []*frontend.Edit
}

func findFrontEnds(c *cli.Context, bin string) []*served {
	var all []*served
	for _, f := range frontEnds(c, bin) {
		if state := f.Look(c.Context); state.Here {
			all = append(all, &served{FrontEnd: f, state: state})
		}
	}
	return all
}

// planFrontEnds makes the edits of all, and leaves out those that need or can have none.
func (s *setup) planFrontEnds(remove bool) error {
	var planned []*served
	unfit := 0
	for _, f := range s.served {
		why, remedy := f.state.Needless, f.state.Hint
		if f.state.Unfit != "" {
			why, remedy = f.state.Unfit, f.state.Remedy
			unfit++
		}
		if why != "" && !remove {
			fmt.Fprintf(s.out, "%s is left as it is: %s\n   %s\n", f.Name(), clean(why), clean(remedy))
			continue
		}
		var err error
		if f.edits, err = f.Plan(s.ctx, remove); err != nil {
			return environmentError("%v", err)
		}
		for _, e := range f.edits {
			if err := e.Check(); err != nil && !s.dry {
				return environmentError("%s: %v; nothing was changed", f.Name(), err)
			}
		}
		planned = append(planned, f)
	}
	if !remove && len(planned) == 0 && unfit > 0 {
		return environmentError("no front end on this host can have the runtime; nothing was installed")
	}
	if !remove && len(s.served) == 0 {
		fmt.Fprintln(s.out, "neither Docker, containerd, CRI-O nor podman is here; run \"actplane install\" again once one is")
	}
	s.served = planned
	return nil
}

// applyFrontEnd makes the edits of one, or shows them.
func (s *setup) applyFrontEnd(f *served) error {
	for _, e := range f.edits {
		switch {
		case !e.Changes():
		case e.After == nil:
			s.say("remove %s", e.Path)
		case s.dry:
			fmt.Fprintf(s.out, "would change %s to\n%s", clean(e.Path), cleanLines(string(e.After)))
		default:
			fmt.Fprintf(s.out, "change %s\n", clean(e.Path))
		}
	}
	if s.dry {
		return nil
	}
	return f.Apply(s.ctx, f.edits)
}

// configureFrontEnds brings the runtime in everywhere, and says of each what became of it.
// What fails for one does not keep it from the others.
func (s *setup) configureFrontEnds(try bool) error {
	var failed []string
	for _, f := range s.served {
		err := s.applyFrontEnd(f)
		if err == nil && !s.dry {
			err = s.settleFrontEnd(f, try)
		}
		if err != nil {
			failed = append(failed, fmt.Sprintf("%s: %s", f.Name(), errorText(err)))
		}
	}
	if len(failed) > 0 {
		return environmentError("%s", strings.Join(failed, "\n"))
	}
	return nil
}

func (s *setup) settleFrontEnd(f *served, try bool) error {
	told, err := f.Settle(s.ctx, true, s.restart)
	if err != nil {
		return err
	}
	fmt.Fprintln(s.out, clean(told))
	if !try {
		return nil
	}
	err = f.Try(s.ctx)
	var untried *frontend.UntriedError
	switch {
	case errors.As(err, &untried):
		fmt.Fprintf(s.out, "%s was not tried with a container: %s\n", f.Name(), clean(untried.Error()))
		return nil
	case err != nil:
		return fmt.Errorf("a container under policy was tried, and did not start: %w", err)
	}
	fmt.Fprintf(s.out, "%s started a container, and its policy is enforced\n", f.Name())
	return nil
}

// releaseFrontEnds takes the runtime out everywhere. A front end that keeps it until it is
// restarted is said to, and no reason to stop.
func (s *setup) releaseFrontEnds() error {
	for _, f := range s.served {
		changes := false
		for _, e := range f.edits {
			changes = changes || e.Changes()
		}
		err := s.applyFrontEnd(f)
		var late *frontend.LateError
		if err != nil && !errors.As(err, &late) {
			return environmentError("%v", err)
		}
		if s.dry || !changes {
			continue
		}
		for _, e := range f.edits {
			if left := e.Left(); left != "" {
				fmt.Fprintf(s.out, "%s is left: %s was changed since it was made\n", clean(left), clean(e.Path))
			}
		}
		told := ""
		if err == nil {
			told, err = f.Settle(s.ctx, false, s.restart)
		}
		if err != nil {
			told = "note: " + err.Error()
		}
		fmt.Fprintln(s.out, clean(told))
	}
	return nil
}
