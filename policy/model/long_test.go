// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/actplane/actplane/policy"
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/model"
)

// longTraces make n steps of one kind or more: what each of them costs must not depend on
// how many there were before.
var longTraces = map[string]func(n int) []string{
	"descriptors": func(n int) []string { return steps(n, "p fdopen f# r /w/f#") },
	"forks": func(n int) []string {
		return slices.Concat(steps(n/2, "p fdopen f# r /w/f#"), steps(n/2, "p fork c#", "c# setenv A# x"))
	},
	"depth": func(n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprintf("p%d fork p%d", i, i+1), fmt.Sprintf("p%d fdopen f%d r /w/f", i+1, i))
		}
		return out
	},
	"directories": func(n int) []string { return steps(n, "p mkdir /w/d#", "p write /w/d#/f", "p rename /w/d# /w/e#") },
	"moves": func(n int) []string {
		return slices.Concat(steps(n, "p write /w/f#"), steps(n, "p rename /w/f# /w/g#"))
	},
	"found": func(n int) []string {
		return slices.Concat(steps(n, "p open /w/u#/x"), steps(n, "p rename /w/v# /w/y#"))
	},
	"large moves": func(n int) []string {
		return slices.Concat(steps(n, "p write /w/d/f#"), steps(n/2, "p rename /w/d /w/e", "p rename /w/e /w/d"))
	},
	"exchanges": func(n int) []string {
		return slices.Concat(steps(n, "p write /w/f#"), steps(n, "p exchange /w/f# /w/other"))
	},
	"gates":     func(n int) []string { return steps(n, "p exec /usr/bin/make", "q exec /usr/bin/git commit") },
	"variables": func(n int) []string { return slices.Concat(steps(n, "p setenv A# x"), steps(n, "p exec /bin/asks #")) },
	"requests":  func(n int) []string { return slices.Concat(steps(n, "p exec /bin/asks #"), steps(n, "human approve")) },
	"held": func(n int) []string {
		return slices.Concat(steps(n, "p# exec /bin/waits"), steps(n, "human approve once"))
	},
	"time": func(n int) []string { return slices.Concat(steps(n, "p# exec /bin/waits"), steps(n, "time 100ms")) },
	"shared": func(n int) []string {
		return slices.Concat([]string{"p mmapshared /w/m"}, steps(n, "p# read /w/secret", "p# write /w/f#"))
	},
	"lost": func(n int) []string { return slices.Concat(steps(n, "p write /w/f#"), steps(n, "scope lost")) },
	"names of one": func(n int) []string {
		return slices.Concat([]string{"p write /w/f"}, steps(n, "p link /w/f /w/g#", "p unlink /w/g#"))
	},
}

func steps(n int, forms ...string) (out []string) {
	for i := range n {
		for _, form := range forms {
			out = append(out, strings.ReplaceAll(form, "#", fmt.Sprint(i)))
		}
	}
	return out
}

// TestLongTraces: four times the steps allocate some four times as much, and end. What
// looks at all that was before at each step takes minutes and gigabytes here.
func TestLongTraces(t *testing.T) {
	p, err := policy.Compile([]policy.Document{{Name: "p.yaml", Text: []byte(`
workspace: /w
protect: ["/kept/**"]
policy: |
  source S = file "/w/secret"
  rule gate: block exec "git" "commit" unless after exec "make" since write "**/*.py"
  rule asks: ask exec "asks"
  rule waits: ask hold 5m exec "waits"
  rule stays: block connect any if S
`)}}, policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, trace := range longTraces {
		t.Run(name, func(t *testing.T) {
			act := func(n int) float64 {
				var before, after runtime.MemStats
				list := trace(n)
				runtime.ReadMemStats(&before)
				s := model.New(p.Program)
				for _, step := range list {
					if _, err := s.Do(strings.Fields(step)); err != nil {
						t.Fatalf("%s: %v", step, err)
					}
				}
				runtime.ReadMemStats(&after)
				return float64(after.TotalAlloc - before.TotalAlloc)
			}
			few, many := act(2000), act(8000)
			if many > 6*few {
				t.Errorf("2,000 allocate %.0f bytes, and 8,000 %.0f", few, many)
			}
		})
	}
}

// Of a long trace that fails, and of one that is explained, each step is looked at once.
func TestLongAccount(t *testing.T) {
	p, err := policy.Compile([]policy.Document{{Name: "p.yaml", Text: []byte("policy: |\n  source S = file \"/w/secret\"\n  rule stays: block connect any if S\n")}}, policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var c model.Case
	for _, line := range append(steps(20000, "p fork c#", "c# read /w/secret"), "c7 connect 10.0.0.1:1") {
		step := model.Step{Text: line, Words: strings.Fields(line), Verdict: "ok"}
		c.Steps = append(c.Steps, step)
	}
	f := model.Run(p.Program, &c)
	if f == nil || f.Step != len(c.Steps)-1 || !strings.Contains(strings.Join(f.Notes, "\n"), "c7 holds S from event 16: `c7 read /w/secret`") {
		t.Errorf("%+v", f)
	}
	if list, err := model.Explain(p.Program, c.Steps, 0); err != nil || len(list) != len(c.Steps) {
		t.Errorf("%d explained, %v", len(list), err)
	}
}

// What would be looked at again and again is bounded, and said.
func TestTooMuchAtOnce(t *testing.T) {
	for want, list := range map[string][]string{
		"has 128 names already":                                       slices.Concat([]string{"p write /f"}, steps(200, "p link /f /g#")),
		"more than 10000 shared mappings":                             steps(10001, "p shm m#"),
		"more than 1000000 shared mappings, those that children have": slices.Concat(steps(5000, "p shm m#"), steps(300, "p fork c#", "c# exit 0")),
	} {
		s := model.New(&ir.Program{})
		var err error
		for i := 0; i < len(list) && err == nil; i++ {
			_, err = s.Do(strings.Fields(list[i]))
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}
