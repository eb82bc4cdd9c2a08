// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/actplane/actplane/internal/randomcase"
	"github.com/actplane/actplane/policy/dfa"
	"github.com/actplane/actplane/policy/diag"
	"github.com/actplane/actplane/policy/ir"
)

// unenforcedTexts are policies of one feature each that the engine of this version
// does not enforce, by what the refusal says.
func unenforcedTexts() map[string][]string {
	rule := func(clauses ...string) string {
		return "policy: |\n  rule r:\n    " + strings.Join(clauses, "\n    ") + "\n"
	}
	return map[string][]string{
		"host names in endpoint patterns": {
			rule(`block connect "github.com"`), rule(`block send "*.github.com:443"`), rule(`block connect any unless target not "a.b"`),
			"policy: |\n  source A = endpoint \"a.b\"\n  rule r:\n    block exec \"x\" if A\n",
		},
		"the condition target signed": {rule(`block exec any unless target signed`)},
		"the condition contract":      {rule(`block exec any unless contract C`)},
		"the condition run unsteered": {rule(`block exec any unless run unsteered`)},
	}
}

// TestUnenforcedIsRefused: what the engine cannot enforce is refused by name, from
// a text that is to be enforced and from a program that comes as JSON; where a
// text is only checked it is valid, and listed.
func TestUnenforcedIsRefused(t *testing.T) {
	for feature, texts := range unenforcedTexts() {
		for _, text := range texts {
			doc := Document{Name: "p.yaml", Text: []byte("version: 1\n" + text)}
			_, err := Compile([]Document{doc}, Options{Workspace: "/w", Enforce: true})
			refusedByName(t, err, feature)
			p, err := Compile([]Document{doc}, Options{Workspace: "/w"})
			if err != nil { // words that never have a meaning
				refusedByName(t, err, feature)
				continue
			}
			refusedByName(t, p.Unenforced, feature)
			stored, err := json.Marshal(p.Program)
			if err != nil {
				t.Fatal(err)
			}
			var program ir.Program
			if err := json.Unmarshal(stored, &program); err != nil {
				t.Fatal(err)
			}
			_, err = CompileProgram(&program)
			refusedByName(t, err, feature)
		}
	}
}

// TestForgedPrograms: programs that no compiler made are refused as well.
func TestForgedPrograms(t *testing.T) {
	valid := func() *ir.Program {
		p := mustCompile(t, Document{Name: "p", Text: block(`source A = exec "a"`, `rule r:`, `  block write "x" if A`)})
		return p.Program
	}
	for name, spoil := range map[string]func(*ir.Program){
		"hold":     func(p *ir.Program) { p.Clauses[0].Hold = time.Second },
		"position": func(p *ir.Program) { p.Clauses[0].Hold, p.Clauses[0].Pos = time.Second, ":::-1:99999999999999999999" },
		"target": func(p *ir.Program) {
			p.Clauses[0].Unless.Targets = []ir.Target{{Pattern: ir.Pattern{Kind: ir.Endpoint, Host: true, Text: "a"}}}
		},
	} {
		p := valid()
		spoil(p)
		_, err := CompileProgram(p)
		var list diag.List
		if !errors.As(err, &list) || list.First().Code != diag.NotSupported {
			t.Errorf("%s: err = %v", name, err)
		}
		_ = list.WriteText(&strings.Builder{})
	}
	for n := range 256 {
		p := valid()
		p.Clauses[0].Effect = ir.Effect(n)
		_, err := CompileProgram(p)
		if enforced := p.Clauses[0].Effect <= ir.Kill; (err == nil) != enforced {
			t.Errorf("effect %d: err = %v", n, err)
		}
		p = valid()
		p.Clauses[0].Op = ir.Op(n)
		list := Unenforced(p)
		if enforced := p.Clauses[0].Op < ir.NumOps; (len(list) == 0) != enforced {
			t.Errorf("operation %d: %v", n, list)
		}
	}
	if _, err := CompileProgram(valid()); err != nil {
		t.Error(err)
	}
}

// TestEngineLimits: an automaton that the compiler can build and the engine cannot
// hold is refused where it is to be enforced.
func TestEngineLimits(t *testing.T) {
	many := []string{"rule r:"}
	for i := range 1500 {
		many = append(many, fmt.Sprintf(`  block write "/srv/app%04d/**/*.conf"`, i))
	}
	const what = "states; the limit of this version's engine is 8192"
	doc := Document{Name: "p", Text: block(many...)}
	p := mustCompile(t, doc)
	if len(p.Unenforced) != 1 || p.Unenforced[0].Code != diag.OverLimit || !strings.Contains(p.Unenforced[0].Message, what) {
		t.Errorf("%v", p.Unenforced)
	}
	if _, err := Compile([]Document{doc}, Options{Workspace: "/w", Enforce: true}); err == nil || !strings.Contains(err.Error(), what) {
		t.Errorf("err = %v", err)
	}
	if _, err := CompileProgram(p.Program); err == nil || !strings.Contains(err.Error(), what) {
		t.Errorf("err = %v", err)
	}
}

// TestManyNames: hundreds of names of programs and files beside hundreds of directories are
// within what the engine holds. BenchmarkNames tells the time.
func TestManyNames(t *testing.T) {
	var wide randomcase.Case
	wide.Widen()
	if p := mustCompile(t, Document{Name: "p", Text: wide.Document()}); p.Image.Start[dfa.Base] == dfa.Dead {
		t.Error("random cases that are widened are not wide")
	}
	var rules []string
	for i := range 300 {
		rules = append(rules, fmt.Sprintf(`rule r%d: block write "/dir%d/lib%d/**" block read "**/.file%d" block exec "tool%d"`, i, i, i, i, i))
	}
	p, err := Compile([]Document{{Name: "p", Text: block(rules...)}}, Options{Workspace: "/w", Enforce: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d states, %d rows", len(p.Image.RowOf), len(p.Image.Rows))
	for key, want := range map[string]int{"/dir299/lib299/x": 1, "/dir7/lib8/.file150": 1, "/dir7/lib7/bin/tool9": 2, "/dir7/lib8/.file300": 0} {
		found := 0
		for _, row := range p.Image.PathRows([]byte(key)) {
			for _, list := range p.Image.Rows[row].Clauses {
				found += len(list)
			}
		}
		if found != want {
			t.Errorf("%s: %d clauses, want %d", key, found, want)
		}
	}
}
