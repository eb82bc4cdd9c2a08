// SPDX-License-Identifier: Apache-2.0

package dfa

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/actplane/actplane/policy/ir"
)

// hangs is far above what anything here takes on a busy machine, and far below what
// work that grows without bound would: the figures are in the benchmarks.
const hangs = 2 * time.Minute

// TestBlowUp: patterns whose automaton explodes end in an error soon.
func TestBlowUp(t *testing.T) {
	stars := strings.Repeat("*a", 30)
	for name, globs := range map[string][]string{
		"gap":      {"/**/*a" + strings.Repeat("?", 40)},
		"any gap":  {"/**a" + strings.Repeat("[ab]", 40)},
		"stars":    {"/**/" + stars + "b" + strings.Repeat("?", 20), "/**/b" + stars},
		"many":     manyGlobs(4000, func(i int) string { return fmt.Sprintf("/**/x%d*y%d*z", i, i*7) }),
		"long":     manyGlobs(4, func(i int) string { return fmt.Sprintf("/%d%s", i, strings.Repeat("abcdefgh/", 3000)) }),
		"products": manyGlobs(200, func(i int) string { return fmt.Sprintf("/**/%d/**", i) }),
	} {
		t.Run(name, func(t *testing.T) {
			var patterns []ir.Pattern
			for _, g := range globs {
				patterns = append(patterns, ir.Pattern{Text: g})
			}
			start := cpuTime()
			_, err := Compile(program(ir.Write, patterns...))
			took := cpuTime() - start
			var limit *LimitError
			if !errors.As(err, &limit) {
				t.Errorf("err = %v, want a limit", err)
			}
			if took > hangs {
				t.Errorf("took %v", took)
			}
			t.Logf("%v after %v", err, took)
		})
	}
}

// TestLargeInput: what would take long before there is an automaton is counted first.
func TestLargeInput(t *testing.T) {
	braces := strings.Repeat("{a,b}", 10)
	for name, spoil := range map[string]func(p *ir.Program){
		"tokens": func(p *ir.Program) {
			for i := range 200 {
				c := p.Clauses[0]
				c.Op, c.Pattern, c.Args = ir.Exec, ir.Pattern{Kind: ir.ExecProgram, Text: "g"}, []string{fmt.Sprint(braces, i)}
				p.Clauses = append(p.Clauses, c)
			}
		},
		"no text": func(p *ir.Program) {
			for i := range 1000 {
				c := p.Clauses[0]
				c.Pattern.Text = fmt.Sprintf("/%s%d", strings.Repeat("{,}", 10), i)
				p.Clauses = append(p.Clauses, c)
			}
		},
		"targets": func(p *ir.Program) {
			for i := range 300 {
				c := p.Clauses[0]
				c.Pattern = ir.Pattern{Any: true}
				for j := range 31 {
					c.Unless.Targets = append(c.Unless.Targets, ir.Target{Pattern: ir.Pattern{Text: fmt.Sprintf("/t/%d/*%d*", i, j)}})
				}
				p.Clauses = append(p.Clauses, c)
			}
		},
		"sources":  func(p *ir.Program) { p.Sources = many(ir.Source{Pattern: ir.Pattern{Text: "/" + braces}}, 1000) },
		"protects": func(p *ir.Program) { p.Protects = many(ir.Protect{Pattern: ir.Pattern{Text: "/" + braces}}, 1000) },
	} {
		p := program(ir.Write, ir.Pattern{Text: "/a"})
		p.Labels = []ir.Label{{Name: "A"}}
		spoil(p)
		start := cpuTime()
		_, err := Compile(p)
		var limit *LimitError
		if !errors.As(err, &limit) || cpuTime()-start > hangs {
			t.Errorf("%s: %v after %v, want a limit", name, err, cpuTime()-start)
		}
		t.Logf("%s: %v after %v", name, err, cpuTime()-start)
	}
}

func many[T any](x T, n int) []T {
	var out []T
	for range n {
		out = append(out, x)
	}
	return out
}

func manyGlobs(n int, f func(int) string) []string {
	var out []string
	for i := range n {
		out = append(out, f(i))
	}
	return out
}

func TestInvalidPrograms(t *testing.T) {
	valid := func() *ir.Program { return program(ir.Write, ir.Pattern{Text: "/a"}) }
	for name, spoil := range map[string]func(*ir.Program){
		"rule":    func(p *ir.Program) { p.Clauses[0].Rule = 1 },
		"op":      func(p *ir.Program) { p.Clauses[0].Op = ir.NumOps },
		"effect":  func(p *ir.Program) { p.Clauses[0].Effect = 9 },
		"kind":    func(p *ir.Program) { p.Clauses[0].Pattern.Kind = ir.Endpoint },
		"glob":    func(p *ir.Program) { p.Clauses[0].Pattern.Text = "/[" },
		"empty":   func(p *ir.Program) { p.Clauses[0].Pattern.Text = "" },
		"nul":     func(p *ir.Program) { p.Clauses[0].Pattern.Text = "/\x00" },
		"gate":    func(p *ir.Program) { p.Clauses[0].Unless.Gates = []int{0} },
		"lineage": func(p *ir.Program) { p.Clauses[0].Unless.Lineages = []int{-1} },
		"label":   func(p *ir.Program) { p.Labels = nil },
		"args":    func(p *ir.Program) { p.Clauses[0].Args = []string{"x"} },
		"hold":    func(p *ir.Program) { p.Clauses[0].Hold = time.Second },
		"modified": func(p *ir.Program) {
			*p = *program(ir.Connect, endpoint("@public"))
			p.Clauses[0].Unless.Modified = true
		},
		"default":  func(p *ir.Program) { p.Defaults = []ir.Default{{Op: ir.NumOps}} },
		"defaults": func(p *ir.Program) { p.Defaults = make([]ir.Default, ir.MaxDefaults+1) },
		"endorse": func(p *ir.Program) {
			p.Transforms = []ir.Transform{{Endorse: true, Pattern: ir.Pattern{Kind: ir.ExecProgram, Text: "a"}}}
		},
		"strip":   func(p *ir.Program) { p.Transforms = []ir.Transform{{Label: 64}} },
		"protect": func(p *ir.Program) { p.Protects = []ir.Protect{{Pattern: endpoint("@public")}} },
		"host": func(p *ir.Program) {
			*p = *program(ir.Connect, ir.Pattern{Kind: ir.Endpoint, Host: true, Text: "@public"})
		},
		"source":   func(p *ir.Program) { p.Sources = []ir.Source{{Label: 64, Pattern: ir.Pattern{Text: "/a"}}} },
		"exit":     func(p *ir.Program) { p.Gates = []ir.Gate{{Exit: 300}} },
		"any":      func(p *ir.Program) { p.Clauses[0].Pattern.Any = true },
		"labels":   func(p *ir.Program) { p.Labels = make([]ir.Label, ir.MaxLabels+1) },
		"clauses":  func(p *ir.Program) { p.Clauses = make([]ir.Clause, ir.MaxClauses+1) },
		"endpoint": func(p *ir.Program) { *p = *program(ir.Connect, endpoint("github.com")) },
	} {
		p := valid()
		spoil(p)
		if _, err := Compile(p); err == nil {
			t.Errorf("%s: a spoilt program compiles", name)
		}
	}
	compile(t, valid())
	compile(t, &ir.Program{})
}

// shapes are kinds of policies with n globs.
func shapes() map[string]func(i int) string {
	return map[string]func(int) string{
		"directories": func(i int) string { return fmt.Sprintf("/srv/app%04d/**", i) },
		"suffixes":    func(i int) string { return fmt.Sprintf("/srv/app%04d/**/*.conf", i) },
		"names":       func(i int) string { return fmt.Sprintf("/**/secret%04d.key", i) },
		"mixed": func(i int) string {
			return []string{
				fmt.Sprintf("/w/src/mod%04d/**", i), fmt.Sprintf("/**/cred-%04d.json", i),
				fmt.Sprintf("/etc/svc%04d/*.conf", i), fmt.Sprintf("/home/*/.config/tool%04d", i),
			}[i%4]
		},
	}
}

// TestManyGlobs: 4,000 rules with 4,000 globs take at most 2 s and 300 MiB.
func TestManyGlobs(t *testing.T) {
	for name, glob := range shapes() {
		t.Run(name, func(t *testing.T) {
			p := program(ir.Write)
			for i := range 4000 {
				p.Clauses = append(p.Clauses, ir.Clause{Effect: ir.Block, Op: ir.Write, Pattern: ir.Pattern{Text: glob(i)}})
			}
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			start := cpuTime()
			img, err := Compile(p)
			took := cpuTime() - start
			runtime.ReadMemStats(&after)
			if err != nil {
				t.Fatal(err)
			}
			if took > hangs {
				t.Errorf("took %v", took)
			}
			if n := (after.TotalAlloc - before.TotalAlloc) >> 20; n > 300 {
				t.Errorf("allocated %d MiB", n)
			}
			t.Logf("%v, %d states, %d rows, %d MiB allocated, %d MiB from the system", took, len(img.RowOf), len(img.Rows),
				(after.TotalAlloc-before.TotalAlloc)>>20, after.Sys>>20)
		})
	}
}

func BenchmarkCompile100(b *testing.B) {
	p := program(ir.Write)
	for i := range 100 {
		p.Clauses = append(p.Clauses, program(ir.Write, ir.Pattern{Text: fmt.Sprintf("/srv/dir%d/**/*.x%d", i, i)}).Clauses...)
	}
	for b.Loop() {
		if _, err := Compile(p); err != nil {
			b.Fatal(err)
		}
	}
}
