// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/actplane/actplane/policy"
)

func compileCommand() *cli.Command {
	return &cli.Command{
		Name:      "compile",
		Usage:     "compile a policy file and show what became of it",
		ArgsUsage: "FILE",
		Description: "Prints the size of the compiled policy and, with --dump, the program and all that the\n" +
			"automaton distinguishes, in a text that is the same for the same file. A FILE that is called -\n" +
			"is standard input. The exit status is as with check.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "dump", Usage: "print the program and its rows"},
			&cli.StringFlag{Name: "workspace", Usage: "the `DIRECTORY` in the container where relative patterns begin, if the file names none"},
		},
		Action: compilePolicy,
	}
}

func compilePolicy(c *cli.Context) error {
	if c.Args().Len() != 1 {
		return usageError("compile: name one policy file, such as actplane.yaml")
	}
	if w := c.String("workspace"); w != "" && w[0] != '/' {
		return usageError("compile: --workspace is an absolute path in the container, not %q", w)
	}
	p, diags, err := compileFile(c, c.Args().First(), policy.Options{Workspace: c.String("workspace")})
	if err != nil {
		return err
	}
	if p == nil {
		if err := diags.WriteText(c.App.ErrWriter); err != nil {
			return environmentError("print diagnostics: %v", err)
		}
		return &failure{code: exitDiagnostics}
	}
	if err := p.Warnings.WriteText(c.App.ErrWriter); err != nil {
		return environmentError("print diagnostics: %v", err)
	}
	text := p.Summary()
	if c.Bool("dump") {
		text = p.Dump()
	}
	if _, err := fmt.Fprint(c.App.Writer, cleanLines(text)); err != nil {
		return environmentError("print policy: %v", err)
	}
	return nil
}
