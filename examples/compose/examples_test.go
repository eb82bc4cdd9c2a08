// SPDX-License-Identifier: Apache-2.0

// Package compose_test tries the examples that have compose files.
package compose_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/actplane/actplane/compose"
	"github.com/actplane/actplane/policy"
	"github.com/actplane/actplane/shim/prepare"
)

// The override files are what the README's command writes.
func TestWritten(t *testing.T) {
	for _, example := range []struct {
		base, override string
		labels         bool
	}{{"compose.yaml", "actplane.compose.yaml", false}, {"docker-compose.v1.yaml", "actplane.v1.yaml", true}} {
		project := load(t, example.base)
		out, err := project.Write(&compose.Override{Services: []string{"agent"}, Labels: example.labels,
			Settings: map[string]string{"dev.actplane.policy-file": "/workspace/actplane.yaml"}})
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(example.override)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(string(text), "up\n"+string(out)) {
			t.Errorf("%s is\n%s\nand it would be\n%s", example.override, text, out)
		}
		both := load(t, example.base, example.override)
		agent, database := both.Services["agent"], both.Services["database"]
		if agent.Runtime != "actplane" || database.Runtime != "" {
			t.Errorf("runtimes %q and %q", agent.Runtime, database.Runtime)
		}
		accepted(t, both)
	}
}

func load(t *testing.T, names ...string) *compose.Project {
	t.Helper()
	project, err := compose.Load(t.Context(), names, nil)
	if err != nil {
		t.Fatal(err)
	}
	return project
}

// accepted: no host refuses what the services get.
func accepted(t *testing.T, project *compose.Project) {
	t.Helper()
	services, err := project.Chosen(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, service := range services {
		containers, err := project.Given(service)
		if err != nil {
			t.Fatal(err)
		}
		for _, given := range containers {
			refused, _, err := prepare.Judge(&prepare.Config{}, given.Container)
			if err != nil || len(refused) != 0 {
				t.Errorf("service %q: %v, error %v", service, refused, err)
			}
		}
	}
}

// The policies have no errors and no warnings, and do what their READMEs say.
func TestPolicies(t *testing.T) {
	for _, name := range []string{"actplane.yaml", "../two-agents/coder.yaml", "../two-agents/reviewer.yaml"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		compiled, err := policy.Compile([]policy.Document{{Name: name, Text: text}}, policy.Options{Enforce: true})
		if err != nil || len(compiled.Warnings) != 0 {
			t.Errorf("%s: error %v, warnings %v", name, err, compiled.Warnings)
		}
	}
	run := exec.CommandContext(t.Context(), "go", "run", "../../cmd/actplane", "test", "../two-agents/agents_test.txt")
	if out, err := run.CombinedOutput(); err != nil || !strings.Contains(string(out), " 0 failed") {
		t.Errorf("%s: %v", out, err)
	}
}

// Each agent has its own policy, which is where it is said to be.
func TestTwoAgents(t *testing.T) {
	project := load(t, filepath.Join("..", "two-agents", "compose.yaml"))
	accepted(t, project)
	seen := map[string]bool{}
	for name, service := range project.Services {
		file := service.Annotations["dev.actplane.policy-file"]
		doubts := project.Doubts(&compose.Override{Services: []string{name}}, file)
		if file == "" || seen[file] || len(doubts) != 0 {
			t.Errorf("service %q has the policy %q: %q", name, file, doubts)
		}
		seen[file] = true
	}
}
