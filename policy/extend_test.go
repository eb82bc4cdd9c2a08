// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/actplane/actplane/internal/randomcase"
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/model"
)

func extend(t *testing.T, base *ir.Program, text string, confine bool) *ir.Program {
	t.Helper()
	p, err := Extend(base, Addition{Name: "added", Text: []byte(text), Confine: confine})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return p.Program
}

func compiled(t *testing.T, text string) *ir.Program {
	t.Helper()
	p, err := Compile([]Document{{Name: "base", Text: []byte(text)}}, Options{Protect: []string{"/w/actplane.yaml"}})
	if err != nil {
		t.Fatal(err)
	}
	return p.Program
}

const extendedBase = `
version: 1
workspace: /w
policy: |
  source SECRET = file "/w/.env"
  default block connect
  rule a:
    allow connect "10.0.0.1"
    block exec "git" "push" unless after exec "make" exits 0 since write "src/**"
    block exec "rm" unless lineage-includes exec "/bin/t1"
`

// keeps makes sure that all that a program has stands in another in its place, and that
// the rest is of the layers that were added.
func keeps(t *testing.T, base, p *ir.Program) {
	t.Helper()
	old, now := reflect.ValueOf(*base), reflect.ValueOf(*p)
	for i := range old.NumField() {
		a, b := old.Field(i), now.Field(i)
		if a.Kind() == reflect.Slice {
			if b.Len() < a.Len() {
				t.Fatalf("%s: %d, were %d", old.Type().Field(i).Name, b.Len(), a.Len())
			}
			b = b.Slice(0, a.Len())
		}
		if a.Kind() == reflect.Slice && a.Len() == 0 {
			continue
		}
		if !reflect.DeepEqual(a.Interface(), b.Interface()) {
			t.Errorf("%s: %v, were %v", old.Type().Field(i).Name, b, a)
		}
	}
	for i := len(base.Rules); i < len(p.Rules); i++ {
		if p.Rules[i].Layer < len(base.Layers) || !p.Layers[p.Rules[i].Layer].Added {
			t.Errorf("rule %d is of layer %d", i, p.Rules[i].Layer)
		}
	}
	for i := len(base.Clauses); i < len(p.Clauses); i++ {
		if p.Clauses[i].Rule < len(base.Rules) {
			t.Errorf("clause %d is of rule %d", i, p.Clauses[i].Rule)
		}
	}
}

func TestExtendKeepsNumbers(t *testing.T) {
	base := compiled(t, extendedBase)
	first := extend(t, base, `# bare text
source OWN = exec "t2"
rule b:
  block write file "out/**" if OWN and SECRET
  block exec "rm" unless lineage-includes exec "/bin/t1"
  block exec "git" unless after exec "make" exits 0 since write "src/**"
`, false)
	keeps(t, base, first)
	if len(first.Gates) != 1 || len(first.Lineages) != 1 || len(first.Labels) != 2 {
		t.Errorf("gates %v, lineages %v, labels %v: what is equal is one", first.Gates, first.Lineages, first.Labels)
	}
	if got := first.Clauses[len(base.Clauses)]; got.Pattern.Text != "/w/out/**" || len(got.If) != 1 || got.If[0].All != 3 || got.Pos != "added:4:3" {
		t.Errorf("%+v", got)
	}
	second := extend(t, first, "version: 1\nprotect: [\"/w/k\"]\npolicy: |\n  rule c: block read \"/x\" if OWN or SECRET\n", true)
	keeps(t, first, second)
	bit := uint64(1) << 2
	if label := second.Labels[2]; !label.Confines || label.Layer != len(second.Layers)-1 {
		t.Errorf("%+v", label)
	}
	if terms := second.Clauses[len(second.Clauses)-1].If; len(terms) != 2 || terms[0].All&bit == 0 || terms[1].All&bit == 0 {
		t.Errorf("%v", terms)
	}
	if terms := second.Protects[0].If; len(terms) != 1 || terms[0].All != bit {
		t.Errorf("%v", terms)
	}
	if _, err := Extend(second, Addition{Name: "x", Text: []byte("rule d: block read \"/y\" if added")}); err == nil {
		t.Error("the engine's label can be tested by its name")
	}
}

// An inner layer never takes: not what an outer one lifts, nor its labels.
func TestExtendRefuses(t *testing.T) {
	for _, test := range []struct {
		text, says string
		confine    bool
	}{
		{"", "P005", false},
		{"version: 1\nlimits: {pids: 5}\npolicy: |\n  rule a: block exec \"x\"\n", "P502", false},
		{"version: 1\nfeedback: {stderr: true}\npolicy: |\n  rule a: block exec \"x\"\n", "P502", false},
		{"version: 1\nrules: {a: {policy: 'rule a: block exec \"x\"'}}\ndomains: {d: {bind: [{rule: a, mode: locked}]}}\n", "P502", false},
		{"declassify SECRET by exec \"x\"\nrule a: block exec \"x\"", "P213", false},
		{"rule a: block exec \"x\" if NOBODY", "P203", false},
		{"default block exec\nrule a: block exec \"x\"", "P502", true},
		{"rule a: allow exec \"x\"", "P502", true},
		{"rule a: block exec \"x\" unless contract c", "P501", false},
		{"rule a: block connect \"a.example.org\"", "P501", false},
		{"rule a: block exec \"x\x00\"", "P002", false},
		{"{", "P0", false},
	} {
		_, err := Extend(compiled(t, extendedBase), Addition{Name: "added", Text: []byte(test.text), Confine: test.confine})
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%q: %v", test.text, err)
		}
	}
	endorsed := compiled(t, "version: 1\npolicy: |\n  endorse GOOD by exec \"/bin/t1\"\n  rule a: block exec \"x\" if GOOD\n")
	if _, err := Extend(endorsed, Addition{Name: "added", Text: []byte("source L = file \"/x\"\nrule a: block exec \"y\" if L")}); err == nil || !strings.Contains(err.Error(), "P502") {
		t.Errorf("a label that washes an endorsed one off: %v", err)
	}
	full := compiled(t, extendedBase)
	for len(full.Labels) < ir.MaxLabels {
		full.Labels = append(full.Labels, ir.Label{Name: strings.Repeat("L", len(full.Labels))})
	}
	if _, err := Extend(full, Addition{Name: "added", Text: []byte("rule a: block exec \"y\""), Confine: true}); err == nil || !strings.Contains(err.Error(), "P401") {
		t.Errorf("no label is left: %v", err)
	}
}

// What happens under a policy that was extended, at random, could have happened under the
// policy before: nothing is allowed that was refused in the same state.
func TestExtendOnlyNarrows(t *testing.T) {
	cases, steps, narrowed := 0, 0, 0
	for seed := range uint64(400) {
		g := &randomcase.Generator{Rand: rand.New(rand.NewPCG(seed, 7))}
		s := g.Case()
		base, err := Compile([]Document{{Name: "base", Text: s.Document()}}, Options{})
		if err != nil {
			continue
		}
		added := g.Case()
		for _, confine := range []bool{false, true} {
			extended, err := Extend(base.Program, Addition{Name: "added", Text: added.Document(), Confine: confine})
			if err != nil {
				continue
			}
			keeps(t, base.Program, extended.Program)
			cases++
			done, less := follow(t, seed, base.Program, extended.Program, append(s.Steps, added.Steps...), confine)
			steps, narrowed = steps+done, narrowed+less
		}
	}
	t.Logf("%d cases, %d steps, %d of them narrowed", cases, steps, narrowed)
	if cases < 100 || narrowed < 100 {
		t.Errorf("%d cases, %d steps, %d of them narrowed", cases, steps, narrowed)
	}
}

// follow acts out under both what the extended policy allows.
func follow(t *testing.T, seed uint64, base, extended *ir.Program, trace [][]string, confine bool) (steps, narrowed int) {
	t.Helper()
	before, after := model.New(base), model.New(extended)
	for i, words := range trace {
		if words[0] == "human" || words[0] == "time" {
			continue // a request is of one of them
		}
		if p := after.Process(words[0]); confine && words[0] == "a" {
			p.Labels |= 1 << (len(extended.Labels) - 1)
		}
		got, err := after.Do(words)
		if err != nil {
			continue
		}
		steps++
		if got.Denied() {
			if layerOfRule(extended, got) >= len(base.Layers) {
				narrowed++
			}
			if got.Effect == ir.Kill {
				return steps, narrowed // whose end is another before
			}
			continue
		}
		was, err := before.Do(words)
		if err != nil {
			t.Fatalf("seed %d, step %d %q: %v", seed, i, words, err)
		}
		if was.Denied() {
			t.Fatalf("seed %d, step %d %q: refused by %s before, allowed now", seed, i, words, was)
		}
	}
	return steps, narrowed
}

func layerOfRule(p *ir.Program, d model.Decision) int {
	for i := range p.Clauses {
		if &p.Clauses[i] == d.Clause {
			return p.LayerOf(i)
		}
	}
	return -1
}
