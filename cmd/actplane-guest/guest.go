// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/actplane/actplane/feedback"
)

// Exit codes.
const (
	exitOK           = 0
	exitNotEnforcing = 1
	exitUsage        = 2
	exitEnvironment  = 3
)

// requestTime bounds a request that waits for nothing, narrowTime one for which a policy is
// compiled.
const (
	requestTime = 10 * time.Second
	narrowTime  = time.Minute
)

const usage = `usage: actplane-guest COMMAND

  feedback [--all] [--json] [--follow]  what the policy did to this process tree, newest last
  status [--json]                       whether the policy is enforced; exit code 0 if it is
  policy [--json]                       the policy's documents
  check [--json] OPERATION OBJECT [ARG...]
                                        whether it would be allowed, and why not; exit code
                                        0 if it would
  narrow [--read-only] [--no-network] [RULE...] [--json] -- COMMAND...
                                        run a command under more rules, which refuse more
                                        and never less; it is under them when it begins
         [--policy FILE]                of a file, or of standard input for -
         [--container]                  for the whole container; then no command is needed
  mcp                                   serve an agent's client of the Model Context Protocol
                                        on standard input and output
  hook --agent NAME                     answer a coding agent's hook on standard input
  setup --agent NAME[,NAME...]|auto     make coding agents call this program as their hook
        [--mcp]                         and as a server of the Model Context Protocol
        [--print|--remove]              show the files instead, or take all of it out again
        [--root FOLDER]                 of an image that lies there

Exit codes: 0 ok, 1 not enforcing, not allowed, or rules with errors, 2 usage, 3 no answer, or files that
cannot be set up; of narrow the command's own, 126 if it cannot be started, 127 if it is not
found.
A hook always exits with 0.
`

// guest is the program's surroundings.
type guest struct {
	in       io.Reader
	out, err io.Writer
	socket   string
	proc     string // where proc is mounted
	pid      int
	home     string        // the user's
	path     string        // where programs are looked for
	retry    time.Duration // between attempts to reach an engine that went away
	exec     func(path string, argv, env []string) error
}

// run is the whole program; it returns the exit code.
func (g guest) run(args []string) int {
	if len(args) == 0 {
		fmt.Fprint(g.err, usage)
		return exitUsage
	}
	switch args[0] {
	case "feedback":
		return g.feedback(args[1:])
	case "status":
		return g.status(args[1:])
	case "policy":
		return g.policy(args[1:])
	case "narrow":
		return g.narrow(args[1:])
	case "check":
		return g.check(args[1:])
	case "mcp":
		return g.mcp(args[1:])
	case "hook":
		g.hook(args[1:])
		return exitOK
	case "setup":
		return g.setup(args[1:])
	case "help", "-h", "--help":
		fmt.Fprint(g.out, usage)
		return exitOK
	default:
		fmt.Fprintf(g.err, "actplane-guest: unknown command %q\n%s", args[0], usage)
		return exitUsage
	}
}

// parse reads a command's flags. When it returns false, the command is over.
func (g guest) parse(flags *flag.FlagSet, args []string) (code int, ok bool) {
	flags.SetOutput(io.Discard)
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(g.out, usage)
		return exitOK, false
	case err == nil && flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
		fallthrough
	case err != nil:
		fmt.Fprintf(g.err, "actplane-guest %s: %v\n%s", flags.Name(), err, usage)
		return exitUsage, false
	}
	return exitOK, true
}

// fail reports an error of the surroundings.
func (g guest) fail(err error) int {
	fmt.Fprintf(g.err, "actplane-guest: %v\n", err)
	return exitEnvironment
}

func (g guest) status(args []string) int {
	flags := flag.NewFlagSet("status", flag.ContinueOnError)
	asJSON := flags.Bool("json", false, "")
	if code, ok := g.parse(flags, args); !ok {
		return code
	}
	ctx, cancel := context.WithTimeout(context.Background(), requestTime)
	defer cancel()
	status, err := feedback.NewClient(g.socket).Status(ctx)
	if err != nil {
		return g.fail(err)
	}
	if *asJSON {
		err = g.printJSON(status)
	} else {
		_, err = io.WriteString(g.out, feedback.Printable(describe(status)))
	}
	switch {
	case err != nil:
		return g.fail(err)
	case !status.Enforcing:
		return exitNotEnforcing
	}
	return exitOK
}

// describe puts a status into words for people.
func describe(status feedback.Status) string {
	first := "ActPlane enforces a policy here"
	if !status.Enforcing {
		first = "ActPlane does NOT enforce the policy here"
	}
	text := fmt.Sprintf("%s (mode %s, tier %s), since %s.\nscope    %s\n",
		first, status.Mode, status.Tier, status.Since.Format(time.RFC3339), status.ID)
	for _, layer := range status.Layers {
		text += fmt.Sprintf("policy   %s  sha256 %s\n", layer.Name, layer.SHA256)
	}
	text += fmt.Sprintf("so far   %d denied, %d allowed and noted, %d records lost\n",
		status.Denied, status.Notified, status.LostEvents)
	for _, sentence := range status.Degraded {
		text += "degraded " + sentence + "\n"
	}
	for _, sentence := range status.Warnings {
		text += "warning  " + sentence + "\n"
	}
	return text
}

func (g guest) policy(args []string) int {
	flags := flag.NewFlagSet("policy", flag.ContinueOnError)
	asJSON := flags.Bool("json", false, "")
	if code, ok := g.parse(flags, args); !ok {
		return code
	}
	ctx, cancel := context.WithTimeout(context.Background(), requestTime)
	defer cancel()
	policy, err := feedback.NewClient(g.socket).Policy(ctx)
	if err != nil {
		return g.fail(err)
	}
	if *asJSON {
		if err := g.printJSON(policy); err != nil {
			return g.fail(err)
		}
		return exitOK
	}
	for i, document := range policy.Documents {
		if i > 0 {
			fmt.Fprintln(g.out)
		}
		fmt.Fprintf(g.out, "# %s (sha256 %s)\n%s\n", feedback.Printable(document.Name),
			feedback.Printable(document.SHA256), feedback.Printable(document.Text))
	}
	if policy.Cut {
		fmt.Fprintln(g.out, "# The policy is longer than what is shown.")
	}
	return exitOK
}

func (g guest) printJSON(value any) error {
	text, err := feedback.EncodeJSON(value)
	if err != nil {
		return err
	}
	if _, err := g.out.Write(text); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}
