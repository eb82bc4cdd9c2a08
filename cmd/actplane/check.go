// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/actplane/actplane/policy"
	"github.com/actplane/actplane/policy/diag"
)

func checkCommand() *cli.Command {
	return &cli.Command{
		Name:      "check",
		Usage:     "check policy files",
		ArgsUsage: "FILE…",
		Description: "Compiles each file by itself and reports everything that is wrong with it, and warns of\n" +
			"what this version's engine cannot enforce: it refuses a container with such a policy. For\n" +
			"policies that containers of this version are to start with, in CI, use --enforce. A FILE that\n" +
			"is called - is standard input. The exit status is 0 when all files are valid, 1 when one is\n" +
			"not, 2 for a wrong command line and 3 when a file cannot be read.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "enforce", Usage: "let fail what this version's engine cannot enforce (P501)"},
			&cli.BoolFlag{Name: "strict", Usage: "let warnings fail too, and what cannot be enforced"},
			&cli.BoolFlag{Name: "codes", Usage: "list the codes of all that can be reported, and read no file"},
			&cli.StringFlag{Name: "format", Value: "text", Usage: "`FORMAT` of what is reported: text or json"},
			&cli.StringFlag{Name: "workspace", Usage: "the `DIRECTORY` in the container where relative patterns begin, for files that name none"},
		},
		Action: check,
	}
}

// listCodes prints what each code is about; docs/language.md says more.
func listCodes(out io.Writer, format string) error {
	codes := diag.Codes()
	if format == "json" {
		titles := map[diag.Code]string{}
		for _, c := range codes {
			titles[c.Code] = c.Title
		}
		return writeJSON(out, titles, "  ")
	}
	for _, c := range codes {
		if _, err := fmt.Fprintf(out, "%s  %s\n", c.Code, c.Title); err != nil {
			return environmentError("print codes: %v", err)
		}
	}
	return nil
}

// checked is the outcome for one file.
type checked struct {
	name   string
	policy *policy.Policy // nil: the file has errors
	diags  diag.List
}

// fails tells whether the file is not as it should be: strictly, nothing may be said of it.
func (r *checked) fails(strict bool) bool {
	return r.diags.Errors() > 0 || strict && len(r.diags) > 0
}

func check(c *cli.Context) error {
	format := c.String("format")
	if format != "text" && format != "json" {
		return usageError("check: --format is text or json, not %q", format)
	}
	if w := c.String("workspace"); w != "" && w[0] != '/' {
		return usageError("check: --workspace is an absolute path in the container, not %q", w)
	}
	if c.Bool("codes") {
		if c.Args().Present() {
			return usageError("check: --codes takes no file")
		}
		return listCodes(c.App.Writer, format)
	}
	if !c.Args().Present() {
		return usageError("check: name a policy file, such as actplane.yaml")
	}
	var results []checked
	if err := inputOnce(c); err != nil {
		return err
	}
	for _, name := range c.Args().Slice() {
		r, err := checkFile(c, name, policy.Options{Workspace: c.String("workspace")}, c.Bool("strict") || c.Bool("enforce"))
		if err != nil {
			return err
		}
		results = append(results, r)
	}
	if err := printChecked(c, results, format); err != nil {
		return environmentError("print diagnostics: %v", err)
	}
	for _, r := range results {
		if r.fails(c.Bool("strict")) {
			return &failure{code: exitDiagnostics}
		}
	}
	return nil
}

func checkFile(c *cli.Context, name string, opts policy.Options, enforce bool) (checked, error) {
	p, diags, err := compileFile(c, name, opts)
	if err != nil || p == nil {
		return checked{name: inputName(name), diags: diags}, err
	}
	// What one line says about the language comes before what it says about engines.
	return checked{name: inputName(name), policy: p, diags: slices.Concat(p.Warnings, notEnforced(p.Unenforced, enforce)).Tidy()}, nil
}

// compileFile reads and compiles a file; without a policy it has errors.
func compileFile(c *cli.Context, name string, opts policy.Options) (*policy.Policy, diag.List, error) {
	text, err := readInput(c, name)
	if err != nil {
		return nil, nil, err
	}
	name = inputName(name)
	p, err := policy.Compile([]policy.Document{{Name: name, Text: text}}, opts)
	var diags diag.List
	switch {
	case errors.As(err, &diags):
		return nil, diags, nil
	case err != nil:
		return nil, nil, environmentError("compile %q: %v", name, err)
	}
	return p, nil, nil
}

// notEnforced says what enforcement would refuse: as errors where it is to be enforced.
func notEnforced(list diag.List, enforce bool) diag.List {
	out := slices.Clone(list)
	for i := range out {
		if !enforce {
			out[i].Severity = diag.Warning
		}
		out[i].Message = strings.Replace(out[i].Message, "not supported by this version: ", "not enforced by this version's engine: ", 1)
		if out[i].Hint == "" {
			out[i].Hint = "a container with this policy is refused"
		}
	}
	return out
}

// printChecked writes JSON and what is fine to standard output, and text for
// people to look at to standard error.
func printChecked(c *cli.Context, results []checked, format string) error {
	if format == "json" {
		all := diag.List{}
		for _, r := range results {
			all = append(all, r.diags...)
		}
		return writeJSON(c.App.Writer, all, "  ")
	}
	for _, r := range results {
		if err := r.diags.WriteText(c.App.ErrWriter); err != nil {
			return err
		}
		if r.fails(c.Bool("strict")) {
			continue
		}
		verdict := "ok"
		if n := len(policy.Unenforced(r.policy.Program)); n > 0 {
			verdict = fmt.Sprintf("valid, but this version does not enforce it and refuses to start a container with it (%s)", count(n, "place"))
		}
		_, err := fmt.Fprintf(c.App.Writer, "%s: %s, %s, %s, %s\n", clean(r.name), verdict,
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
