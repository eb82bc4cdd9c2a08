// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/actplane/actplane/internal/daemon"
	"github.com/actplane/actplane/policy/explain"
)

func explainCommand() *cli.Command {
	return &cli.Command{
		Name:      "explain",
		Usage:     "say in plain words what policy files do",
		ArgsUsage: "FILE…",
		Description: "Says of each source, default and clause what it does, to whom, when it does not, and what the\n" +
			"agent is told; and, where the engine runs, what is otherwise on this host. A FILE that is\n" +
			"called - is standard input.\n\n" +
			"With --event it says instead what the policy decides about that event: the clause that decides,\n" +
			"others that match, and of those about the same operation that don't, why not. An event is a line of a policy test, docs/policy-tests.md,\n" +
			"without the verdict; several are acted out in this order, so that what one brings about counts\n" +
			"for the next:\n\n" +
			"   actplane explain --event 'a read .env' --event 'a connect 93.184.216.34:443' actplane.yaml\n\n" +
			"The exit status is 0 whatever the verdict, 1 for errors in a policy, 2 for a wrong command line\n" +
			"or an event that makes no sense, 3 when a file cannot be read.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "format", Value: "text", Usage: "`FORMAT` of the output: text or json"},
			&cli.StringFlag{Name: "workspace", Usage: "the `DIRECTORY` in the container where relative patterns begin, for files that name none"},
			&cli.GenericFlag{Name: "event", Value: &eventLines{}, Usage: "explain what is decided about this `EVENT`, such as 'a exec /usr/bin/git push'"},
			&cli.BoolFlag{Name: "all", Usage: "with --event, show the clauses about other operations and objects too"},
			&cli.StringSliceFlag{Name: "with", Usage: "the processes of the events carry this `LABEL` from their beginning"},
			runDirFlag(),
		},
		Action: explainPolicies,
	}
}

// explained is a file in words.
type explained struct {
	File string `json:"file"`
	*explain.Policy
	Host hostFacts `json:"host"`
}

// hostFacts are what the engine of this host says of it.
type hostFacts struct {
	Known  bool   `json:"known"` // the engine was asked
	Tier   string `json:"tier"`
	Kernel string `json:"kernel"`
	// Problem is why the host cannot enforce, or why nothing is known of it.
	Problem string `json:"problem"`
}

func explainPolicies(c *cli.Context) error {
	format, err := policyFlags(c)
	if err != nil {
		return err
	}
	if err := inputOnce(c); err != nil {
		return err
	}
	policies, err := compileFiles(c)
	if err != nil {
		return err
	}
	if lines, _ := c.Generic("event").(*eventLines); lines != nil && len(*lines) > 0 {
		return explainEvents(c, policies, *lines, format)
	}
	for _, name := range []string{"with", "all"} {
		if c.IsSet(name) {
			return usageError("explain: --%s is about events: name one with --event", name)
		}
	}
	host := askHost(c)
	out := []explained{}
	for i, p := range policies {
		words := explain.Explain(p.Program, p.Unenforced, explain.Host{KilledExec: host.Tier == "fmod_ret"})
		out = append(out, explained{inputName(c.Args().Get(i)), words, host})
	}
	if format == "json" {
		err = writeJSON(c.App.Writer, out, "  ")
	} else {
		err = writePage(c, func(p *page) {
			for i := range out {
				p.blank()
				p.policy(&out[i])
			}
		})
	}
	if err != nil {
		return environmentError("print policy: %v", err)
	}
	return nil
}

// policyFlags reads --format and --workspace, which several commands have, and sees
// that a file is named.
func policyFlags(c *cli.Context) (format string, err error) {
	name := c.Command.Name
	if format = c.String("format"); format != "text" && format != "json" {
		return "", usageError("%s: --format is text or json, not %q", name, format)
	}
	if w := c.String("workspace"); w != "" && w[0] != '/' {
		return "", usageError("%s: --workspace is an absolute path in the container, not %q", name, w)
	}
	if !c.Args().Present() {
		return "", usageError("%s: name a policy file, such as actplane.yaml", name)
	}
	return format, nil
}

// askHost asks the engine if it runs; it starts none.
func askHost(c *cli.Context) hostFacts {
	client, err := daemon.Connect(c.Context, engineOptions(c))
	switch {
	case errors.Is(err, os.ErrPermission):
		return hostFacts{Problem: "only root may ask the engine"}
	case err != nil:
		return hostFacts{Problem: "the engine is not running"}
	}
	defer client.Close()
	return hostFacts{Known: true, Tier: client.Status.Tier, Kernel: client.Status.Kernel, Problem: client.Status.Problem}
}

func (h hostFacts) String() string {
	switch {
	case !h.Known:
		return "This host is not looked at: " + h.Problem + "."
	case h.Problem != "":
		return "This host cannot enforce it: " + strings.TrimRight(h.Problem, ".") + "."
	case h.Tier == "lsm":
		return fmt.Sprintf("On this host (kernel %s, tier lsm) what is enforced is enforced as it says.", h.Kernel)
	}
	return fmt.Sprintf("On this host (kernel %s, tier %s) it is enforced as it says, but where a note says otherwise.", h.Kernel, h.Tier)
}

// policy writes one file in words.
func (p *page) policy(e *explained) {
	p.line("%s: %s, %s. Relative patterns begin in %s.", e.File, count(len(e.Rules), "rule"), count(e.clauses(), "clause"), e.Workspace)
	for _, l := range e.Domains {
		p.line("Of %s the domain %s holds.", l.Name, l.Domain)
	}
	if n := e.Unenforced(); n > 0 {
		p.line("This version does not enforce %s of it, and refuses to start a container with it.", count(n, "statement"))
	}
	p.line("%s", e.Host)
	p.statements("Labels", e.Labels)
	p.statements("When no rule speaks", e.Defaults)
	for i := range e.Rules {
		r := &e.Rules[i]
		p.statements("Rule "+r.Name, r.Clauses)
		if r.Tells() {
			p.text(toldIndent, "The agent is told: %s", r.ToldText())
		}
	}
	p.statements("Protected", e.Protects)
	if len(e.Limits) > 0 {
		p.blank()
		p.line("The container")
		for _, l := range e.Limits {
			p.text(toldIndent, "%s", l)
		}
	}
}

func (e *explained) clauses() int {
	n := 0
	for _, r := range e.Rules {
		n += len(r.Clauses)
	}
	return n
}

const toldIndent = "      "

// statements writes statements below a heading, with the numbers of their lines.
func (p *page) statements(heading string, list []explain.Statement) {
	if len(list) == 0 {
		return
	}
	p.blank()
	p.line("%s", heading)
	for _, s := range list {
		p.hanging(fmt.Sprintf("%4s  ", lineOfPosition(s.Position)), "%s", s.Meaning)
		switch len(s.Unless) {
		case 0:
		case 1:
			p.text(toldIndent, "Not if %s.", s.Unless[0])
		default:
			p.text(toldIndent, "Not if one of these holds:")
			for _, u := range s.Unless {
				p.hanging(toldIndent+"- ", "%s", u)
			}
		}
		for _, n := range s.Notes {
			p.hanging(toldIndent+"! ", "%s", n)
		}
	}
}

// lineOfPosition returns the line of file:line:col, "" without one.
func lineOfPosition(pos string) string {
	parts := strings.Split(pos, ":")
	if len(parts) < 3 {
		return ""
	}
	return parts[len(parts)-2]
}
