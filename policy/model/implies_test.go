// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/actplane/actplane/internal/testenv"
	"github.com/actplane/actplane/policy"
	"github.com/actplane/actplane/policy/model"
)

// TestImplies: where one gate implies another, no trace makes the one fresh and leaves
// the other stale. Gates are written out of few words, so that many do.
func TestImplies(t *testing.T) {
	r := rand.New(rand.NewPCG(testenv.Seed(t), 1))
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	after := func() string {
		return pick(`exec "make"`, `exec "/usr/bin/make"`, `exec "{make,tox}"`, `exec "make" "test"`, `exec any`, `exec "make" "-s" "test"`, `write "/w/out"`, `write "/w/*"`, `unlink "/w/out"`)
	}
	since := func() string {
		return pick(`write "**/*.py"`, `write "**/*.{py,toml}"`, `write "/w/**"`, `unlink "/w/a.py"`, `write "/w/a.py"`, `read "/w/*"`, `exec "git"`, `exec "/usr/bin/git"`, `exec "git" "pull"`, `write any`, `write "/dev/null"`)
	}
	gate := func() string {
		text := "after " + after()
		if text[6:10] == "exec" && r.IntN(2) == 0 {
			text += " exits " + pick("0", "1")
		}
		if r.IntN(4) > 0 {
			text += " since " + since()
			if r.IntN(2) == 0 {
				text += " or " + since()
			}
		}
		return text
	}
	step := func() []string {
		file := pick("/w/a.py", "/w/b.toml", "/w/out", "/x/c.py", "/dev/null")
		switch r.IntN(6) {
		case 0, 1:
			return append([]string{"t", "exec", pick("/usr/bin/make", "/opt/make", "/bin/tox")}, [][]string{nil, {"test"}, {"-s", "test"}}[r.IntN(3)]...)
		case 2:
			return []string{"t", "exit", pick("0", "1")}
		case 3:
			return append([]string{"g", "exec", pick("/usr/bin/git", "/opt/git")}, [][]string{nil, {"pull"}}[r.IntN(2)]...)
		}
		return []string{"a", pick("write", "append", "read", "unlink"), file}
	}
	implied, fresh := 0, 0
	for range 3000 {
		text := fmt.Sprintf("workspace: /w\npolicy: |\n  rule a: block connect \"10.0.0.1:1\" unless %s\n  rule b: block connect \"10.0.0.2:1\" unless %s\n", gate(), gate())
		p, err := policy.Compile([]policy.Document{{Name: "p.yaml", Text: []byte(text)}}, policy.Options{})
		if err != nil {
			t.Fatal(err)
		}
		gates := p.Program.Gates
		if len(gates) < 2 || !model.Implies(&gates[0], &gates[1]) {
			continue
		}
		implied++
		s := model.New(p.Program)
		for range 40 {
			words := step()
			if _, err := s.Do(words); err != nil {
				continue
			}
			a, _ := s.Do([]string{"x", "connect", "10.0.0.1:1"})
			b, _ := s.Do([]string{"x", "connect", "10.0.0.2:1"})
			if !a.Denied() {
				fresh++
			}
			if !a.Denied() && b.Denied() {
				t.Fatalf("after %q the first gate is fresh and the second is not:\n%s", words, text)
			}
		}
	}
	if implied < 50 || fresh < 100 {
		t.Errorf("only %d pairs imply one another, and %d times the first is fresh", implied, fresh)
	}
}
