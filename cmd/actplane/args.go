// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// arrange moves the flags of a command before its other arguments, where the
// command-line package wants them: `check FILE --strict` is `check --strict FILE`.
// What stands behind -- is no flag. Of a command that runs another one, all that
// follows the first other argument is that one's.
func arrange(app *cli.App, args []string) []string {
	if len(args) < 2 {
		return args
	}
	head, rest := args[:1], args[1:]
	commands := app.Commands
	var command *cli.Command
	for len(rest) > 0 {
		found := commandOf(commands, rest[0])
		if found == nil {
			break
		}
		command, commands = found, found.Subcommands
		head, rest = args[:len(head)+1], rest[1:]
	}
	if command == nil || command.SkipFlagParsing || command.Name == runCommandName {
		return args
	}
	flags, others := separate(command, rest)
	if len(others) > 0 {
		flags = append(flags, "--")
	}
	return slices.Concat(head, flags, others)
}

func commandOf(commands []*cli.Command, name string) *cli.Command {
	i := slices.IndexFunc(commands, func(c *cli.Command) bool { return c.HasName(name) })
	if i < 0 {
		return nil
	}
	return commands[i]
}

// separate cuts a command's arguments into flags, with their values, and others.
// An unknown flag counts as one without a value; it is reported when it is parsed.
func separate(command *cli.Command, args []string) (flags, others []string) {
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "--":
			return flags, append(others, args[i+1:]...)
		case len(a) < 2 || a[0] != '-': // - is standard input
			others = append(others, a)
		default:
			flags = append(flags, a)
			if !wantsValue(command, a) {
				continue
			}
			if i++; i == len(args) {
				return flags, nil // an error, whatever the others are
			}
			flags = append(flags, args[i])
		}
	}
	return flags, others
}

// wantsValue tells whether the argument that follows a flag is its value.
func wantsValue(command *cli.Command, flag string) bool {
	name := strings.TrimPrefix(strings.TrimPrefix(flag, "-"), "-")
	for _, f := range command.Flags {
		if d, ok := f.(cli.DocGenerationFlag); ok && slices.Contains(f.Names(), name) {
			return d.TakesValue()
		}
	}
	return false
}
