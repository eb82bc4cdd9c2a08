// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/actplane/actplane/policy"
	"github.com/actplane/actplane/policy/diag"
)

func checkCommand() *cli.Command {
	return &cli.Command{
		Name:      "check",
		Usage:     "check policy files",
		ArgsUsage: "FILE…",
		Description: "Compiles each file by itself and reports everything that is wrong with it. The exit\n" +
			"status is 0 when all files are valid, 1 when one is not, 2 for a wrong command line and\n" +
			"3 when a file cannot be read.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "strict", Usage: "let warnings fail too"},
			&cli.StringFlag{Name: "format", Value: "text", Usage: "`FORMAT` of what is reported: text or json"},
			&cli.StringFlag{Name: "workspace", Usage: "the `DIRECTORY` in the container where relative patterns begin, for files that name none"},
		},
		Action: check,
	}
}

// checked is the outcome for one file.
type checked struct {
	name   string
	policy *policy.Policy // nil: the file has errors
	diags  diag.List
}

func check(c *cli.Context) error {
	format := c.String("format")
	if format != "text" && format != "json" {
		return usageError("check: --format is text or json, not %q", format)
	}
	if w := c.String("workspace"); w != "" && w[0] != '/' {
		return usageError("check: --workspace is an absolute path in the container, not %q", w)
	}
	if !c.Args().Present() {
		return usageError("check: name a policy file, such as actplane.yaml")
	}
	var results []checked
	for _, name := range c.Args().Slice() {
		r, err := checkFile(name, policy.Options{Workspace: c.String("workspace")})
		if err != nil {
			return err
		}
		results = append(results, r)
	}
	if err := printChecked(c, results, format); err != nil {
		return environmentError("print diagnostics: %v", err)
	}
	for _, r := range results {
		if r.policy == nil || c.Bool("strict") && len(r.diags) > 0 {
			return &failure{code: exitDiagnostics}
		}
	}
	return nil
}

func checkFile(name string, opts policy.Options) (checked, error) {
	text, err := readPolicy(name)
	if err != nil {
		return checked{}, environmentError("read policy: %v", err)
	}
	p, err := policy.Compile([]policy.Document{{Name: name, Text: text}}, opts)
	var diags diag.List
	switch {
	case errors.As(err, &diags):
		return checked{name: name, diags: diags}, nil
	case err != nil:
		return checked{}, environmentError("check %q: %v", name, err)
	}
	return checked{name: name, policy: p, diags: p.Warnings}, nil
}

// printChecked writes JSON and what is fine to standard output, and text for
// people to look at to standard error.
func printChecked(c *cli.Context, results []checked, format string) error {
	if format == "json" {
		all := diag.List{}
		for _, r := range results {
			all = append(all, r.diags...)
		}
		return all.WriteJSON(c.App.Writer)
	}
	for _, r := range results {
		if err := r.diags.WriteText(c.App.ErrWriter); err != nil {
			return err
		}
		if r.policy == nil || c.Bool("strict") && len(r.diags) > 0 {
			continue
		}
		_, err := fmt.Fprintf(c.App.Writer, "%s: ok, %s, %s, %s\n", r.name,
			count(len(r.policy.Program.Rules), "rule"), count(len(r.policy.Program.Clauses), "clause"),
			count(len(r.policy.Image.RowOf), "automaton state"))
		if err != nil {
			return err
		}
	}
	return nil
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
