// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"fmt"

	"github.com/urfave/cli/v2"
)

// The scripts ask this program for words (completeHelper) and know nothing of its
// commands.
var (
	//go:embed completion/actplane.bash
	bashCompletion string
	//go:embed completion/actplane.zsh
	zshCompletion string
	//go:embed completion/actplane.fish
	fishCompletion string
)

// shells are those that there are scripts for.
func shells() []candidate {
	return []candidate{{"bash", bashCompletion}, {"zsh", zshCompletion}, {"fish", fishCompletion}}
}

func completionCommand() *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print the script by which a shell completes commands, flags and files",
		ArgsUsage: "SHELL",
		Description: "SHELL is bash, zsh or fish. For the shell that runs, and for all that start later:\n\n" +
			"bash:  source <(actplane completion bash)\n" +
			"       actplane completion bash >/etc/bash_completion.d/actplane\n" +
			"zsh:   source <(actplane completion zsh)\n" +
			"       actplane completion zsh >/usr/local/share/zsh/site-functions/_actplane\n" +
			"fish:  actplane completion fish | source\n" +
			"       actplane completion fish >~/.config/fish/completions/actplane.fish",
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return usageError("completion: name a shell: bash, zsh or fish")
			}
			for _, shell := range shells() {
				if shell.word == c.Args().First() {
					if _, err := fmt.Fprint(c.App.Writer, shell.about); err != nil {
						return environmentError("print script: %v", err)
					}
					return nil
				}
			}
			return usageError("completion: there is none for %q; there is one for bash, zsh and fish", c.Args().First())
		},
	}
}
