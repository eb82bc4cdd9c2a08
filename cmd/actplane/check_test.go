// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/actplane/actplane/internal/testenv"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"actplane": func() { os.Exit(run(os.Args, os.Stdin, os.Stdout, os.Stderr)) },
	})
}

// TestScripts runs the command as its users do.
func TestScripts(t *testing.T) {
	for _, program := range []string{"ssh-keygen", "ssh-agent", "ssh-add"} {
		testenv.RequireProgram(t, program, "openssh-client")
	}
	testscript.Run(t, testscript.Params{Dir: "testdata/script", RequireExplicitExec: true})
}
