// SPDX-License-Identifier: Apache-2.0

package dfa

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/model"
	"github.com/actplane/actplane/policy/pattern"
)

// TestNameOpensNothing: from the invoked name, rows deny and label, and neither
// arm gates nor set lineage nor excuse.
func TestNameOpensNothing(t *testing.T) {
	pytest := ir.Pattern{Kind: ir.ExecProgram, Text: "pytest"}
	git := ir.Pattern{Kind: ir.ExecProgram, Text: "git"}
	p := &ir.Program{
		Labels:   []ir.Label{{Name: "A"}},
		Rules:    []ir.Rule{{Name: "r"}},
		Sources:  []ir.Source{{Pattern: pytest}},
		Lineages: []ir.Pattern{pytest},
		Gates:    []ir.Gate{{After: ir.Event{Op: ir.Exec, Pattern: pytest}, Exit: -1, Since: []ir.Event{{Op: ir.Exec, Pattern: git}}}},
		Clauses: []ir.Clause{
			{Effect: ir.Block, Op: ir.Exec, Pattern: git, Unless: ir.Unless{Gates: []int{0}, Lineages: []int{0}}},
			{Effect: ir.Kill, Op: ir.Exec, Pattern: ir.Pattern{Kind: ir.ExecProgram, Any: true}, Unless: ir.Unless{Targets: []ir.Target{{Pattern: pytest}, {Not: true, Pattern: git}}}},
		},
	}
	img := compile(t, p)
	name, path := rowOf(img, Name, []byte("pytest")), rowOf(img, Path, []byte("/usr/bin/pytest"))
	if name.ExecSources != 1 || path.ExecSources != 1 {
		t.Error("a source does not see the program")
	}
	if name.Lineage != 0 || len(name.Gates[ir.Exec]) != 0 || name.Targets != 0 {
		t.Errorf("the name opens something: %+v", name)
	}
	if path.Lineage != 1 || len(path.Gates[ir.Exec]) != 1 || !path.Gates[ir.Exec][0].Arm || path.Targets != 1 {
		t.Errorf("the path opens nothing: %+v", path)
	}
	name, path = rowOf(img, Name, []byte("git")), rowOf(img, Path, []byte("/usr/bin/git"))
	if len(name.Gates[ir.Exec]) != 1 || name.Gates[ir.Exec][0].Arm {
		t.Errorf("a since event does not see the name: %+v", name)
	}
	if path.Targets != 0 {
		t.Error("target not git holds for git")
	}
	if got := path.Clauses[ir.Exec]; !slices.Equal(got, []uint16{1, 0}) {
		t.Errorf("candidates of git: %v", got)
	}
	if other := rowOf(img, Path, []byte("/bin/sh")); other.Targets != 1 {
		t.Error("target not git does not hold for sh")
	}
	unknown := img.Rows[UnknownRow]
	if unknown.Targets != 0 || unknown.Lineage != 0 || len(unknown.Gates[ir.Exec]) != 1 || unknown.Gates[ir.Exec][0].Arm || unknown.ExecSources != 1 {
		t.Errorf("the unknown row: %+v", unknown)
	}
}

// What stands behind a clause that always matches stays in the row, since an event names
// all that match.
func TestDominated(t *testing.T) {
	for _, op := range []ir.Op{ir.Read, ir.Write, ir.Exec} {
		kind := KindOf(op)
		p := program(op, ir.Pattern{Kind: kind, Any: true}, ir.Pattern{Kind: kind, Text: "/**/x"}, ir.Pattern{Kind: kind, Text: "/a/*"})
		for i := range p.Clauses {
			p.Clauses[i].If = nil
		}
		p.Clauses[1].Effect = ir.Notify
		img := compile(t, p)
		if got := rowOf(img, Path, []byte("/a/x")).Clauses[op]; !slices.Equal(got, []uint16{0, 2, 1}) {
			t.Errorf("operation %d: candidates %v, in the order of decision they are [0 2 1]", op, got)
		}
	}
}

func TestTargetsOfFiles(t *testing.T) {
	p := program(ir.Write, ir.Pattern{Text: "/**"}, ir.Pattern{Text: "/**"})
	p.Clauses[0].Unless.Targets = []ir.Target{{Pattern: ir.Pattern{Text: "/job/**"}}, {Pattern: ir.Pattern{Text: "/tmp/**"}}}
	p.Clauses[1].Unless.Targets = []ir.Target{{Not: true, Pattern: ir.Pattern{Text: "/tmp/**"}}}
	img := compile(t, p)
	for key, want := range map[string][]uint16{"/etc/x": {0}, "/job/x": nil, "/job": nil, "/jobs/x": {0}, "/tmp/x": {1}} {
		if got := rowOf(img, Path, []byte(key)).Clauses[ir.Write]; !slices.Equal(got, want) {
			t.Errorf("%s: candidates %v, want %v", key, got, want)
		}
	}
	if got := img.Rows[UnknownRow].Clauses[ir.Write]; !slices.Equal(got, []uint16{0, 1}) {
		t.Errorf("a path that cannot be read: candidates %v", got)
	}
}

// TestArgs runs the recurrence of the design over argument lists.
func TestArgs(t *testing.T) {
	sequences := [][]string{{"push"}, {"push", "--force*"}, {"push", "origin"}, {"*", "push"}, {"push", "push"}}
	p := program(ir.Exec)
	for i, seq := range sequences {
		p.Clauses = append(p.Clauses, ir.Clause{
			Effect: ir.Block, Op: ir.Exec, Pattern: ir.Pattern{Kind: ir.ExecProgram, Text: "git"}, Args: seq,
			If: []ir.Term{{All: 1 << i}},
		})
	}
	img := compile(t, p)
	if img.Clauses[0].Arg != 0 || len(img.ArgStart) != 1 {
		t.Errorf("a beginning does not share its positions: %+v", img.Clauses)
	}
	r := rand.New(rand.NewPCG(7, 7))
	for range 500 {
		var argv []string
		for range r.IntN(6) {
			argv = append(argv, []string{"push", "origin", "--force", "--force-with-lease", "-u"}[r.IntN(5)])
		}
		reached := uint64(0)
		all := uint64(0)
		for _, a := range argv {
			mask := uint64(0)
			if tokens := rowOf(img, Token, []byte(a)).Tokens; tokens != nil {
				mask = tokens[0]
			}
			reached = reached | ((reached<<1)|img.ArgStart[0])&mask
			all |= reached
		}
		for i, seq := range sequences {
			want := subsequence(seq, argv)
			if got := all>>img.Clauses[i].Arg&1 == 1; got != want {
				t.Fatalf("%v in %v: %t, want %t", seq, argv, got, want)
			}
		}
	}
}

func subsequence(seq, argv []string) bool {
	for _, a := range argv {
		if len(seq) > 0 && model.Match(seq[0], a, pattern.Token) {
			seq = seq[1:]
		}
	}
	return len(seq) == 0
}
