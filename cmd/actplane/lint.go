// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/actplane/actplane/compose"
	"github.com/actplane/actplane/internal/exposure"
	"github.com/actplane/actplane/policy"
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/shim/prepare"
)

func lintCommand() *cli.Command {
	return &cli.Command{
		Name:  "lint",
		Usage: "tell which containers would be refused for what they are given",
		Description: "Judges an OCI bundle, or each service of compose files, as the runtime would: what is stronger\n" +
			"than a policy, such as --privileged, Docker's socket or the host's processes, is an error, unless\n" +
			"the host's configuration allows it: then it is a warning. Mounts are judged by what is on this\n" +
			"machine, so run it where the containers will. docs/operations.md lists the codes.\n\n" +
			"With --policy, what the limits of that policy take away counts as not given. A bundle's own\n" +
			"policies count anyway.\n\n" +
			"The exit status is 0 when nothing is an error, 1 when something is, 2 for a wrong command line\n" +
			"and 3 when a file cannot be read.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "bundle", Usage: "judge the OCI bundle in this `DIRECTORY`"},
			&cli.StringSliceFlag{Name: "compose", Aliases: []string{"f"}, Usage: "judge the services of this compose `FILE`; several are read together"},
			&cli.StringSliceFlag{Name: "service", Usage: "judge this `SERVICE` alone"},
			&cli.StringSliceFlag{Name: "policy", Aliases: []string{"p"}, Usage: "count what the limits of this policy `FILE` take away"},
			&cli.StringFlag{Name: "config", Value: hostConfig, Usage: "the host's configuration `FILE`"},
			&cli.StringFlag{Name: "format", Value: "text", Usage: "`FORMAT` of what is reported: text or json"},
		},
		Action: lint,
	}
}

// hostConfig is the host's configuration.
const hostConfig = "/etc/actplane/config.yaml"

// Severities of what lint tells.
const (
	lintError   = "error"
	lintWarning = "warning"
)

// What a compose file alone can have; the codes go on from those of exposure.
const (
	codeNoRuntime  = "S201"
	codeUnconfined = "S202"
	codeUnknown    = "S203"
	codeVariable   = "S204"
)

// lintFinding is one line of lint's.
type lintFinding struct {
	Place    string `json:"place"` // FILE:LINE, or of a bundle FILE: what of it
	Severity string `json:"severity"`
	Code     string `json:"code"`
	Name     string `json:"name"` // as the host allows it; empty where there is nothing to allow
	Service  string `json:"service"`
	Fact     string `json:"fact"`
	Fix      string `json:"fix"`
}

func lint(c *cli.Context) error {
	format := c.String("format")
	files, directory := c.StringSlice("compose"), c.String("bundle")
	switch {
	case format != "text" && format != "json":
		return usageError("lint: --format is text or json, not %q", format)
	case c.Args().Present():
		return usageError("lint: unexpected argument %q; name a bundle with --bundle, or compose files with --compose", c.Args().First())
	case (directory == "") == (len(files) == 0):
		return usageError("lint: name either a bundle with --bundle, or compose files with --compose")
	case directory != "" && c.IsSet("service"):
		return usageError("lint: a bundle has no services")
	}
	limits, err := limitsOf(c)
	if err != nil {
		return err
	}
	var found []lintFinding
	if directory != "" {
		found, err = lintBundle(c.String("config"), directory, limits)
	} else {
		found, err = lintCompose(c, files, limits)
	}
	if err != nil {
		return environmentError("%v", err)
	}
	if err := printLint(c.App.Writer, found, format); err != nil {
		return environmentError("print findings: %v", err)
	}
	if slices.ContainsFunc(found, func(f lintFinding) bool { return f.Severity == lintError }) {
		return &failure{code: exitDiagnostics}
	}
	return nil
}

// limitsOf are those of the policies of --policy.
func limitsOf(c *cli.Context) ([]ir.Limits, error) {
	var limits []ir.Limits
	for _, name := range c.StringSlice("policy") {
		compiled, diags, err := compileFile(c, name, policy.Options{})
		if err != nil {
			return nil, err
		}
		if compiled == nil {
			return nil, &failure{exitDiagnostics, fmt.Sprintf("%s has errors (first: %s); run \"actplane check %[1]s\"", inputName(name), diags.First())}
		}
		limits = append(limits, compiled.Program.Limits)
	}
	return limits, nil
}

func lintBundle(config, directory string, limits []ir.Limits) ([]lintFinding, error) {
	directory, err := filepath.Abs(directory)
	if err != nil {
		return nil, err
	}
	host := prepare.DefaultHost()
	host.Config = config
	refused, allowed, err := host.Lint(prepare.Container{ID: filepath.Base(directory), Bundle: directory}, limits...)
	if err != nil {
		return nil, err
	}
	found := sorted(refused, allowed, "")
	for i := range found {
		found[i].Place = filepath.Join(directory, "config.json") + ": " + found[i].Place
	}
	return found, nil
}

// sorted are findings as lint tells them: what a host refuses, then what it allows.
func sorted(refused, allowed []exposure.Finding, service string) []lintFinding {
	var found []lintFinding
	add := func(f exposure.Finding, severity, fix string) {
		found = append(found, lintFinding{f.At, severity, f.Kind.Code, f.Kind.Name, service, f.Fact, fix})
	}
	for _, f := range refused {
		if f.Kind == exposure.SystemPaths {
			add(f, lintWarning, "none is needed: the runtime protects them, unless the host allows "+f.Kind.Name)
			continue
		}
		add(f, lintError, fmt.Sprintf("%s, or have the host allow it: allow: [%s] in %s", f.Fix, f.Kind.Name, hostConfig))
	}
	for _, f := range allowed {
		add(f, lintWarning, fmt.Sprintf("this host allows it (%s)", f.Kind.Name))
	}
	return found
}

func lintCompose(c *cli.Context, files []string, limits []ir.Limits) ([]lintFinding, error) {
	config, err := prepare.LoadConfig(c.String("config"))
	if err != nil {
		return nil, err
	}
	project, err := compose.Load(c.Context, files, os.Environ())
	if err != nil {
		return nil, err
	}
	services, err := project.Chosen(c.StringSlice("service"))
	if err != nil {
		return nil, err
	}
	var found []lintFinding
	for _, text := range project.Warnings {
		found = append(found, lintFinding{Place: files[0], Severity: lintWarning, Code: codeVariable, Fact: text, Fix: "set it, or write a default into the file"})
	}
	for _, service := range services {
		containers, err := project.Given(service)
		if err != nil {
			return nil, err
		}
		for _, given := range containers {
			refused, allowed, err := prepare.Judge(config, given.Container, limits...)
			if err != nil {
				return nil, err
			}
			found = append(found, sorted(refused, allowed, given.Service)...)
			found = append(found, remarks(given)...)
		}
	}
	return found, nil
}

// remarks are about what is not judged by what it gives.
func remarks(given *compose.Given) []lintFinding {
	var found []lintFinding
	say := func(place, code, fact, fix string) {
		found = append(found, lintFinding{Place: place, Severity: lintWarning, Code: code, Service: given.Service, Fact: fact, Fix: fix})
	}
	if given.Runtime != "actplane" && given.Part == "" && !exposure.IsVM(given.Runtime) {
		what := "Docker's default runtime"
		if given.Runtime != "" {
			what = fmt.Sprintf("the runtime %q", given.Runtime)
		}
		say(given.At, codeNoRuntime, "it is started with "+what+", which puts it under no policy unless that is actplane",
			"write runtime: actplane, or let \"actplane compose\" do it")
	}
	if given.Unconfined != "" {
		say(given.Unconfined, codeUnconfined, "it runs without seccomp's filter, so that its programs can make user namespaces, and use calls that were not tried", "leave it out")
	}
	for _, name := range given.Unknown {
		say(given.At, codeUnknown, fmt.Sprintf("what comes from %q is not known here", name), "look at that container")
	}
	return found
}

// printLint prints findings; in text each is a line with the fix below it.
func printLint(out io.Writer, found []lintFinding, format string) error {
	if format == "json" {
		if found == nil {
			found = []lintFinding{}
		}
		return writeJSON(out, found, "  ")
	}
	for _, f := range found {
		of := ""
		if f.Service != "" {
			of = fmt.Sprintf("service %q: ", f.Service)
		}
		if _, err := fmt.Fprintf(out, "%s: %s[%s]: %s\n  fix: %s\n", clean(f.Place), f.Severity, f.Code, clean(of+f.Fact), clean(f.Fix)); err != nil {
			return err
		}
	}
	return nil
}
