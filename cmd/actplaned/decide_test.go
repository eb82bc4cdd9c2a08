// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/actplane/actplane/engine"
	"github.com/actplane/actplane/policy"
	"github.com/actplane/actplane/policy/ir"
)

func TestDecide(t *testing.T) {
	p, err := policy.Compile([]policy.Document{{Name: "p", Text: []byte(`version: 1
protect: ["/w/RULES"]
policy: |
  source SECRET = file "/w/.env"
  default block connect
  rule a:
    block exec "git" "push" unless after exec "make"
    block write "/w/out" if SECRET
    ask open "/w/asked"
    because "No."
`)}}, policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		q      engine.Question
		effect ir.Effect
		pos    string
	}{
		{engine.Question{Op: ir.Exec, Object: "/usr/bin/git", Args: []string{"git", "push"}}, ir.Block, "p:7:5"},
		{engine.Question{Op: ir.Exec, Object: "/usr/bin/git", Args: []string{"git", "push"}, Gates: 1}, ir.Allow, ""},
		{engine.Question{Op: ir.Exec, Object: "/usr/bin/git", Args: []string{"git", "pull"}}, ir.Allow, ""},
		{engine.Question{Op: ir.Write, Object: "/w/out"}, ir.Allow, ""},
		{engine.Question{Op: ir.Write, Object: "/w/out", Labels: 1}, ir.Block, "p:8:5"},
		{engine.Question{Op: ir.Read, Object: "/w/asked"}, ir.Ask, "p:9:5"}, // which opens it
		{engine.Question{Op: ir.Write, Object: "/w/RULES"}, ir.Block, "p:2:11"},
		{engine.Question{Op: ir.Connect, Object: "10.0.0.1:80"}, ir.Block, "p:5:3"},
	} {
		v, err := decide(p.Program, test.q)
		if err != nil || v.Effect != test.effect || v.Pos != test.pos || (v.Effect != ir.Allow) != (v.Because != "") {
			t.Errorf("%+v: %+v, %v", test.q, v, err)
		}
	}
}
