// SPDX-License-Identifier: Apache-2.0

package dfa

import (
	"errors"
	"fmt"

	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/pattern"
)

// LimitError says that a policy needs more than the engine's tables hold.
type LimitError struct {
	What          string
	Figure, Limit int
	More          bool // Figure is what was reached when the count was given up

	automaton bool // other automata of the same patterns may need less
}

func (e *LimitError) Error() string {
	if e.More {
		return fmt.Sprintf("the policy needs more than %d %s; the limit is %d", e.Figure, e.What, e.Limit)
	}
	return fmt.Sprintf("the policy needs %d %s; the limit is %d", e.Figure, e.What, e.Limit)
}

// Compile makes the image of a program. It checks the program first, which may
// come from a file, and gives equal images for equal programs.
//
// The patterns of paths make one automaton, as long as that stays within what the
// engine holds, and else one for each group of patterns: see groups.go.
func Compile(p *ir.Program) (*Image, error) {
	if err := validate(p); err != nil {
		return nil, fmt.Errorf("check program: %w", err)
	}
	img, err := build(p, false, bounds{raw: 4 * ir.MaxStates, steps: maxSteps / 4, final: ir.MaxStates})
	var limit *LimitError
	if !errors.As(err, &limit) || !limit.automaton {
		return img, err
	}
	return build(p, true, bounds{raw: 2 * ir.MaxCompiledStates, steps: maxSteps, final: ir.MaxCompiledStates})
}

func build(p *ir.Program, split bool, limits bounds) (*Image, error) {
	b, err := newBuilder(p, split)
	if err != nil {
		return nil, err
	}
	inputs, err := b.inputs()
	if err != nil {
		return nil, err
	}
	r, err := determinize(inputs, b.row, limits)
	if err != nil {
		return nil, err
	}
	block, count := minimize(r)
	if count > limits.final {
		return nil, &LimitError{What: "automaton states", Figure: count, Limit: ir.MaxCompiledStates, automaton: true}
	}
	b.tables(r, block, count)
	b.moves(r)
	b.img.Idle = b.idle()
	return b.img, nil
}

// input is what one entry of the automaton stands for.
type input struct {
	kind  Start
	group int // of the patterns of paths
	nfa   *nfa
}

// inputs adds every pattern to the automaton of each kind of key that it is for.
// The entries of Image.Start come first, then Host, then those of Image.More.
func (b *builder) inputs() ([]input, error) {
	var out []input
	for kind := range Host + 1 {
		out = append(out, input{kind: kind, nfa: newNFA()})
	}
	for group := 1; b.split && group < maxGroups; group++ {
		out = append(out, input{kind: Path, group: group, nfa: newNFA()})
	}
	for _, in := range out {
		in.nfa.state()
	}
	add := func(at int, elems []pattern.Elem, id int) error {
		out[at].nfa.add(0, elems, int32(id))
		if n := len(out[at].nfa.states); n > maxNFAStates {
			return &LimitError{What: "pattern characters", Figure: n, Limit: maxNFAStates}
		}
		return nil
	}
	for id, pat := range b.patterns {
		for kind, alternatives := range b.elements(pat, b.uses[id].named()) {
			for _, elems := range alternatives {
				for _, at := range b.inputsOf(Start(kind), id) {
					if err := add(at, elems, id); err != nil {
						return nil, err
					}
				}
			}
		}
	}
	for id, glob := range b.tokens {
		globs, err := pattern.Glob(glob, pattern.Token)
		if err != nil {
			return nil, fmt.Errorf("check program: %w", err)
		}
		for _, elems := range globs {
			if err := add(int(Token), elems, id); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// inputsOf returns the inputs that a pattern is for, of the kind of key.
func (b *builder) inputsOf(kind Start, id int) []int {
	if kind != Path {
		return []int{int(kind)}
	}
	entry := func(group int) int {
		if group == 0 {
			return int(Path)
		}
		return int(Host) + group
	}
	out := []int{entry(b.groups[id])}
	if b.split && b.patterns[id].Any && b.uses[id].target {
		// For targets with not, also a path that matches nothing has a row.
		for group := 1; group < maxGroups; group++ {
			out = append(out, entry(group))
		}
	}
	return out
}

// elements returns what a pattern matches, by kind of key. validate has parsed
// it before, so errors are gone.
func (b *builder) elements(p ir.Pattern, named bool) (out [Host + 1][][]pattern.Elem) {
	anything := [][]pattern.Elem{{{Kind: pattern.AnyStar}}}
	switch {
	case p.Kind == ir.Endpoint && p.Any:
		e := pattern.AnyEndpoint()
		out[Address], out[Unix], out[Host] = e.Addresses(), e.Unix, anything
	case p.Kind == ir.Endpoint:
		e, _ := pattern.ParseEndpoint(p.Text, "/")
		out[Address], out[Unix], out[Host] = e.Addresses(), e.Unix, e.Names()
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
		if p.Kind == ir.File {
			out[Device] = devices(p.Text)
		}
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
	for kind := range b.img.Start {
		b.img.Start[kind] = visit(r.start[kind])
	}
	b.img.Host = visit(r.start[Host])
	for _, s := range r.start[Host+1:] {
		if s != Dead {
			b.img.More = append(b.img.More, visit(s))
		}
	}
	b.img.Next = make([]uint16, 0, 256*count)
	for i := 0; i < len(order); i++ {
		s := int(order[i])
		b.img.RowOf = append(b.img.RowOf, uint16(r.row[s]))
		for c := range 256 {
			b.img.Next = append(b.img.Next, visit(r.next[s*k+int(r.classOf[c])]))
		}
	}
}
