// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/actplane/actplane/internal/atomicfile"
	"github.com/actplane/actplane/policy"
)

func fmtCommand() *cli.Command {
	return &cli.Command{
		Name:      "fmt",
		Usage:     "write policy files in their canonical form",
		ArgsUsage: "FILE…",
		Description: "Rewrites each file that is not in canonical form and prints its name. Comments stay, and so\n" +
			"does the meaning: the compiled policy is compared before a file is written. A file with errors\n" +
			"is reported and left as it is, with exit status 1. A FILE that is called - is standard\n" +
			"input: its canonical form is printed.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "check", Usage: "write nothing; the exit status is 1 when a file is not in canonical form"},
			&cli.BoolFlag{Name: "stdout", Usage: "print the result and leave the files as they are"},
		},
		Action: formatFiles,
	}
}

func formatFiles(c *cli.Context) error {
	if !c.Args().Present() {
		return usageError("fmt: name a policy file, such as actplane.yaml")
	}
	if c.Bool("check") && c.Bool("stdout") {
		return usageError("fmt: --check and --stdout exclude each other")
	}
	if err := inputOnce(c); err != nil {
		return err
	}
	bad := false
	for _, name := range c.Args().Slice() {
		good, err := formatFile(c, name)
		if err != nil {
			return err
		}
		bad = bad || !good
	}
	if bad {
		return &failure{code: exitDiagnostics}
	}
	return nil
}

// formatFile does one file, and tells whether there is nothing to complain of.
func formatFile(c *cli.Context, name string) (bool, error) {
	text, err := readInput(c, name)
	if err != nil {
		return false, err
	}
	out, list := policy.Format(inputName(name), text)
	if list.Errors() > 0 {
		if err := list.WriteText(c.App.ErrWriter); err != nil {
			return false, environmentError("print diagnostics: %v", err)
		}
		return false, nil
	}
	changed := !bytes.Equal(text, out)
	switch {
	case c.Bool("stdout") || name == standardInput && !c.Bool("check"):
		_, err = c.App.Writer.Write(out)
	case changed:
		if !c.Bool("check") {
			if err := rewriteFile(name, out); err != nil {
				return false, environmentError("write policy: %v", err)
			}
		}
		_, err = fmt.Fprintln(c.App.Writer, clean(inputName(name)))
	}
	if err != nil {
		return false, environmentError("print result: %v", err)
	}
	return !changed || !c.Bool("check"), nil
}

// rewriteFile gives a file another content at once: who reads it meanwhile gets the
// one or the other whole. Owner, group and mode stay, or nothing is written; a
// symbolic link stays one.
func rewriteFile(name string, content []byte) error {
	name, err := filepath.EvalSymlinks(name)
	if err != nil {
		return err
	}
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%q is no regular file", name)
	}
	options := atomicfile.Options{Mode: uint32(info.Mode().Perm()), Sync: true}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		options.Mode = uint32(stat.Mode) & 0o7777
		options.Owner = &atomicfile.Owner{UID: int(stat.Uid), GID: int(stat.Gid)}
	}
	err = atomicfile.Write(name, content, options)
	if errors.Is(err, fs.ErrPermission) {
		err = fmt.Errorf("%w (the file is replaced by a new one with the same owner, group and mode; --stdout prints it)", err)
	}
	return err
}
