// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/actplane/actplane/bpf"
	"github.com/actplane/actplane/internal/testenv"
	"github.com/actplane/actplane/policy"
	"github.com/actplane/actplane/policy/dfa"
	"github.com/actplane/actplane/policy/ir"
)

// checker runs the code that matches and decides by itself, natively.
type checker struct {
	testing.TB
	objects bpf.CheckerObjects
	kernel  *Kernel // holds the maps that store fills
	image   *dfa.Image
}

func newChecker(t testing.TB, text string) *checker {
	t.Helper()
	testenv.RequireBPF(t)
	compiled, err := policy.Compile([]policy.Document{{
		Name: "test", Text: []byte("version: 1\npolicy: |\n" + indent(text)), Layer: policy.Host,
	}}, policy.Options{Workspace: "/w"})
	if err != nil {
		t.Fatal(err)
	}
	spec, err := bpf.LoadChecker()
	if err != nil {
		t.Fatal(err)
	}
	c := &checker{TB: t, image: compiled.Image}
	if err := spec.LoadAndAssign(&c.objects, nil); err != nil {
		t.Fatalf("%+v", err)
	}
	t.Cleanup(func() { _ = c.objects.Close() })
	o := &c.objects
	c.kernel = &Kernel{spec: spec, maps: map[string]*ebpf.Map{
		"images": o.Images, "dfa_small": o.DfaSmall, "dfa_large": o.DfaLarge, "states": o.States, "rows": o.Rows,
		"candidates": o.Candidates, "clauses": o.Clauses, "gate_refs": newUnused(t, spec, "gate_refs"), "tokens": newUnused(t, spec, "tokens"),
		"moves": newUnused(t, spec, "moves"), "move_classes": newUnused(t, spec, "move_classes"),
	}}
	tables, err := encode(compiled.Image)
	if err != nil {
		t.Fatal(err)
	}
	if err := tables.store(c.kernel, 0); err != nil {
		t.Fatal(err)
	}
	return c
}

// newUnused makes a map that the checker's programs do not use, as store needs all.
func newUnused(t testing.TB, spec *ebpf.CollectionSpec, name string) *ebpf.Map {
	t.Helper()
	full, err := bpf.LoadEnforcer()
	if err != nil {
		t.Fatal(err)
	}
	outer := full.Maps[name].Copy()
	spec.Maps[name] = outer
	m, err := ebpf.NewMap(outer)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func (c *checker) run(program *ebpf.Program, q bpf.CheckerQuery, options *ebpf.RunOptions) bpf.CheckerQuery {
	c.Helper()
	if err := c.objects.Queries.Put(uint32(0), q); err != nil {
		c.Fatal(err)
	}
	if result, err := program.Run(options); err != nil || result != 0 {
		c.Fatalf("run: %d %v", result, err)
	}
	if err := c.objects.Queries.Lookup(uint32(0), &q); err != nil {
		c.Fatal(err)
	}
	return q
}

// query puts a key where the programs expect it.
func (c *checker) query(start dfa.Start, key []byte) bpf.CheckerQuery {
	c.Helper()
	q := bpf.CheckerQuery{Start: uint32(start), Length: uint32(len(key))}
	var scratch bpf.EnforcerScratch
	switch start {
	case dfa.Address:
		copy(q.Address[:], key)
	case dfa.Name:
		fill(scratch.Name[:], key)
	default:
		former := bytes.Repeat([]byte("/x"), 2047) // paths that were here before
		fill(scratch.Path[:], former[:4095-len(key)])
		fill(scratch.Path[4095-len(key):], key)
		scratch.Base = uint64(4095 - len(key) + bytes.LastIndexByte(key, '/') + 1)
	}
	if err := c.objects.Scratches.Put(uint32(0), scratch); err != nil {
		c.Fatal(err)
	}
	return q
}

func fill(to []int8, key []byte) {
	for i, b := range key {
		to[i] = int8(b)
	}
}

func (c *checker) row(start dfa.Start, key []byte) int {
	c.Helper()
	q := c.query(start, key)
	q.Times = 1
	q = c.run(c.objects.CheckRow, q, &ebpf.RunOptions{})
	return int(q.Row)
}

const checkedPolicy = `
source S = file "**/.env"
source T = exec "t*"
rule a:
  block write file "/a/**/x?[a-f].{c,h}" if S and not T
  notify read file "/a/*"
  kill open file "/**/deep/**" if T
  block exec "git"
  block exec "/usr/bin/*" unless target "/usr/bin/ok*"
  block connect "10.0.0.0/9:1-1000"
  notify connect "@loopback"
  block connect "[2001:db8::]:443"
  block connect "unix:/run/*.sock"
default block write
default kill read
default notify exec
rule b:
  allow write "/a/**" if T
  allow read "/a/**" unless lineage-includes exec "m"
  allow read "/b/**" if S
`

// The kernel's walk finds the rows that Go's walk finds, whatever the key, also where
// last names have an entry of their own.
func TestRowsAsInGo(t *testing.T) {
	rowsAsInGo(t, checkedPolicy)
	rowsAsInGo(t, checkedPolicy+wide(40))
}

func rowsAsInGo(t *testing.T, text string) {
	c := newChecker(t, text)
	random := rand.New(rand.NewPCG(testenv.Seed(t), 0))
	pieces := []string{"/a", "/b", "/x1a.c", "/x2f.h", "/deep", "/.env", "/usr/bin", "/git", "/ok", "t", "\xff", "/", strings.Repeat("/long", 60)}
	for range 4000 {
		var key strings.Builder
		for range random.IntN(9) {
			key.WriteString(pieces[random.IntN(len(pieces))])
		}
		start, text := dfa.Path, []byte("/"+key.String())
		switch random.IntN(4) {
		case 1:
			start = dfa.Unix
		case 2:
			start, text = dfa.Name, text[:min(len(text), 255)]
		case 3:
			start, text = dfa.Address, randomAddress(random)
		}
		text = text[:min(len(text), 4094)]
		want := c.image.Row(start, text)
		if start == dfa.Path {
			want = pathRow(c.image, string(text))
		}
		if got := c.row(start, text); got != want {
			t.Fatalf("start %d, key %q: row %#x, want %#x", start, text, got, want)
		}
	}
}

func randomAddress(random *rand.Rand) []byte {
	address := netip.MustParseAddr([]string{"10.1.2.3", "10.200.0.1", "127.9.9.9", "2001:db8::", "::1", "::", "8.8.8.8"}[random.IntN(7)])
	port := []uint16{0, 1, 443, 1000, 1001, 65535}[random.IntN(6)]
	bytes := address.As16()
	return append(bytes[:], byte(port>>8), byte(port))
}

// The kernel's decision on one or two rows is the strictest of those clauses that match,
// and of these the first.
func TestDecisionsAsInGo(t *testing.T) {
	decisionsAsInGo(t, checkedPolicy, 1)
	decisionsAsInGo(t, checkedPolicy, 2)
	decisionsAsInGo(t, checkedPolicy+wide(40), 2)
}

func decisionsAsInGo(t *testing.T, text string, rows int) {
	c := newChecker(t, text)
	if err := c.objects.Scopes.Put(uint32(0), bpf.EnforcerScope{Generation: 1}); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(testenv.Seed(t), 0))
	for range 4000 {
		q := bpf.CheckerQuery{
			Labels:  random.Uint64N(4),
			Lineage: random.Uint64N(2),
			Targets: random.Uint64N(2),
			Row:     uint32(random.IntN(len(c.image.Rows))),
			Op:      uint32(random.IntN(int(ir.NumOps))),
		}
		if rows == 2 {
			q.Row |= uint32(random.IntN(len(c.image.Rows))) << bpf.EnforcerLimitsLIMIT_ROW_BITS
		}
		got := c.run(c.objects.CheckDecide, q, &ebpf.RunOptions{})
		effect, clause := decideInGo(c.image, q)
		if got.Effect != effect || effect != 0 && got.Clause != clause {
			t.Fatalf("%+v: effect %d clause %d, want %d %d", q, got.Effect, got.Clause, effect, clause)
		}
	}
}

func decideInGo(image *dfa.Image, q bpf.CheckerQuery) (effect, clause uint32) {
	matches := func(index uint16) bool {
		candidate := image.Clauses[index]
		return q.Labels&candidate.All == candidate.All && q.Labels&candidate.None == 0 &&
			q.Lineage&candidate.UnlessLineage == 0 && candidate.Arg < 0 &&
			(candidate.Target < 0 || q.Targets>>candidate.Target&1 == 0)
	}
	const bits = bpf.EnforcerLimitsLIMIT_ROW_BITS
	rows := [2]*dfa.Row{&image.Rows[q.Row&(1<<bits-1)], &image.Rows[q.Row>>bits]}
	for _, index := range slices.Concat(rows[0].Clauses[q.Op], rows[1].Clauses[q.Op]) {
		if e := uint32(image.Clauses[index].Effect); matches(index) && (e > effect || e == effect && uint32(index) < clause) {
			effect, clause = e, uint32(index)
		}
	}
	var lifted uint64
	for _, index := range slices.Concat(rows[0].Allows[q.Op], rows[1].Allows[q.Op]) {
		if matches(index) {
			lifted |= image.Clauses[index].Lifts
		}
	}
	for i, d := range image.Defaults {
		if d.Op == ir.Op(q.Op) && lifted>>i&1 == 0 && uint32(d.Effect) > effect {
			effect, clause = uint32(d.Effect), uint32(i)
		}
	}
	return effect, clause
}

// BenchmarkRow tells what matching a path costs natively.
func BenchmarkRow(b *testing.B) {
	for _, rules := range []int{1, 10, 100, 1000} {
		c := newChecker(b, manyRules(rules))
		for _, length := range []int{40, 80, 200} {
			b.Run(fmt.Sprintf("rules=%d/bytes=%d", rules, length), func(b *testing.B) {
				key := []byte("/home/agent/work/" + strings.Repeat("abcdefg/", 40))[:length]
				q := c.query(dfa.Path, key)
				q.Times = uint32(min(b.N, 1<<20))
				for done := 0; done < b.N; done += int(q.Times) {
					c.run(c.objects.CheckRow, q, &ebpf.RunOptions{})
				}
			})
		}
	}
}

func manyRules(n int) string {
	var text strings.Builder
	text.WriteString("rule r:\n")
	for i := range n {
		fmt.Fprintf(&text, "  block write file \"/home/agent/d%d/**\"\n", i)
	}
	return text.String()
}
