// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/actplane/actplane/engine/api"
)

// defaultGrant is how long a grant holds unless it is said: as the language has it.
const defaultGrant = 10 * time.Minute

// theOperation is what an answer is for.
const theOperation = "An answer is for the very same operation only: the rule, what is done to what, the arguments, the file as\n" +
	"it is now, the working directory, the user and, of a program that runs, its environment."

func approveCommand() *cli.Command {
	return &cli.Command{
		Name:      "approve",
		Usage:     "approve a request",
		ArgsUsage: "REQUEST",
		Description: theOperation + "\nWithout a flag it is approved for 10 minutes. A process that is stopped for it goes on by itself;\n" +
			"another operation succeeds when it is tried again. \"actplane grants\" lists what is approved, \"actplane\n" +
			"revoke\" takes it back.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "once", Usage: "one operation, whenever it comes, or with --for within that time"},
			&cli.DurationFlag{Name: "for", Usage: "all such operations for a `TIME`, such as 10m or 2h"},
			&cli.BoolFlag{Name: "scope-lifetime", Usage: "all such operations as long as the container lives"},
			formatFlag(),
			runDirFlag(),
		},
		Action: approve,
	}
}

func denyCommand() *cli.Command {
	return &cli.Command{
		Name:      "deny",
		Usage:     "deny a request, or take an approval back",
		ArgsUsage: "REQUEST",
		Description: theOperation + "\nUntil the denial is over, without --for as long as the container lives, it is blocked with the reason.\n" +
			"A process that is stopped for it goes on, and the operation fails.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "because", Usage: "the `REASON`, which the agent gets to read"},
			&cli.DurationFlag{Name: "for", Usage: "deny all such operations for a `TIME`, such as 10m or 2h"},
			formatFlag(),
			runDirFlag(),
		},
		Action: deny,
	}
}

func approve(c *cli.Context) error {
	if c.Bool("scope-lifetime") && (c.IsSet("once") || c.IsSet("for")) {
		return usageError("approve: --scope-lifetime excludes --once and --for")
	}
	request := &api.AnswerRequest{ScopeLifetime: c.Bool("scope-lifetime")}
	if c.Bool("once") {
		request.Count = 1
	}
	if c.IsSet("for") || !c.Bool("once") && !request.ScopeLifetime {
		during := defaultGrant
		if c.IsSet("for") {
			during = c.Duration("for")
		}
		if during < time.Second {
			return usageError("approve: --for %v is too short; write hours, minutes and seconds, such as 10m", during)
		}
		request.ForMs = during.Milliseconds()
	}
	return answer(c, request)
}

func deny(c *cli.Context) error {
	request := &api.AnswerRequest{Denied: true, Because: c.String("because"), ScopeLifetime: !c.IsSet("for")}
	if c.IsSet("for") {
		if c.Duration("for") < time.Second {
			return usageError("deny: --for %v is too short; write hours, minutes and seconds, such as 10m", c.Duration("for"))
		}
		request.ForMs = c.Duration("for").Milliseconds()
	}
	return answer(c, request)
}

func answer(c *cli.Context, request *api.AnswerRequest) error {
	if c.NArg() != 1 {
		return usageError("%s: name one request; \"actplane requests\" lists them", c.Command.Name)
	}
	format, err := formatOf(c)
	if err != nil {
		return err
	}
	request.Id, request.By = c.Args().First(), whoAnswers()
	client, err := engine(c.Context, c)
	if err != nil {
		return err
	}
	defer client.Close()
	r, err := client.Answer(c.Context, request)
	if err != nil {
		return engineError(err)
	}
	return writeRequest(c.App.Writer, r, format)
}

// whoAnswers is the person behind this process: who called sudo, or else who logged in,
// or else who it runs as. The engine's socket is root's, and takes root's word.
func whoAnswers() *api.Operator {
	uid, err := strconv.ParseUint(os.Getenv("SUDO_UID"), 10, 32)
	if err != nil {
		text, readErr := os.ReadFile("/proc/self/loginuid")
		uid, err = strconv.ParseUint(strings.TrimSpace(string(text)), 10, 32)
		if readErr != nil || err != nil || uid == 1<<32-1 { // nobody logged in
			uid = uint64(os.Getuid())
		}
	}
	by := &api.Operator{Uid: uint32(uid), Via: "cli"}
	if known, err := user.LookupId(strconv.FormatUint(uid, 10)); err == nil {
		by.Name = known.Username
	}
	return by
}
