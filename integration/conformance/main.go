// SPDX-License-Identifier: Apache-2.0

// Conformance acts out the cases of files in real containers on the real engine,
// and compares what the kernel did with the verdicts that the cases state.
//
//	conformance pack FILE…          writes a plan to standard output: the cases,
//	                                compiled, with the policies that they name
//	conformance run [OPTION…] ACTOR PLAN
//	                                acts a plan out, and prints a line a case
//
//	conformance trials SEED COUNT…  writes random cases to standard output, compiled
//	conformance random ACTOR TRIALS acts them out, in containers without a runtime
//
// With -expect FILE the results other than "ok" must be those that FILE lists.
// -scenario prints them as scenarios do. With -keep another container lives all the
// time, under a policy that needs every hook, which saves half of the time; without,
// each case is alone on the host, with no hook attached that it does not need itself.
//
// Packing needs nothing and finds the mistakes of a file; running needs root, the
// installed product, runc and a kernel that enforces.
//
// Each case is a container of its own, made by actplane-runtime and runc from a
// bundle: an overlay whose files are made before it starts, a network namespace
// where all addresses are local, and in place of every program the actor (see
// actor/), which does what it is told over a socket. What is told comes from here,
// from outside of the scope.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Exit statuses.
const (
	exitFailed  = 1 // a case failed
	exitUsage   = 2 // wrong command line, or a file that is not valid
	exitMachine = 3 // the cases could not be acted out at all
)

// errFailed ends a run in which a case failed; it has been told.
var errFailed = errors.New("a case failed")

// usageError is a mistake of the caller's.
type usageError struct{ error }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout)
	var usage usageError
	switch {
	case err == nil:
	case errors.Is(err, errFailed):
		os.Exit(exitFailed)
	case errors.As(err, &usage):
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(exitUsage)
	default:
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(exitMachine)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) >= 2 && args[0] == "pack" {
		return pack(args[1:], out)
	}
	if len(args) > 0 && args[0] == "trials" {
		seeds, err := seedsOf(args[1:])
		if err != nil {
			return usageError{err}
		}
		return writeTrials(seeds, out)
	}
	if len(args) == 3 && args[0] == "random" {
		return randomly(ctx, args[1], args[2], out)
	}
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	expect := flags.String("expect", "", "")
	scenario := flags.Bool("scenario", false, "")
	keep := flags.Bool("keep", false, "")
	if len(args) == 0 || args[0] != "run" || flags.Parse(args[1:]) != nil || flags.NArg() != 2 {
		return usageError{errors.New("usage: conformance pack FILE…, or conformance run [-expect FILE] [-scenario] [-keep] ACTOR PLAN, or conformance trials SEED COUNT…, or conformance random ACTOR TRIALS")}
	}
	p, err := readPlan(flags.Arg(1))
	if err != nil {
		return err
	}
	report := &report{out: out, scenario: *scenario}
	if *expect != "" {
		if report.expected, err = readExpected(*expect); err != nil {
			return err
		}
	}
	return actOut(ctx, p, flags.Arg(0), *keep, report)
}
