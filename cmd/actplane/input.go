// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"regexp"
	"syscall"

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
	return oneLine(name)
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

// ownInput is a path of one of our own descriptors, as a shell names what `<(command)`
// prints: whoever started us has it open.
var ownInput = regexp.MustCompile(`^/(dev/stdin|dev/fd/[0-9]+|proc/self/fd/[0-9]+)$`)

// openFile opens a file that is to be read whole. It refuses what is no regular one: to
// open a named pipe, or to read a terminal or a device, might never end.
func openFile(name string) (*os.File, error) {
	if ownInput.MatchString(name) {
		return os.Open(name)
	}
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() { // of which reading tells
		err = &fs.PathError{Op: "open", Path: name, Err: errors.New("it is no regular file")}
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// openInput opens a file, or standard input, to be read bit by bit.
func openInput(c *cli.Context, name string) (io.ReadCloser, error) {
	if name == standardInput {
		return io.NopCloser(c.App.Reader), nil
	}
	file, err := openFile(name)
	if err != nil {
		return nil, environmentError("read log: %v", err)
	}
	return file, nil
}
