// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"
	"google.golang.org/grpc/status"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/internal/daemon"
	"github.com/actplane/actplane/internal/version"
	"github.com/actplane/actplane/policy/diag"
)

// The exit codes. Of `actplane run` it is the command's own.
const (
	exitDiagnostics = 1
	exitUsage       = 2
	exitEnvironment = 3
)

// failure is an error with its exit code. An empty text prints nothing: the
// command has said what there is to say.
type failure struct {
	code int
	text string
}

func (f *failure) Error() string { return f.text }

func usageError(format string, args ...any) error {
	return &failure{exitUsage, sentence(format, args)}
}

func environmentError(format string, args ...any) error {
	return &failure{exitEnvironment, sentence(format, args)}
}

// sentence is a formatted text, in which the names of files make no lines.
func sentence(format string, args []any) string {
	for i, x := range args {
		if err, ok := x.(error); ok {
			args[i] = errorText(err)
		}
	}
	return fmt.Sprintf(format, args...)
}

// run is main, and gives the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	out, errs := &harmlessWriter{out: stdout}, &harmlessWriter{out: stderr}
	code := command(args, stdin, out, errs)
	if out.flush() != nil && code == 0 {
		code = exitEnvironment
	}
	_ = errs.flush() // there is nowhere else to tell it
	return code
}

func command(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) > 1 && args[1] == runHelper {
		return runHelperMain(args[2:], stderr)
	}
	app := newApp()
	if len(args) == 2 && args[1] == manHelper {
		if writeManual(stdout, app) != nil {
			return exitEnvironment
		}
		return 0
	}
	if len(args) > 1 && args[1] == completeHelper {
		return completeMain(app, args[2:], stdout)
	}
	app.Reader, app.Writer, app.ErrWriter = stdin, stdout, stderr
	err := app.Run(arrange(app, args))
	if err == nil {
		return 0
	}
	code, text := exitEnvironment, errorText(err)
	var own *failure
	var coder cli.ExitCoder
	switch {
	case errors.As(err, &own):
		code = own.code
	case errors.As(err, &coder):
		code = coder.ExitCode()
	}
	if text != "" {
		fmt.Fprintf(stderr, "actplane: %s\n", cleanLines(text))
	}
	return code
}

func newApp() *cli.App {
	app := &cli.App{
		Name:            "actplane",
		Usage:           "policies for AI-agent containers, enforced in the kernel",
		Version:         version.String(),
		HideHelpCommand: true,
		// The package leaves it out where a command is called help.
		Flags: []cli.Flag{cli.HelpFlag},
		Commands: []*cli.Command{
			initCommand(), checkCommand(), testCommand(), explainCommand(), diffCommand(), replayCommand(),
			fmtCommand(), lintCommand(), composeCommand(), schemaCommand(), compileCommand(), signCommand(), verifyCommand(),
			doctorCommand(), psCommand(), stateCommand(), eventsCommand(), requestsCommand(), approveCommand(), denyCommand(), grantsCommand(), revokeCommand(), lockdownCommand(), unlockCommand(), topCommand(), webCommand(), runCommand(),
			installCommand(), uninstallCommand(), completionCommand(), helpCommand(),
		},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return unknownCommand(c.App, c.Args().First())
			}
			return cli.ShowAppHelp(c)
		},
		// What fails is reported once, by run.
		ExitErrHandler: func(*cli.Context, error) {},
	}
	app.OnUsageError = onUsageError
	for _, command := range app.Commands {
		command.OnUsageError = onUsageError
		command.HideHelpCommand = true
	}
	return app
}

// helpCommand is our own: the package's would be a subcommand of each command, where
// "help" is a file's name.
func helpCommand() *cli.Command {
	return &cli.Command{
		Name:      "help",
		Usage:     "tell of a command",
		ArgsUsage: "[COMMAND]",
		Action: func(c *cli.Context) error {
			switch name := c.Args().First(); {
			case c.NArg() > 1:
				return usageError("help: unexpected argument %q", c.Args().Get(1))
			case name == "":
				return cli.ShowAppHelp(c)
			case commandOf(c.App.Commands, name) == nil:
				return unknownCommand(c.App, name)
			default:
				// The parent's: its commands are those that are looked through.
				return cli.ShowCommandHelp(c.Lineage()[1], name)
			}
		},
	}
}

// unknownCommand is the error of a wrong word, with the right one if it is near.
func unknownCommand(app *cli.App, name string) error {
	var names []string
	for _, command := range app.Commands {
		names = append(names, command.Name)
	}
	if near := diag.Suggest(name, names); near != "" {
		return usageError("%q is not a command; did you mean %q?", name, near)
	}
	return usageError("%q is not a command; see \"actplane --help\"", name)
}

func onUsageError(c *cli.Context, err error, _ bool) error {
	if c.Command != nil && c.Command.Name != "" && c.Command.Name != c.App.Name {
		return usageError("%s: %s; see \"actplane %[1]s --help\"", c.Command.Name, clean(err.Error()))
	}
	return usageError("%s; see \"actplane --help\"", clean(err.Error()))
}

// runDirFlag is for tests, and for hosts with two engines.
func runDirFlag() cli.Flag {
	return &cli.StringFlag{Name: "run-dir", Value: api.Directory, Usage: "the engine's run `DIRECTORY`", Hidden: true}
}

func engineOptions(c *cli.Context) daemon.Options {
	dir := c.String("run-dir")
	if dir == api.Directory {
		return daemon.Options{}
	}
	return daemon.Options{
		Socket: dir + "/engine.sock", Directory: dir, NoSystemd: true,
		Args: []string{"--run-dir", dir},
	}
}

// engine connects to the engine, starting it if need be.
func engine(ctx context.Context, c *cli.Context) (*daemon.Client, error) {
	client, err := daemon.Ensure(ctx, engineOptions(c))
	if err != nil {
		return nil, environmentError("%v", err)
	}
	return client, nil
}

// engineError is what the engine answered, without the protocol's words.
func engineError(err error) error {
	if s, ok := status.FromError(err); ok && s != nil {
		return environmentError("%s", s.Message())
	}
	return environmentError("ask the engine: %v", err)
}
