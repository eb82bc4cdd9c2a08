// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

func TestArrange(t *testing.T) {
	app := &cli.App{Commands: []*cli.Command{
		{Name: "c", Flags: []cli.Flag{&cli.BoolFlag{Name: "bool", Aliases: []string{"b"}}, &cli.StringFlag{Name: "value"}}, Subcommands: []*cli.Command{
			{Name: "sub", Flags: []cli.Flag{&cli.IntFlag{Name: "n"}}},
		}},
		{Name: runCommandName, Flags: []cli.Flag{&cli.BoolFlag{Name: "bool"}}},
	}}
	for given, want := range map[string]string{
		"":                        "",
		"c":                       "c",
		"c x":                     "c -- x",
		"c x --bool y":            "c --bool -- x y",
		"c x --value v y -b":      "c --value v -b -- x y",
		"c x --value=v -- --bool": "c --value=v -- x --bool",
		"c x --value":             "c --value",
		"c --value --bool x":      "c --value --bool -- x",
		"c - --bool":              "c --bool -- -",
		"c x --unknown y":         "c --unknown -- x y",
		"c sub x -n 3":            "c sub -n 3 -- x",
		"--help c x --bool":       "--help c x --bool",
		"nothing x --bool":        "nothing x --bool",
		"run x --bool":            "run x --bool",
	} {
		args := append([]string{"actplane"}, strings.Fields(given)...)
		if got := strings.Join(arrange(app, args)[1:], " "); got != want {
			t.Errorf("%q: %q, want %q", given, got, want)
		}
		if got := strings.Join(args[1:], " "); got != given {
			t.Errorf("%q became %q", given, got)
		}
	}
}
