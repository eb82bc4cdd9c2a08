// SPDX-License-Identifier: Apache-2.0

package dfa

import (
	"fmt"

	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/pattern"
)

// LimitError says that a policy needs more than the engine's tables hold.
type LimitError struct {
	What          string
	Figure, Limit int
	More          bool // Figure is what was reached when the count was given up
}

func (e *LimitError) Error() string {
	if e.More {
		return fmt.Sprintf("the policy needs more than %d %s; the limit is %d", e.Figure, e.What, e.Limit)
	}
	return fmt.Sprintf("the policy needs %d %s; the limit is %d", e.Figure, e.What, e.Limit)
}

// Compile makes the image of a program. It checks the program first, which may
// come from a file, and gives equal images for equal programs.
func Compile(p *ir.Program) (*Image, error) {
	if err := validate(p); err != nil {
		return nil, fmt.Errorf("check program: %w", err)
	}
	b, err := newBuilder(p)
	if err != nil {
		return nil, err
	}
	nfas, err := b.nfas()
	if err != nil {
		return nil, err
	}
	r, err := determinize(nfas, b.row)
	if err != nil {
		return nil, err
	}
	block, count := minimize(r)
	if count > ir.MaxStates {
		return nil, &LimitError{What: "automaton states", Figure: count, Limit: ir.MaxStates}
	}
	b.tables(r, block, count)
	return b.img, nil
}

// nfas adds every pattern to the automaton of each kind of key that it is for.
func (b *builder) nfas() (out [NumStarts]*nfa, err error) {
	for i := range out {
		out[i] = newNFA()
		out[i].state()
	}
	for id, pat := range b.patterns {
		for kind, alternatives := range b.elements(pat, b.uses[id].named()) {
			for _, elems := range alternatives {
				out[kind].add(0, elems, int32(id))
				if n := len(out[kind].states); n > maxNFAStates {
					return out, &LimitError{What: "pattern characters", Figure: n, Limit: maxNFAStates}
				}
			}
		}
	}
	for id, glob := range b.tokens {
		globs, err := pattern.Glob(glob, pattern.Token)
		if err != nil {
			return out, fmt.Errorf("check program: %w", err)
		}
		for _, elems := range globs {
			out[Token].add(0, elems, int32(id))
			if n := len(out[Token].states); n > maxNFAStates {
				return out, &LimitError{What: "pattern characters", Figure: n, Limit: maxNFAStates}
			}
		}
	}
	return out, nil
}

// elements returns what a pattern matches, by kind of key. validate has parsed
// it before, so errors are gone.
func (b *builder) elements(p ir.Pattern, named bool) (out [NumStarts][][]pattern.Elem) {
	anything := [][]pattern.Elem{{{Kind: pattern.AnyStar}}}
	switch {
	case p.Kind == ir.Endpoint && p.Any:
		e := pattern.AnyEndpoint()
		out[Address], out[Unix] = e.Addresses(), e.Unix
	case p.Kind == ir.Endpoint:
		e, _ := pattern.ParseEndpoint(p.Text, "/")
		out[Address], out[Unix] = e.Addresses(), e.Unix
	case p.Any:
		out[Path] = anything
	case baseName(p):
		globs, _ := pattern.Glob(p.Text, pattern.Name)
		below, _ := pattern.Glob("/**/", pattern.Path)
		for _, g := range globs {
			out[Path] = append(out[Path], append(append([]pattern.Elem(nil), below[0]...), g...))
		}
		if named {
			out[Name] = globs
		}
	default:
		out[Path], _ = pattern.Glob(p.Text, pattern.Path)
	}
	return out
}

// tables writes the minimal automaton in the image, its states numbered as a
// search in the order of entries and bytes finds them; Dead is the first.
func (b *builder) tables(r *raw, block []int32, count int) {
	k := len(r.bytes)
	number := make([]int32, count)
	for i := range number {
		number[i] = -1
	}
	var order []int32 // a raw state of each numbered block
	visit := func(s int32) uint16 {
		if number[block[s]] < 0 {
			number[block[s]] = int32(len(order))
			order = append(order, s)
		}
		return uint16(number[block[s]])
	}
	visit(Dead)
	for kind, s := range r.start {
		b.img.Start[kind] = visit(s)
	}
	for i := 0; i < len(order); i++ {
		s := int(order[i])
		b.img.RowOf = append(b.img.RowOf, uint16(r.row[s]))
		row := make([]uint16, 256)
		for c := range 256 {
			row[c] = visit(r.next[s*k+int(r.classOf[c])])
		}
		b.img.Next = append(b.img.Next, row...)
	}
}
