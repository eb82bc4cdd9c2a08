// SPDX-License-Identifier: Apache-2.0

// Package examples tries the examples' policies.
package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/actplane/actplane/policy"
)

// TestPolicies: the policies of these examples have no errors and no warnings, this
// version enforces all that they say, and their tests pass.
func TestPolicies(t *testing.T) {
	program := filepath.Join(t.TempDir(), "actplane")
	if out, err := exec.Command("go", "build", "-o", program, "../cmd/actplane").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, example := range []struct{ policy, tests string }{
		{"ci-runner/actplane.yaml", "ci-runner/job_test.txt"},
		{"devcontainer/.devcontainer/actplane.yaml", "devcontainer/devcontainer_test.txt"},
		{"mcp-server/actplane.yaml", "mcp-server/server_test.txt"},
		{"sandbox-image/policy.yaml", "sandbox-image/sandbox_test.txt"},
	} {
		text, err := os.ReadFile(example.policy)
		if err != nil {
			t.Fatal(err)
		}
		compiled, err := policy.Compile([]policy.Document{{Name: example.policy, Text: text}}, policy.Options{Enforce: true})
		if err != nil {
			t.Errorf("%s: %v", example.policy, err)
		} else if len(compiled.Warnings) > 0 {
			t.Errorf("%s: %v", example.policy, compiled.Warnings)
		}
		out, err := exec.Command(program, "test", example.tests).CombinedOutput()
		if err != nil || !strings.Contains(string(out), " 0 failed") {
			t.Errorf("%s: %v\n%s", example.tests, err, out)
		}
		if out, err := exec.Command(program, "fmt", "--check", example.policy).CombinedOutput(); err != nil {
			t.Errorf("%s is not in canonical form: %s", example.policy, out)
		}
	}
}
