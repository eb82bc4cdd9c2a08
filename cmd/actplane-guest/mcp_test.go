// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const mcpChild = "ACTPLANE_TEST_MCP"

// TestMCP runs the server as an agent does: as a program, over its standard streams.
func TestMCP(t *testing.T) {
	if socket := os.Getenv(mcpChild); socket != "" {
		g := guest{in: os.Stdin, out: os.Stdout, err: os.Stderr, socket: socket, proc: "/proc", pid: os.Getpid()}
		os.Exit(g.run([]string{"mcp"}))
	}
	s, path := newScope(), socketPath(t)
	start(t, s, path)
	s.Append(push("main"))
	command := exec.Command(os.Args[0], "-test.run=^TestMCP$")
	command.Env = append(os.Environ(), mcpChild+"="+path)
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: command}, nil)
	if err != nil {
		t.Fatal(err)
	}
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "explain_denial", Arguments: map[string]any{"all": true}})
	if err != nil || result.IsError || !strings.Contains(result.Content[0].(*mcp.TextContent).Text, `"main"`) {
		t.Errorf("%+v, %v", result, err)
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
	if code := command.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if code, _, errOut := run(t, path, "", "mcp", "--nope"); code != exitUsage || !strings.Contains(errOut, "usage") {
		t.Errorf("%d %s", code, errOut)
	}
}
