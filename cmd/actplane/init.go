// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/actplane/actplane/policy/diag"
	"github.com/actplane/actplane/policy/templates"
)

func initCommand() *cli.Command {
	return &cli.Command{
		Name:      "init",
		Usage:     "write a first policy from templates, with its tests",
		ArgsUsage: "[DIR]",
		Description: "Writes actplane.yaml and actplane_test.txt into DIR, which is the working directory unless it\n" +
			"is named. What is there stays, unless --force is given; a link is never followed.\n\n" +
			"Several templates become one policy: --template no-push --template tests-go. Without --template\n" +
			"the choice goes by what is in DIR, and is told: no-push and secrets-unread always,\n" +
			"steering-files where there are such files, and the tests-… of the language where it is plain\n" +
			"which tests there are.\n\n" +
			"The exit status is 0 when both files are written, 2 for a wrong command line, and 3 when a file\n" +
			"is there or cannot be written.",
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "template", Aliases: []string{"t"}, Usage: "`NAME` of a template; may be given several times"},
			&cli.BoolFlag{Name: "list", Usage: "list the templates, and write nothing"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write the policy to `FILE`, and the tests beside it; - prints the policy alone"},
			&cli.StringFlag{Name: "workspace", Value: templates.Workspace, Usage: "the `DIRECTORY` in the container where the work is mounted"},
			&cli.BoolFlag{Name: "force", Usage: "replace files that are there"},
		},
		Action: initAction,
	}
}

// initTarget is where the files go.
type initTarget struct {
	dir, policy, tests string
	print              bool // the policy alone, to standard output
}

func initAction(c *cli.Context) error {
	if c.Bool("list") {
		if c.Args().Present() || c.IsSet("template") || c.IsSet("output") {
			return usageError("init: --list takes nothing else")
		}
		return listTemplates(c.App.Writer)
	}
	target, err := targetOf(c)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(target.dir)
	if err != nil {
		return environmentError("open the folder: %v", err)
	}
	defer root.Close()
	choices, missing := templates.Choose(root.FS())
	if names := c.StringSlice("template"); len(names) > 0 {
		choices, missing = named(names), nil
	}
	made, err := makePolicy(choices, c.String("workspace"), target.policy)
	if err != nil {
		return err
	}
	report := c.App.Writer
	if target.print {
		report = c.App.ErrWriter
		_, err = c.App.Writer.Write(made.Policy)
	} else {
		err = writeMade(root, target, made, c.Bool("force"))
	}
	if err != nil {
		return err
	}
	r := initReport{target: target, choices: choices, missing: missing, made: made}
	if _, err := root.Lstat(".actplane/policy.yaml"); err == nil && !target.print {
		r.beside = filepath.Join(target.dir, ".actplane/policy.yaml")
	}
	_, err = io.WriteString(report, cleanLines(r.text()))
	return err
}

// targetOf reads the arguments.
func targetOf(c *cli.Context) (initTarget, error) {
	out, dir := c.String("output"), c.Args().First()
	switch {
	case c.NArg() > 1:
		return initTarget{}, usageError("init: unexpected argument %q", c.Args().Get(1))
	case c.IsSet("output") && c.NArg() > 0:
		return initTarget{}, usageError("init: name a folder or --output, not both")
	case c.IsSet("output") && out == "", c.NArg() > 0 && dir == "":
		return initTarget{}, usageError("init: the name is empty")
	case out == "-":
		return initTarget{dir: ".", policy: templates.PolicyFile, print: true}, nil
	case out != "":
		name := filepath.Base(out)
		if strings.HasSuffix(out, "/") || name == "." || name == ".." {
			return initTarget{}, usageError("init: %q is no name of a file", out)
		}
		return initTarget{dir: filepath.Dir(out), policy: name, tests: testsBeside(name)}, nil
	case dir == "":
		dir = "."
	}
	return initTarget{dir: dir, policy: templates.PolicyFile, tests: testsBeside(templates.PolicyFile)}, nil
}

// testsBeside names the tests of a policy file: actplane_test.txt of actplane.yaml.
func testsBeside(policy string) string {
	return strings.TrimSuffix(policy, filepath.Ext(policy)) + "_test.txt"
}

func named(names []string) (choices []templates.Choice) {
	for i, name := range names {
		if !slices.Contains(names[:i], name) {
			choices = append(choices, templates.Choice{Name: name})
		}
	}
	return choices
}

func makePolicy(choices []templates.Choice, workspace, name string) (*templates.Made, error) {
	var names []string
	for _, choice := range choices {
		names = append(names, choice.Name)
	}
	list, err := templates.Find(names)
	if err != nil {
		return nil, usageError("init: %v; see \"actplane init --list\"", err)
	}
	made, err := templates.Make(list, templates.Options{Workspace: workspace, Name: name})
	if err != nil {
		return nil, usageError("init: %v", err)
	}
	return made, nil
}

// writeMade writes both files, or neither where one is there.
func writeMade(root *os.Root, target initTarget, made *templates.Made, force bool) error {
	for _, name := range []string{target.policy, target.tests} {
		info, err := root.Lstat(name)
		if err == nil && force && info.IsDir() {
			return environmentError("%s is a directory, and nothing was written", clean(filepath.Join(target.dir, name)))
		}
		if err == nil && !force {
			return environmentError("%s is there already, and nothing was written; --force replaces it", filepath.Join(target.dir, name))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return environmentError("look for %s: %v", filepath.Join(target.dir, name), err)
		}
	}
	for _, file := range []struct {
		name    string
		content []byte
	}{{target.tests, made.Tests}, {target.policy, made.Policy}} {
		if err := writeNew(root, file.name, file.content, force); err != nil {
			return environmentError("write %s: %v", filepath.Join(target.dir, file.name), err)
		}
	}
	return nil
}

// writeNew makes a file that is not there; with force it takes the place of one, and
// of a link rather than of what that leads to.
func writeNew(root *os.Root, name string, content []byte, force bool) (err error) {
	at := name
	if force {
		at = fmt.Sprintf(".%s.%d.new", name, os.Getpid())
	}
	file, err := root.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	err = errors.Join(err, file.Close())
	if err == nil && force {
		err = root.Rename(at, name)
	}
	if err != nil {
		_ = root.Remove(at) // half a file is none
	}
	return err
}

// initReport tells what was written and why.
type initReport struct {
	target  initTarget
	choices []templates.Choice
	missing []string
	made    *templates.Made
	beside  string // a policy that holds as well
}

func (r *initReport) text() string {
	var b strings.Builder
	policy, tests := filepath.Join(r.target.dir, r.target.policy), filepath.Join(r.target.dir, r.target.tests)
	if !r.target.print {
		fmt.Fprintf(&b, "wrote %s: %s, from\n", clean(policy), count(r.made.Rules, "rule"))
		r.writeChoices(&b)
		fmt.Fprintf(&b, "wrote %s: %s, and all pass\n", clean(tests), count(r.made.Cases, "case"))
		for _, l := range r.made.LeftOut {
			fmt.Fprintf(&b, "  left out %s of %s: `%s` is %s here, not %s\n", l.Case, l.Template, l.Step, l.Got, l.Want)
		}
	}
	if names := r.made.Together; len(names) > 0 {
		all := "all of them have"
		if len(names) == 2 {
			all = "both have"
		}
		fmt.Fprintf(&b, "%s: %s to pass before a commit\n", strings.Join(names, ", "), all)
	}
	for _, text := range r.missing {
		fmt.Fprintf(&b, "not in it: %s\n", text)
	}
	if r.beside != "" {
		fmt.Fprintf(&b, "%s is there too, and holds as well\n", clean(r.beside))
	}
	if n := len(r.made.Unenforced); n > 0 {
		fmt.Fprintf(&b, "warning: this version cannot enforce it, and refuses to start a container with it: %s (%s, which `actplane check` names)\n",
			strings.Join(features(r.made.Unenforced), ", "), count(n, "place"))
	}
	if !r.target.print {
		fmt.Fprintf(&b, "next: read it, change what does not fit, then\n  actplane check %s\n  actplane test %s\n", word(policy), word(tests))
	}
	return b.String()
}

func (r *initReport) writeChoices(b *strings.Builder) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for _, choice := range r.choices {
		line := "  " + choice.Name
		if choice.Why != "" {
			line += "\t" + choice.Why
		}
		fmt.Fprintln(w, line)
	}
	_ = w.Flush() // a Builder takes everything
}

// features names what is not enforced, each once.
func features(list diag.List) (out []string) {
	for _, d := range list {
		if what := strings.TrimPrefix(d.Message, "not supported by this version: "); !slices.Contains(out, what) {
			out = append(out, what)
		}
	}
	return out
}

// listTemplates prints a line for each template, with a star where this version's
// engine cannot enforce it.
func listTemplates(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, t := range templates.All() {
		made, err := templates.Make([]templates.Template{t}, templates.Options{})
		if err != nil {
			return err
		}
		star := " "
		if len(made.Unenforced) > 0 {
			star = "*"
		}
		fmt.Fprintf(w, "%s %s\t%s\n", star, t.Name, t.Summary)
	}
	fmt.Fprintln(w, "\n* says more than this version's engine enforces: a container with it does not start")
	return w.Flush()
}
