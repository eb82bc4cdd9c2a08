// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/actplane/actplane/compose"
	"github.com/actplane/actplane/internal/atomicfile"
	"github.com/actplane/actplane/shim/prepare"
)

func composeCommand() *cli.Command {
	return &cli.Command{
		Name:      "compose",
		Usage:     "write an override file that puts services of compose files under policy",
		ArgsUsage: "FILE…",
		Description: "Writes what has to stand beside compose files so that their services run under ActPlane: the\n" +
			"runtime, and the policy and limits as annotations. The files stay as they are:\n\n" +
			"   actplane compose --service agent --policy-file /workspace/actplane.yaml -o actplane.compose.yaml compose.yaml\n" +
			"   docker compose -f compose.yaml -f actplane.compose.yaml up\n\n" +
			"Compose 1 and Docker before 24 know no annotations: with --labels they are labels, which count as\n" +
			"the container's own, so that they can only add policies and limits. What would be refused by the\n" +
			"runtime is told on standard error, as \"actplane lint\" does.\n\n" +
			"The exit status is 0, 2 for a wrong command line and 3 when a file cannot be read or written.",
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "service", Aliases: []string{"s"}, Usage: "only these `SERVICES`, separated by commas; without it, all"},
			&cli.StringFlag{Name: "policy", Usage: "the host's policy of this `NAME`, in /etc/actplane/policies"},
			&cli.StringFlag{Name: "policy-file", Usage: "the policy at this `PATH` in the container, where it is mounted"},
			&cli.GenericFlag{Name: "limit", Value: &settingLines{}, Usage: "a single limit, as `KEY=VALUE`: pids=512, memory=2GiB, cpus=1.5, capabilities.drop=ALL, capabilities.add=CHOWN, no_new_privileges=true"},
			&cli.GenericFlag{Name: "set", Value: &settingLines{}, Usage: "another setting, as `KEY=VALUE`: workspace=/src, feedback=socket,stderr, agents=auto"},
			&cli.BoolFlag{Name: "labels", Usage: "write labels instead of annotations"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to this `FILE` instead of standard output"},
		},
		Action: writeOverride,
	}
}

// settingLines are values of a flag that may be given several times, commas and all.
type settingLines []string

func (s *settingLines) Set(value string) error { *s = append(*s, value); return nil }
func (s *settingLines) String() string         { return strings.Join(*s, " ") }

func writeOverride(c *cli.Context) error {
	files := c.Args().Slice()
	if len(files) == 0 {
		return usageError("compose: name a compose file, such as compose.yaml")
	}
	settings, err := overrideSettings(c)
	if err != nil {
		return err
	}
	project, err := compose.Load(c.Context, files, os.Environ())
	if err != nil {
		return environmentError("%v", err)
	}
	services, err := project.Chosen(c.StringSlice("service"))
	if err != nil {
		return usageError("compose: %v", err)
	}
	override := &compose.Override{Services: services, Settings: settings, Labels: c.Bool("labels"), Comment: overrideComment(c, files)}
	text, err := project.Write(override)
	if err != nil {
		return environmentError("%v", err)
	}
	for _, doubt := range project.Doubts(override, c.String("policy-file")) {
		fmt.Fprintf(c.App.ErrWriter, "actplane: warning: %s\n", clean(doubt))
	}
	if err := tellRefused(c, project, services); err != nil {
		return environmentError("%v", err)
	}
	if name := c.String("output"); name != "" {
		if err := atomicfile.Write(name, text, atomicfile.Options{Mode: 0o644}); err != nil {
			return environmentError("write override: %v", err)
		}
		return nil
	}
	if _, err := c.App.Writer.Write(text); err != nil {
		return environmentError("print override: %v", err)
	}
	return nil
}

// overrideSettings are what the flags set, checked as the runtime would.
func overrideSettings(c *cli.Context) (map[string]string, error) {
	settings := map[string]string{}
	put := func(flag, key, value string) error {
		if err := prepare.CheckSetting(key, value, c.Bool("labels")); err != nil {
			return usageError("compose: --%s: %v", flag, err)
		}
		if _, twice := settings[prepare.SettingName(key)]; twice {
			return usageError("compose: --%s: %s is set twice", flag, key)
		}
		settings[prepare.SettingName(key)] = value
		return nil
	}
	for _, flag := range []string{"policy", "policy-file"} {
		if !c.IsSet(flag) {
			continue
		}
		if c.String(flag) == "" {
			return nil, usageError("compose: --%s is empty; is a variable empty?", flag)
		}
		if err := put(flag, flag, c.String(flag)); err != nil {
			return nil, err
		}
	}
	for flag, prefix := range map[string]string{"limit": "limits.", "set": ""} {
		lines, _ := c.Generic(flag).(*settingLines)
		if lines == nil {
			continue
		}
		for _, line := range *lines {
			key, value, ok := strings.Cut(line, "=")
			if !ok {
				return nil, usageError("compose: --%s: expected KEY=VALUE, found %q", flag, line)
			}
			if err := put(flag, prefix+key, value); err != nil {
				return nil, err
			}
		}
	}
	return settings, nil
}

func overrideComment(c *cli.Context, files []string) []string {
	own := c.String("output")
	if own == "" {
		own = "THIS-FILE"
	}
	command := "docker compose"
	if c.Bool("labels") {
		command = "docker-compose"
	}
	for _, name := range append(files, own) {
		command += " -f " + clean(filepath.Base(name))
	}
	return []string{"Written by \"actplane compose\". It is read behind the file that it is for:", "", "  " + command + " up"}
}

// tellRefused tells what the runtime would refuse on this host.
func tellRefused(c *cli.Context, project *compose.Project, services []string) error {
	config, err := prepare.LoadConfig(hostConfig)
	if err != nil {
		return err
	}
	for _, service := range services {
		containers, err := project.Given(service)
		if err != nil {
			return err
		}
		for _, given := range containers {
			refused, _, err := prepare.Judge(config, given.Container)
			if err != nil {
				return err
			}
			for _, f := range sorted(refused, nil, service) {
				if f.Severity == lintError {
					fmt.Fprintf(c.App.ErrWriter, "actplane: warning: %s: service %q would not start: %s\n", clean(f.Place), clean(service), clean(f.Fact))
				}
			}
		}
	}
	return nil
}
