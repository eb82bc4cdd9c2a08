// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/actplane/actplane/internal/randomcase"
	"github.com/actplane/actplane/internal/testenv"
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/model"
)

// discord is where the model and the image part.
type discord struct {
	steps [][]string // that made sense, up to there
	what  string
}

// compare acts a scenario out on both, and compares each verdict and what both
// hold afterwards. It returns nil when they agree, and when the policy has errors;
// sense is the number of steps that make some.
func compare(s *randomcase.Case) (found *discord, sense int, err error) {
	p, err := Compile([]Document{{Name: "policy", Text: s.Document()}}, Options{})
	if err != nil {
		return nil, 0, err
	}
	m, w := model.New(p.Program), newWorld(p)
	var done [][]string
	for _, step := range s.Steps {
		decided := len(step) > 2 && w.processes[step[0]] != nil && w.decides(step)
		sense := decided && w.sense(step[1], step[2:])
		d, err := m.Do(step)
		if err != nil {
			if sense && !strings.Contains(err.Error(), " descriptor ") {
				return &discord{append(done, step), fmt.Sprintf("the model says %v", err)}, len(done), nil
			}
			continue
		}
		done = append(done, step)
		if decided && !sense {
			return &discord{done, "it makes no sense, and the model takes it"}, len(done), nil
		}
		want, got := d.String(), w.do(step)
		if got != want {
			return &discord{done, fmt.Sprintf("the model says %s, the image %s; %s", want, got, d.Why)}, len(done), nil
		}
		if what := unequal(p.Program, m, w, done); what != "" {
			return &discord{done, what}, len(done), nil
		}
	}
	return nil, len(done), nil
}

// unequal compares labels, lineages and gates.
func unequal(p *ir.Program, m *model.Scope, w *world, steps [][]string) string {
	for _, step := range steps {
		if name := step[0]; name != "human" && name != "time" && name != "scope" {
			a, b := m.Process(name), w.process(name)
			if a.Labels != b.labels || a.Lineage != b.lineage {
				return fmt.Sprintf("process %s: the model has %s and lineage %b, the image %s and %b",
					name, m.LabelNames(a.Labels), a.Lineage, m.LabelNames(b.labels), b.lineage)
			}
		}
		for _, word := range step[2:] {
			if !strings.HasPrefix(word, "/") {
				continue
			}
			if d, path, known := w.walk(word, false); known && d.inode != nil && d.target == "" && !inFile(d) {
				if a, b := m.FileLabels(path), d.inode.labels|sources(w.pathRows(path, true)); a != b {
					return fmt.Sprintf("file %s: the model has %s, the image %s", path, m.LabelNames(a), m.LabelNames(b))
				}
			}
		}
	}
	for i := range p.Gates {
		if a, b := m.Fresh(i), w.fresh(i); a != b {
			return fmt.Sprintf("`%s`: fresh is %t in the model, %t with the image", p.Gates[i].Text, a, b)
		}
	}
	return ""
}

// report is a scenario that fails as a case, with the model's verdicts.
func report(s *randomcase.Case) string {
	if found, _, _ := compare(s); len(found.steps) < len(s.Steps) {
		s.Steps = found.steps
	}
	s = randomcase.Minimize(s, func(s *randomcase.Case) bool {
		found, _, err := compare(s)
		return err == nil && found != nil
	})
	found, _, _ := compare(s)
	p, err := Compile([]Document{{Name: "policy", Text: s.Document()}}, Options{})
	if err != nil {
		return err.Error()
	}
	m := model.New(p.Program)
	var verdicts []string
	for _, step := range s.Steps {
		d, _ := m.Do(step)
		verdicts = append(verdicts, d.String())
	}
	return found.what + "\n\n" + s.Text("found", verdicts)
}

// choices is a source of random numbers: the bytes of a text, which a fuzzer
// changes, and then numbers that the text gives.
type choices struct {
	text []byte
	rest *rand.PCG
}

func newChoices(text []byte) *choices {
	h := fnv.New64a()
	h.Write(text)
	return &choices{text, rand.NewPCG(h.Sum64(), 1)}
}

func (c *choices) Uint64() uint64 {
	n := c.rest.Uint64()
	if len(c.text) > 0 {
		n = uint64(c.text[0])<<56 | n>>8
		c.text = c.text[1:]
	}
	return n
}

// FuzzDifferential is TestDifferential for as long as one likes.
func FuzzDifferential(f *testing.F) {
	for i := range 20 {
		f.Add([]byte(strings.Repeat(string(rune('a'+i)), i)))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 1000 {
			return
		}
		s := (&randomcase.Generator{Rand: rand.New(newChoices(text))}).Case()
		if len(text)%2 == 1 {
			s.Widen()
		}
		if found, _, err := compare(s); err == nil && found != nil {
			t.Fatal(report(s))
		}
	})
}

// TestDifferential compares the model with the image on random policies and
// traces.
func TestDifferential(t *testing.T) {
	r := rand.New(rand.NewPCG(testenv.Seed(t), 1))
	const cases = 500
	valid, steps := 0, 0
	for i := range cases {
		text := make([]byte, 8)
		for i := range text {
			text[i] = byte(r.Uint32())
		}
		g := &randomcase.Generator{Rand: rand.New(newChoices(text))}
		s := g.Case()
		if i%4 == 3 {
			s.Widen()
		}
		found, sense, err := compare(s)
		if err != nil {
			continue
		}
		valid++
		steps += sense
		if found != nil {
			t.Fatalf("scenario %q: %s", text, report(s))
		}
	}
	t.Logf("%d scenarios with a valid policy, %d steps", valid, steps)
	if valid*2 < cases || steps < valid*5 {
		t.Error("the scenarios make too little sense")
	}
}

// TestMovedBehind: a directory that moves counts under each clause that names other files
// below its new path, also where another clause decides about these files first.
func TestMovedBehind(t *testing.T) {
	for _, c := range []struct{ first, then, want string }{
		{`block write "/*/*/a"`, `kill write "/w/d/a"`, "kill r1"},
		{`block write "/*/*/a"`, `ask write "/w/d/a"`, "ask r1"},
		{`block write "/*/*/a"`, `block write "/w/d/a"`, "block r1"},
		{`block write "/*/*/a"`, `block write "/s/d/{a,b}"`, "block r1"},
		{`block write "/*/*/a" unless target "/w/d/*"`, `block write "/w/d/a"`, "block r0"},
		{`block write "/*/*/a" if true`, `notify write "/w/d/a"`, "notify r1"},
		{`block write "/*/*/a"`, `notify write "/*/d/a"`, "ok"},
		{`block unlink "/*/*/a"`, `ask unlink "/w/d/a"`, "ask r1"},
	} {
		s := &randomcase.Case{
			Declarations: []string{"rule RULE: " + c.first, "rule RULE: " + c.then},
			Steps:        [][]string{{"a", "rename", "/w/d", "/s/d"}},
		}
		found, sense, err := compare(s)
		if err != nil || found != nil || sense != 1 {
			t.Errorf("%s; %s: %v, %+v", c.first, c.then, err, found)
			continue
		}
		p, err := Compile([]Document{{Name: "policy", Text: s.Document()}}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if d, err := model.New(p.Program).Do(s.Steps[0]); err != nil || d.String() != c.want {
			t.Errorf("%s; %s: %v, %v, want %s", c.first, c.then, d, err, c.want)
		}
	}
}
