// SPDX-License-Identifier: Apache-2.0

package dfa

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/actplane/actplane/policy/ir"
)

// rowOf runs a key through the automaton.
func rowOf(img *Image, start Start, key []byte) *Row {
	s := img.Start[start]
	for _, b := range key {
		s = img.Next[int(s)*256+int(b)]
	}
	return &img.Rows[img.RowOf[s]]
}

// program has one unconditional clause per pattern, each of its own label so
// that none stands in for another.
func program(op ir.Op, patterns ...ir.Pattern) *ir.Program {
	p := &ir.Program{Workspace: "/", Rules: []ir.Rule{{Name: "r"}}, Labels: make([]ir.Label, 64)}
	for i, pat := range patterns {
		p.Clauses = append(p.Clauses, ir.Clause{Effect: ir.Block, Op: op, Pattern: pat, If: []ir.Term{{All: 1 << (i % 64)}}})
	}
	return p
}

func compile(t testing.TB, p *ir.Program) *Image {
	t.Helper()
	img, err := Compile(p)
	if err != nil {
		t.Fatal(err)
	}
	checkImage(t, img)
	return img
}

// checkImage checks what image.go promises of every image.
func checkImage(t testing.TB, img *Image) {
	t.Helper()
	n := len(img.RowOf)
	if len(img.Next) != n*256 {
		t.Fatalf("%d transitions of %d states", len(img.Next), n)
	}
	for b := range 256 {
		if img.Next[b] != Dead {
			t.Fatalf("Dead leads to %d by %d", img.Next[b], b)
		}
	}
	if img.RowOf[Dead] != NoRow {
		t.Fatalf("Dead has row %d", img.RowOf[Dead])
	}
	if len(img.Rows) < 2 || encodeRow(&img.Rows[NoRow]) != encodeRow(&Row{}) {
		t.Fatal("row 0 matches something")
	}
	// All states that the entries other than Address reach stay on byte 0.
	seen := make([]bool, n)
	starts := []uint16{img.Start[Path], img.Start[Base], img.Start[Name], img.Start[Token], img.Start[Unix], img.Host}
	for _, start := range starts {
		work := []uint16{start}
		for len(work) > 0 {
			s := work[len(work)-1]
			work = work[:len(work)-1]
			if seen[s] {
				continue
			}
			seen[s] = true
			if img.Next[int(s)*256] != s {
				t.Fatalf("state %d leaves by byte 0", s)
			}
			for b := range 256 {
				work = append(work, img.Next[int(s)*256+b])
			}
		}
	}
}

func TestMinimal(t *testing.T) {
	img := compile(t, program(ir.Write,
		ir.Pattern{Text: "/w/**/*.go"}, ir.Pattern{Text: "/**/.env"}, ir.Pattern{Text: "/x/[ab]?.{txt,md}"}, ir.Pattern{Text: "/p/**"}))
	n := len(img.RowOf)
	class := make([]int, n)
	for s := range class {
		class[s] = int(img.RowOf[s])
	}
	for count := 0; ; {
		number := map[string]int{}
		next := make([]int, n)
		for s := range n {
			key := fmt.Sprint(class[s])
			for b := range 256 {
				key += fmt.Sprint(" ", class[img.Next[s*256+b]])
			}
			if _, ok := number[key]; !ok {
				number[key] = len(number)
			}
			next[s] = number[key]
		}
		class = next
		if len(number) == count {
			break
		}
		count = len(number)
	}
	if count := slices.Max(class) + 1; count != n {
		t.Errorf("%d states, of which %d differ", n, count)
	}
}

func TestEqualPrograms(t *testing.T) {
	make := func() []byte {
		p := program(ir.Write, ir.Pattern{Text: "/**/*.go"}, ir.Pattern{Text: "/a/{b,c}/**"}, ir.Pattern{Any: true})
		p.Clauses = append(p.Clauses, program(ir.Connect, endpoint("@public"), endpoint("[fd00::/8]:80-90")).Clauses...)
		text, err := json.Marshal(compile(t, p))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	if first, second := string(make()), string(make()); first != second {
		t.Error("equal programs give different images")
	}
}
