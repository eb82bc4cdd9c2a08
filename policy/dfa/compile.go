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
// All patterns of paths are matched from Path on while that needs few states, and those
// that only look at the last name are matched from Base on when it would need more: see
// homed. It is the reverse again for those few policies that only so stay within what the
// engine holds.
func Compile(p *ir.Program) (*Image, error) {
	if err := validate(p); err != nil {
		return nil, fmt.Errorf("check program: %w", err)
	}
	img, err := build(p, false, bounds{raw: 4 * ir.FewStates, steps: maxSteps / 16, final: ir.FewStates})
	if !tooLarge(err) {
		return img, err
	}
	img, err = build(p, true, bounds{raw: 2 * ir.MaxCompiledStates, steps: maxSteps, final: ir.MaxCompiledStates})
	if err != nil || len(img.RowOf) <= ir.MaxStates || max(img.reached(Path), img.reached(Base)) > ir.MaxStates {
		return img, err // one entry needs at least as many states as each of two
	}
	if one, err := build(p, false, bounds{raw: 4 * ir.MaxStates, steps: maxSteps / 4, final: ir.MaxStates}); err == nil {
		return one, nil
	}
	return img, nil
}

// tooLarge tells whether another automaton for the same patterns may do.
func tooLarge(err error) bool {
	var limit *LimitError
	return errors.As(err, &limit) && limit.automaton
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
	if split {
		r.joinNames()
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
	kind     Start
	nfa      *nfa
	meanings []meaning // of the patterns
}

// inputs adds every pattern to the automaton of each kind of key that it is for.
// The entries of Image.Start come first, then Host.
func (b *builder) inputs() ([]input, error) {
	var out []input
	meanings := b.meanings()
	for kind := range Host + 1 {
		out = append(out, input{kind: kind, nfa: newNFA(), meanings: meanings})
	}
	out[Token].meanings = apart(len(b.tokens))
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
	for id := range b.patterns {
		for kind, alternatives := range b.elements(id) {
			for _, elems := range alternatives {
				if err := add(kind, elems, id); err != nil {
					return nil, err
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

// elements returns what a pattern matches, by kind of key. validate has parsed
// it before, so errors are gone.
func (b *builder) elements(id int) (out [Host + 1][][]pattern.Elem) {
	p, use := b.patterns[id], b.uses[id]
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
		if b.split && use.target {
			// For targets with not, also a name that matches nothing has a row.
			out[Base] = anything
		}
	case b.homes[id] == Base:
		out[Base] = named(p)
	case baseName(p):
		for _, elems := range anywhere(p) {
			out[Path] = append(out[Path], append([]pattern.Elem{slashElem}, elems...))
		}
	default:
		out[Path], _ = pattern.Glob(p.Text, pattern.Path)
	}
	if p.Kind == ir.File && !p.Any {
		out[Device] = devices(p.Text)
	}
	if p.Kind == ir.ExecProgram && !p.Any && baseName(p) && use.named() {
		if out[Name], _ = pattern.Glob(p.Text, pattern.Name); b.split {
			out[Name] = anywhere(p) // see joinNames
		}
	}
	return out
}

var slashElem = pattern.Elem{Kind: pattern.Lit, Seqs: [][]pattern.Range{{slash}}}

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
	b.img.Next = make([]uint16, 0, 256*count)
	for i := 0; i < len(order); i++ {
		s := int(order[i])
		b.img.RowOf = append(b.img.RowOf, uint16(r.row[s]))
		for c := range 256 {
			b.img.Next = append(b.img.Next, visit(r.next[s*k+int(r.classOf[c])]))
		}
	}
}
