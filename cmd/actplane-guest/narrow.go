// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/actplane/actplane/feedback"
)

// Rules that narrow has names for.
const (
	readOnly = `rule read-only:
  block write any
  block append any
  because "This process may read, and change no files: it was made read-only when it was started."
`
	noNetwork = `rule no-network:
  block connect "0.0.0.0/0"
  block connect "[::/0]"
  block bind "0.0.0.0/0"
  block bind "[::/0]"
  because "This process has no network: it was started without one."
`
)

// Exit codes of a command that narrow does not start, as shells have them.
const (
	exitNotExecutable = 126
	exitNotFound      = 127
)

// narrowOptions are narrow's flags.
type narrowOptions struct {
	file                string
	readOnly, noNetwork bool
	container, json     bool
	rules, command      []string
}

// narrow adds rules to the policy, for this process and what it starts or for the whole
// container, and then becomes the command.
func (g guest) narrow(args []string) int {
	o, code, ok := g.narrowFlags(args)
	if !ok {
		return code
	}
	text, err := g.rules(o)
	if err != nil {
		fmt.Fprintf(g.err, "actplane-guest narrow: %s\n", feedback.Printable(err.Error()))
		return exitUsage
	}
	path := ""
	if len(o.command) > 0 { // before the rules, which cannot be taken back
		if path, err = exec.LookPath(o.command[0]); err != nil {
			fmt.Fprintf(g.err, "actplane-guest narrow: %s\n", feedback.Printable(err.Error()))
			return exitNotFound
		}
	}
	request := feedback.NarrowRequest{Policy: text, For: feedback.ForProcess}
	if o.container {
		request.For = feedback.ForContainer
	}
	ctx, cancel := context.WithTimeout(context.Background(), narrowTime)
	defer cancel()
	answer, err := feedback.NewClient(g.socket).Narrow(ctx, request)
	if err != nil {
		return g.notNarrowed(o, err)
	}
	if code := g.tellNarrowed(o, answer); code != exitOK || path == "" {
		return code
	}
	err = g.exec(path, o.command, os.Environ())
	fmt.Fprintf(g.err, "actplane-guest narrow: start %s: %v\n", feedback.Printable(path), err)
	return exitNotExecutable
}

func (g guest) narrowFlags(args []string) (o narrowOptions, code int, ok bool) {
	flags := flag.NewFlagSet("narrow", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.file, "policy", "", "")
	flags.BoolVar(&o.readOnly, "read-only", false, "")
	flags.BoolVar(&o.noNetwork, "no-network", false, "")
	flags.BoolVar(&o.container, "container", false, "")
	flags.BoolVar(&o.json, "json", false, "")
	for i, arg := range args {
		if arg == "--" {
			args, o.command = args[:i], args[i+1:]
			break
		}
	}
	err := flags.Parse(args)
	o.rules = flags.Args()
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(g.out, usage)
		return o, exitOK, false
	case err == nil && o.file == "" && !o.readOnly && !o.noNetwork && len(o.rules) == 0:
		err = errors.New("name rules: --read-only, --no-network, --policy FILE, or rules as arguments")
	case err == nil && o.file != "" && (o.readOnly || o.noNetwork || len(o.rules) > 0):
		err = errors.New("--policy and other rules exclude each other")
	case err == nil && len(o.command) == 0 && !o.container:
		err = errors.New("name the command behind --, or the whole container with --container: what is only for this process ends with it")
	}
	if err != nil {
		fmt.Fprintf(g.err, "actplane-guest narrow: %v\n%s", err, usage)
		return o, exitUsage, false
	}
	return o, exitOK, true
}

// rules is the text that the options stand for.
func (g guest) rules(o narrowOptions) (string, error) {
	if o.file != "" {
		return g.rulesFile(o.file)
	}
	var b strings.Builder
	if o.readOnly {
		b.WriteString(readOnly)
	}
	if o.noNetwork {
		b.WriteString(noNetwork)
	}
	for _, rule := range o.rules {
		b.WriteString(rule + "\n")
	}
	return b.String(), nil
}

// rulesFile reads a file, or standard input for "-".
func (g guest) rulesFile(name string) (string, error) {
	in := g.in
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return "", err
		}
		defer file.Close()
		in = file
	}
	text, err := io.ReadAll(io.LimitReader(in, feedback.MaxRules+1))
	if err == nil && len(text) > feedback.MaxRules {
		err = fmt.Errorf("%s is longer than %d KiB", name, feedback.MaxRules>>10)
	}
	return string(text), err
}

// notNarrowed tells why the rules do not hold. The command is not started: it was to be
// under them.
func (g guest) notNarrowed(o narrowOptions, err error) int {
	var refusal *feedback.Refusal
	if !errors.As(err, &refusal) {
		return g.fail(err)
	}
	if o.json {
		if err := g.printJSON(feedback.Failure{Error: refusal.Sentence, Diagnostics: refusal.Diagnostics}); err != nil {
			return g.fail(err)
		}
	} else {
		fmt.Fprintf(g.err, "actplane-guest narrow: %s\n", feedback.Printable(refusal.Error()))
	}
	if len(refusal.Diagnostics) > 0 {
		return exitNotEnforcing
	}
	return exitEnvironment
}

// tellNarrowed tells what holds now: on standard error where a command follows.
func (g guest) tellNarrowed(o narrowOptions, answer feedback.Narrowed) int {
	if o.json {
		if err := g.printJSON(answer); err != nil {
			return g.fail(err)
		}
		return exitOK
	}
	for _, d := range answer.Warnings {
		fmt.Fprintln(g.err, feedback.Printable(d.String()))
	}
	for _, note := range answer.Notes {
		fmt.Fprintf(g.err, "note: %s\n", feedback.Printable(note))
	}
	if len(o.command) == 0 {
		fmt.Fprintf(g.out, "%s is in force for the whole container (sha256 %s)\n", feedback.Printable(answer.Name), feedback.Printable(answer.SHA256))
	}
	return exitOK
}

// become replaces this program by another.
func become(path string, argv, env []string) error { return syscall.Exec(path, argv, env) }
