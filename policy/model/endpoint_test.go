// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"testing"

	"github.com/actplane/actplane/policy"
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/model"
)

// localhost is an address in a trace, as it is one in a pattern.
func TestLocalhost(t *testing.T) {
	text := "policy: |\n  rule r:\n    block connect \"@loopback\"\n"
	p, err := policy.Compile([]policy.Document{{Name: "p.yaml", Text: []byte(text)}}, policy.Options{Workspace: "/w"})
	if err != nil {
		t.Fatal(err)
	}
	for object, want := range map[string]ir.Effect{
		"localhost:80": ir.Block, "LocalHost.:80": ir.Block, "127.0.0.1:80": ir.Block, "localhost.example.org:80": ir.Allow,
	} {
		scope := model.New(p.Program)
		got, err := scope.Do([]string{"a", "connect", object})
		if err != nil || got.Effect != want {
			t.Errorf("%s: %v, %v", object, got, err)
		}
	}
}
