// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/actplane/actplane/policy"
)

// standardInput is the argument that stands for it.
const standardInput = "-"

// inputName is how messages call an input.
func inputName(name string) string {
	if name == standardInput {
		return "<stdin>"
	}
	return name
}

// readInput reads a policy from a file or standard input.
func readInput(c *cli.Context, name string) (text []byte, err error) {
	if name == standardInput {
		text, err = policy.ReadDocument(c.App.Reader)
	} else {
		text, err = readPolicy(name)
	}
	if err != nil {
		return nil, environmentError("read policy: %v", err)
	}
	return text, nil
}

// inputOnce refuses arguments that name standard input twice: there is nothing left
// to read.
func inputOnce(c *cli.Context) error {
	seen := false
	for _, name := range c.Args().Slice() {
		if name == standardInput && seen {
			return usageError("%s: - (standard input) can be named once only", c.Command.Name)
		}
		seen = seen || name == standardInput
	}
	return nil
}

// openInput opens a file, or standard input, to be read bit by bit.
func openInput(c *cli.Context, name string) (io.ReadCloser, error) {
	if name == standardInput {
		return io.NopCloser(c.App.Reader), nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, environmentError("read log: %v", err)
	}
	return file, nil
}
