// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/actplane/actplane/internal/approval"
	"github.com/actplane/actplane/internal/daemon"
	"github.com/actplane/actplane/internal/version"
	"github.com/actplane/actplane/shim/prepare"
)

func doctorCommand() *cli.Command {
	return &cli.Command{
		Name:  "doctor",
		Usage: "tell whether this host can enforce, and what to do if not",
		Description: "Looks at the kernel, at ActPlane's programs and engine, and at Docker, containerd, CRI-O and podman,\n" +
			"and says what helps where something is not as it should be. It changes nothing; as root it tries\n" +
			"whether a denial happens. Exit codes: 0 if the host can enforce, also with warnings; 3 if it cannot,\n" +
			"which the lines with FAIL tell.",
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "json", Usage: "one JSON object: version, able, findings (each with verdict, subject, fact, remedy)"},
		}, append(frontEndFiles(), runDirFlag())...),
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usageError("doctor: unexpected argument %q", c.Args().First())
			}
			return doctor(c)
		},
	}
}

// finding is one line of the doctor's.
type finding struct {
	Verdict string `json:"verdict"` // ok, warn or FAIL
	Subject string `json:"subject"`
	Fact    string `json:"fact"`
	Remedy  string `json:"remedy"` // what to do, or how it is used; empty when there is nothing to say
}

const (
	good = "ok"
	warn = "warn"
	bad  = "FAIL" // the host cannot enforce
)

// reportVersion is that of what --json prints. Fields may be added without a new one.
const reportVersion = 1

// report is what --json prints.
type report struct {
	Version  int       `json:"version"`
	Able     bool      `json:"able"` // nothing is FAIL
	Findings []finding `json:"findings"`
}

const probeTime = time.Minute

func doctor(c *cli.Context) error {
	r := report{Version: reportVersion, Able: true}
	for _, check := range []func(*cli.Context) []finding{
		one(checkKernel), one(checkBTF), one(checkLSM), checkCgroup, one(checkBPFFS), one(checkTier),
		one(checkConfig), one(checkEngine), checkPrograms, one(checkGuest), one(checkNextRuntime), checkFrontEnds,
	} {
		r.Findings = append(r.Findings, check(c)...)
	}
	for _, f := range r.Findings {
		r.Able = r.Able && f.Verdict != bad
	}
	if err := r.write(c); err != nil {
		return err
	}
	if !r.Able {
		return &failure{exitEnvironment, "this host cannot enforce policies yet; see the lines with FAIL"}
	}
	return nil
}

// one makes a list of a check's finding.
func one(check func(*cli.Context) finding) func(*cli.Context) []finding {
	return func(c *cli.Context) []finding { return []finding{check(c)} }
}

func (r report) write(c *cli.Context) error {
	if c.Bool("json") {
		if err := writeJSON(c.App.Writer, r, "  "); err != nil {
			return err
		}
		_, err := fmt.Fprintln(c.App.Writer)
		return err
	}
	for _, f := range r.Findings {
		fmt.Fprintf(c.App.Writer, "%-4s  %-10s  %s\n", f.Verdict, f.Subject, clean(f.Fact))
		if f.Remedy != "" {
			fmt.Fprintf(c.App.Writer, "%18s-> %s\n", "", clean(f.Remedy))
		}
	}
	return nil
}

// checkConfig looks at the host's configuration, and at the programs and secrets in it.
func checkConfig(*cli.Context) finding {
	path := prepare.DefaultHost().Config
	config, err := prepare.LoadConfig(path)
	if errors.Is(err, os.ErrPermission) {
		return finding{warn, "config", "only root may read " + path, "sudo actplane doctor"}
	}
	if err == nil && os.Geteuid() == 0 {
		err = approval.CheckHost(config.Approvers, config.Notifications)
	}
	if err != nil {
		return finding{bad, "config", err.Error(), "mend " + path + "; until then no container starts under policy"}
	}
	return finding{good, "config", fmt.Sprintf("%s: %d approvers, %d notifications", path, len(config.Approvers), len(config.Notifications)), ""}
}

func checkEngine(c *cli.Context) finding {
	client, err := daemon.Connect(c.Context, engineOptions(c))
	if errors.Is(err, os.ErrPermission) {
		return finding{warn, "engine", "only root may ask it", "sudo actplane doctor"}
	}
	if err != nil {
		return finding{warn, "engine", "it is not running", "it is started with the first container, or: systemctl start actplaned"}
	}
	defer client.Close()
	status := client.Status
	if status.Problem != "" {
		return finding{bad, "engine", status.Problem, ""}
	}
	if len(status.Degraded) > 0 {
		return finding{warn, "engine", strings.Join(status.Degraded, "; "), ""}
	}
	if len(status.Notices) > 0 {
		return finding{warn, "engine", strings.Join(status.Notices, "; "), "look at the receivers and the configuration; people may not know of requests: actplane requests"}
	}
	if status.Version != version.String() {
		return finding{warn, "engine", fmt.Sprintf("process %d is of version %s, this program of %s", status.Pid, status.Version, version.String()), "systemctl restart actplaned; what runs stays under policy"}
	}
	return finding{good, "engine", fmt.Sprintf("process %d, version %s, tier %s, %d under policy", status.Pid, status.Version, status.Tier, status.Scopes), ""}
}
