// SPDX-License-Identifier: Apache-2.0

package dfa

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/actplane/actplane/internal/testenv"
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/pattern"
)

func tool(name string) ir.Pattern { return ir.Pattern{Kind: ir.ExecProgram, Text: name} }

// TestWhatOpens: allow clauses and transforms are of the resolved program, never
// of the name by which it was invoked, and of no key that cannot be read.
func TestWhatOpens(t *testing.T) {
	p := &ir.Program{
		Labels:     []ir.Label{{Name: "S"}, {Name: "R", Integrity: true}},
		Rules:      []ir.Rule{{Name: "outer"}, {Name: "inner", Layer: 1}},
		Transforms: []ir.Transform{{Label: 0, Pattern: tool("redact")}, {Endorse: true, Label: 1, Pattern: tool("redact")}},
		Defaults: []ir.Default{
			{Effect: ir.Ask, Hold: time.Minute, Op: ir.Exec}, {Effect: ir.Block, Op: ir.Exec, Layer: 1}, {Effect: ir.Block, Op: ir.Connect},
		},
		Clauses: []ir.Clause{
			{Rule: 0, Effect: ir.Allow, Op: ir.Exec, Pattern: tool("redact"), Unless: ir.Unless{Modified: true}},
			{Rule: 1, Effect: ir.Allow, Op: ir.Exec, Pattern: tool("redact")},
			{Rule: 0, Effect: ir.Allow, Op: ir.Send, Pattern: endpoint("@private")},
			{Rule: 0, Effect: ir.Allow, Op: ir.Connect, Pattern: endpoint("@private")},
		},
	}
	img := compile(t, p)
	path, name, unknown := rowOf(img, Path, []byte("/usr/bin/redact")), rowOf(img, Name, []byte("redact")), img.Rows[UnknownRow]
	if !slices.Equal(path.Allows[ir.Exec], []uint16{0, 1}) || path.Declassify != 1 || path.Endorse != 2 || img.Integrity != 2 {
		t.Errorf("the program opens nothing: %+v", path)
	}
	for what, row := range map[string]*Row{"the name": name, "an unknown path": &unknown} {
		if len(row.Allows[ir.Exec])+len(row.Allows[ir.Send]) > 0 || row.Declassify|row.Endorse != 0 {
			t.Errorf("%s opens something: %+v", what, row)
		}
	}
	// The block comes first; the outer layer's allow lifts both, the inner's its own.
	if d := img.Defaults; d[0].Effect != ir.Block || d[2].Effect != ir.Ask || d[2].Hold != time.Minute {
		t.Errorf("defaults: %+v", d)
	}
	if outer, inner := img.Clauses[0], img.Clauses[1]; outer.Lifts != 0b101 || inner.Lifts != 0b001 || !outer.UnlessModified {
		t.Errorf("lifts: %b and %b", outer.Lifts, inner.Lifts)
	}
	if send, connect := img.Clauses[2].Lifts, img.Clauses[3].Lifts; send != 0b010 || connect != 0b010 {
		t.Errorf("lifts: %b and %b", send, connect)
	}
	if row := rowOf(img, Address, []byte("\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\x0a\x00\x00\x01\x00\x50")); !slices.Equal(row.Allows[ir.Send], []uint16{2, 3}) {
		t.Errorf("sends to 10.0.0.1: %+v", row.Allows)
	}
	if want := uint32(1<<ir.Exec | 1<<ir.Connect | 1<<ir.Send); img.Ops != want {
		t.Errorf("operations %b, want %b", img.Ops, want)
	}
}

func TestProtects(t *testing.T) {
	img := compile(t, &ir.Program{Labels: []ir.Label{{Name: "A"}}, Protects: []ir.Protect{
		{Pattern: ir.Pattern{Text: "/w/.claude/**"}}, {Pattern: ir.Pattern{Text: "/**/*.md"}, If: []ir.Term{{All: 1}, {None: 1}}},
	}})
	for key, want := range map[string][]uint16{"/w/.claude": {0}, "/w/.claude/x": {0}, "/w": nil, "/w/.claude/x.md": {0, 1, 2}, "/x.md": {1, 2}} {
		if got := rowOf(img, Path, []byte(key)).Protects; !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", key, got, want)
		}
	}
	if got := img.Rows[UnknownRow].Protects; len(got) != 3 {
		t.Errorf("a path that cannot be read: %v", got)
	}
}

// TestAskedAndGranted: what stands behind a clause that asks is still there when
// it has been granted.
func TestAskedAndGranted(t *testing.T) {
	p := program(ir.Write, ir.Pattern{Text: "/a"}, ir.Pattern{Text: "/a"})
	p.Clauses[0].Effect, p.Clauses[0].If = ir.Ask, nil
	p.Clauses[1].Effect, p.Clauses[1].If = ir.Notify, nil
	if got := rowOf(compile(t, p), Path, []byte("/a")).Clauses[ir.Write]; !slices.Equal(got, []uint16{0, 1}) {
		t.Errorf("candidates %v", got)
	}
}

func TestHosts(t *testing.T) {
	host := func(text string) ir.Pattern { return ir.Pattern{Kind: ir.Endpoint, Host: true, Text: text} }
	for _, c := range []struct{ pattern, yes, no string }{
		{"*.github.com", "api.github.com:443", "github.com:443"},
		{"github.com:443", "github.com:443", "github.com:4433"},
		{"a.b:250-12000", "a.b:999", "a.b:12001"},
		{"a.b:250-12000", "a.b:12000", "a.b:249"},
		{"{a,b}.io:80", "b.io:80", "c.io:80"},
	} {
		img := compile(t, program(ir.Connect, host(c.pattern), ir.Pattern{Kind: ir.Endpoint, Any: true}))
		for key, want := range map[string]int{c.yes: 2, c.no: 1} {
			if got := img.Rows[img.Row(Host, []byte(key))].Clauses[ir.Connect]; len(got) != want {
				t.Errorf("%s: %d clauses match %s, want %d", c.pattern, len(got), key, want)
			}
		}
	}
	for port := 1; port < 65536; port += 7 {
		lo, hi := 90+port%50, 90+port%50+port%30000
		e, err := pattern.ParseEndpoint(fmt.Sprintf("h:%d-%d", lo, hi), "/")
		if err != nil {
			t.Fatal(err)
		}
		key := fmt.Sprintf("h:%d", port)
		if got, want := matchesOne(e.Names(), key), port >= lo && port <= hi; got != want {
			t.Fatalf("%s matches %s: %t", e.Text, key, got)
		}
	}
}

// matchesOne runs elements of one byte each.
func matchesOne(alternatives [][]pattern.Elem, key string) bool {
	return slices.ContainsFunc(alternatives, func(elems []pattern.Elem) bool {
		if len(elems) != len(key) {
			return false
		}
		for i, e := range elems {
			if r := e.Seqs[0][0]; key[i] < r.Lo || key[i] > r.Hi {
				return false
			}
		}
		return true
	})
}

// matching returns the clauses that match a path, as an engine finds them.
func matching(img *Image, op ir.Op, key string) []int {
	rows := []*Row{rowOf(img, Path, []byte(key)), rowOf(img, Base, []byte(key))}
	targets := uint64(0)
	for _, r := range rows {
		targets |= r.Targets
	}
	var out []int
	for _, r := range rows {
		for _, i := range r.Clauses[op] {
			if c := &img.Clauses[i]; c.Target < 0 || targets>>c.Target&1 == 0 {
				out = append(out, c.Clause)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// TestSplit compares the two ways to build an image.
func TestSplit(t *testing.T) {
	r := rand.New(rand.NewPCG(testenv.Seed(t), 3))
	pick := func(op ir.Op) ir.Pattern {
		kind := KindOf(op)
		if r.IntN(6) == 0 {
			return ir.Pattern{Kind: kind, Any: true}
		}
		for {
			if g := canonicalGlob([]string{"/", "**/"}[r.IntN(2)]+randomGlob(r, 4), pattern.Path); g != "" {
				return ir.Pattern{Kind: kind, Text: g}
			}
		}
	}
	limits := bounds{raw: 1 << 17, steps: maxSteps, final: 1 << 16}
	compared := 0
	for range 200 {
		op := []ir.Op{ir.Write, ir.Exec}[r.IntN(2)]
		p := program(op)
		for i := range 1 + r.IntN(5) {
			c := ir.Clause{Effect: ir.Block, Op: op, Pattern: pick(op), If: []ir.Term{{All: 1 << i}}}
			for range r.IntN(3) {
				c.Unless.Targets = append(c.Unless.Targets, ir.Target{Not: r.IntN(2) == 0, Pattern: pick(op)})
			}
			p.Clauses = append(p.Clauses, c)
		}
		one, err := build(p, false, limits)
		var limit *LimitError
		if errors.As(err, &limit) { // one in thousands is that hard
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		compared++
		two, err := build(p, true, limits)
		if err != nil {
			t.Fatal(err)
		}
		checkImage(t, one)
		checkImage(t, two)
		for range 60 {
			key := "/" + randomKey(r, 6)
			if a, b := matching(one, op, key), matching(two, op, key); !slices.Equal(a, b) {
				t.Fatalf("%q: %v in one automaton, %v in two; clauses %+v", key, a, b, p.Clauses)
			}
		}
	}
	if compared < 190 {
		t.Errorf("only %d policies could be built", compared)
	}
}

// TestSplitOnlyWhenNeeded: few patterns are matched from one entry, many that multiply
// from two.
func TestSplitOnlyWhenNeeded(t *testing.T) {
	for n, want := range map[int]bool{5: false, 100: true} {
		p := program(ir.Write)
		for i := range n {
			p.Clauses = append(p.Clauses, program(ir.Write,
				ir.Pattern{Text: fmt.Sprintf("/srv/app%d/**/*.conf", i)}, ir.Pattern{Text: fmt.Sprintf("/**/secret%d.json", i)}).Clauses...)
		}
		img := compile(t, p)
		if got := img.Start[Base] != Dead; got != want {
			t.Errorf("%d patterns: names have an entry of their own: %t, want %t", 2*n, got, want)
		}
	}
}
