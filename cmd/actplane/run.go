// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/internal/daemon"
	"github.com/actplane/actplane/policy"
	"github.com/actplane/actplane/policy/diag"
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/shim/prepare"
)

// runCommandName is the command whose arguments are a command of their own.
const runCommandName = "run"

func runCommand() *cli.Command {
	return &cli.Command{
		Name:      runCommandName,
		Usage:     "run a command under a policy, without a container",
		ArgsUsage: "[--] COMMAND [ARG…]",
		Description: "The command and all that it starts are in a scope of their own, until it ends:\n" +
			"then what is left of it is killed. The reasons of denials are on the socket that\n" +
			"$ACTPLANE_SOCKET names, and in \"actplane events\".",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "policy", Aliases: []string{"p"}, Value: "actplane.yaml", Usage: "the policy's `FILE`"},
			&cli.StringFlag{Name: "floor", Value: "/etc/actplane/policy.d", Usage: "`DIRECTORY` of the policies that always hold", Hidden: true},
			runDirFlag(),
		},
		Action: runAction,
	}
}

// exitNotFound and exitNotRun are what shells use.
const (
	exitNotFound = 127
	exitNotRun   = 126
)

func runAction(c *cli.Context) error {
	if !c.Args().Present() {
		return usageError("run: no command; see \"actplane run --help\"")
	}
	documents, err := readPolicies(c.String("policy"), c.String("floor"))
	if err != nil {
		return err
	}
	program, warnings, err := compileForRun(c, documents)
	if err != nil {
		return err
	}
	request := &api.PrepareRequest{Mode: "enforce", Warnings: warnings}
	if request.Program, err = json.Marshal(program); err != nil {
		return environmentError("encode policy: %v", err)
	}
	for _, document := range documents {
		request.Layers = append(request.Layers, &api.Layer{Name: document.Name, Text: document.Text})
	}
	command, err := exec.LookPath(c.Args().First())
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return &failure{exitNotFound, fmt.Sprintf("%s: command not found", clean(c.Args().First()))}
	}
	client, err := engine(c.Context, c)
	if err != nil {
		return err
	}
	defer client.Close()
	request.Name = filepath.Base(command)
	return runUnderPolicy(c, client, request, helperSpec{
		command: command, args: c.Args().Slice(), noNewPrivileges: program.Limits.NoNewPrivileges,
	})
}

// readPolicies reads the host's floor and the policy.
func readPolicies(path, floor string) ([]policy.Document, error) {
	var documents []policy.Document
	entries, err := os.ReadDir(floor)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, environmentError("read the host's policies: %v", err)
	}
	for _, entry := range entries {
		name := filepath.Join(floor, entry.Name())
		switch { // as for containers
		case strings.HasPrefix(entry.Name(), "."):
			continue
		case filepath.Ext(name) == ".yml":
			return nil, environmentError("host policy %q: only names that end in .yaml are read; rename it", name)
		case filepath.Ext(name) != ".yaml":
			continue
		}
		text, err := readPolicy(name)
		if err != nil {
			return nil, environmentError("read the host's policies: %v", err)
		}
		documents = append(documents, policy.Document{Name: name, Text: text, Layer: policy.Host})
	}
	text, err := readPolicy(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usageError("run: there is no policy %s; name one with --policy", clean(path))
	}
	if err != nil {
		return nil, environmentError("read policy: %v", err)
	}
	return append(documents, policy.Document{Name: path, Text: text, Layer: policy.Operator}), nil
}

func readPolicy(name string) ([]byte, error) {
	file, err := openFile(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return policy.ReadDocument(file)
}

// compileForRun compiles, and refuses the limits that only a container can have.
// The warnings have been shown, and are for those who look at the scope.
func compileForRun(c *cli.Context, documents []policy.Document) (program *ir.Program, warnings []string, err error) {
	workspace, err := os.Getwd()
	if err != nil {
		return nil, nil, environmentError("find the working directory: %v", err)
	}
	compiled, err := policy.Compile(documents, policy.Options{Workspace: workspace, Enforce: true})
	var list diag.List
	if errors.As(err, &list) {
		_ = list.WriteText(c.App.ErrWriter)
		return nil, nil, &failure{code: exitDiagnostics}
	}
	if err != nil {
		return nil, nil, environmentError("compile policy: %v", err)
	}
	_ = compiled.Warnings.WriteText(c.App.ErrWriter)
	warnings = prepare.StrayWorkspaces(compiled, workspace)
	for _, sentence := range warnings {
		fmt.Fprintf(c.App.ErrWriter, "actplane: warning: %s\n", clean(sentence))
	}
	limits := compiled.Program.Limits
	for name, set := range map[string]bool{
		"pids": limits.Pids != 0, "memory": limits.Memory != 0, "cpus": limits.CPUs != 0, "capabilities": limits.Capabilities != nil,
	} {
		if set {
			return nil, nil, environmentError("the policy has limits.%s, which needs a container; use docker run --runtime actplane, or a policy without it", name)
		}
	}
	return compiled.Program, append(warnings, prepare.CompilerWarnings(compiled)...), nil
}

// runUnderPolicy makes the scope, runs the command in it and ends it.
func runUnderPolicy(c *cli.Context, client *daemon.Client, request *api.PrepareRequest, spec helperSpec) (err error) {
	if request.Id, err = newRunID(); err != nil {
		return environmentError("make an id: %v", err)
	}
	group, err := makeGroup(request.Id)
	if err != nil {
		return environmentError("make a cgroup: %v", err)
	}
	defer group.remove()
	prepared, err := client.Prepare(c.Context, request)
	if err != nil {
		return engineError(err)
	}
	// Deferred calls run last first: the scope is closed when its cgroup is empty.
	defer func() {
		_, _ = client.EngineClient.Close(context.WithoutCancel(c.Context), &api.CloseRequest{Id: request.Id})
	}()
	defer group.kill()
	spec.socket = filepath.Join(prepared.Directory, "feedback.sock")
	child, err := startHelper(group, spec)
	if err != nil {
		return environmentError("start helper: %v", err)
	}
	defer child.abandon()
	_, err = client.Attach(c.Context, &api.AttachRequest{Id: request.Id, Pid: int64(child.pid())})
	if err != nil {
		return engineError(err)
	}
	return child.wait()
}

func newRunID() (string, error) {
	random := make([]byte, 6)
	if _, err := rand.Read(random); err != nil {
		return "", err
	}
	return "run-" + hex.EncodeToString(random), nil
}
