// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/urfave/cli/v2"

	"github.com/actplane/actplane/policy"
)

func schemaCommand() *cli.Command {
	return &cli.Command{
		Name:  "schema",
		Usage: "print the JSON Schema of policy files, for editors",
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usageError("schema: takes no arguments")
			}
			if _, err := c.App.Writer.Write(policy.Schema()); err != nil {
				return environmentError("print schema: %v", err)
			}
			return nil
		},
	}
}
