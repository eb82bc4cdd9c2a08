// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"strings"
	"testing"

	"github.com/actplane/actplane/policy/ir"
)

// Mappings are counted over all processes, those that are the same once, and are gone
// with their process or program.
func TestMappingsAreBounded(t *testing.T) {
	gate := ir.Gate{After: ir.Event{Op: ir.Exec, Pattern: ir.Pattern{Kind: ir.ExecProgram, Text: "t"}}, Exit: -1,
		Since: []ir.Event{{Op: ir.Write, Pattern: ir.Pattern{Kind: ir.File, Text: "/w/*"}}}}
	s := New(&ir.Program{Gates: []ir.Gate{gate}})
	do := func(step string) error {
		_, err := s.Do(strings.Fields(step))
		return err
	}
	must := func(step string) {
		t.Helper()
		if err := do(step); err != nil {
			t.Fatalf("%s: %v", step, err)
		}
	}
	for range maxMapped + 1 {
		must("p mmapshared /w/a")
	}
	must("p exec /bin/t") // which ends the mapping
	if s.mapped != 0 || !s.Fresh(0) {
		t.Fatalf("%d mappings, fresh %t", s.mapped, s.Fresh(0))
	}
	for i := range 5 {
		must(fmt.Sprintf("p mmapshared /w/%d", i))
	}
	must("p fork q")
	must("p exit 0")
	if s.mapped != 5 || s.Fresh(0) {
		t.Errorf("%d mappings, fresh %t", s.mapped, s.Fresh(0))
	}
	for i := range maxMapped - 5 {
		must(fmt.Sprintf("r shm m%d", i))
	}
	for _, step := range []string{"r shm more", "q mmapshared /w/more", "q fork q2", "r ptrace q"} {
		if err := do(step); err == nil || err.Error() != "there are more than 10000 shared mappings" {
			t.Errorf("%s: %v", step, err)
		}
	}
	must("r exec /bin/x")
	must("r ptrace q")
	must("q killed 9")
	must("r exec /bin/x") // a tracer stays one
	if s.mapped != 1 {
		t.Errorf("%d mappings", s.mapped)
	}
	s.Restart()
	if s.mapped != 0 || s.spoiling[0] != 0 {
		t.Errorf("%d mappings, %d spoil", s.mapped, s.spoiling[0])
	}
}

// What is in a directory is counted as names come and go.
func TestNamesInside(t *testing.T) {
	s := New(&ir.Program{})
	for _, step := range []string{
		"p write /d/e/a", "p symlink a /d/e/l", "p link /d/e/a /d/b", "p link /d/e/l /d/k", "p rename /d /x", "p exchange /x/e /y",
		"p write /x/e/new", "p unlink /y/a", "p rename /y/l /z", "p rename /x/b /z", "p unlink /x/k", "p mkdir /x/m",
	} {
		if _, err := s.Do(strings.Fields(step)); err != nil {
			t.Fatalf("%s: %v", step, err)
		}
		counted(t, step, s.files.root)
	}
}

// counted checks how many names below a node the tree says that there are.
func counted(t *testing.T, step string, n *node) (total int) {
	t.Helper()
	for name, child := range n.children {
		if child.parent != n || child.name != name {
			t.Errorf("%s: %s is not below %s", step, name, n.path())
		}
		total += counted(t, step, child) + child.uses()
	}
	if total != n.inside {
		t.Errorf("%s: %d names in %s, want %d", step, n.inside, n.path(), total)
	}
	return total
}
