// SPDX-License-Identifier: Apache-2.0

package dfa

import (
	"encoding/binary"
	"slices"

	"github.com/actplane/actplane/policy/ir"
)

// args gives the token sequences of clauses and gates their positions. A
// sequence that another begins with shares that one's positions: reaching a
// position does not depend on what may follow.
type args struct {
	number map[string]uint64 // of each token glob, for keys
	last   map[string]int    // of each sequence, also of each beginning of one
	tokens [][]string        // the sequences that have positions
	count  int
}

func (a *args) key(seq []string) string {
	var k []byte
	for _, t := range seq {
		n, ok := a.number[t]
		if !ok {
			n = uint64(len(a.number))
			a.number[t] = n
		}
		k = binary.AppendUvarint(k, n)
	}
	return string(k)
}

// ArgSequences returns the token sequences of a program's clauses and gates by the
// position of their last token, as Clause.Arg and GateRef.Arg name it.
func ArgSequences(p *ir.Program) (map[int][]string, error) {
	a, err := assignArgs(p)
	if err != nil {
		return nil, err
	}
	out := map[int][]string{}
	for _, seq := range sequences(p) {
		out[a.position(seq)] = seq
	}
	return out, nil
}

// sequences are all token sequences of a program.
func sequences(p *ir.Program) (all [][]string) {
	collect := func(seq []string) {
		if len(seq) > 0 {
			all = append(all, seq)
		}
	}
	for _, c := range p.Clauses {
		collect(c.Args)
	}
	for _, g := range p.Gates {
		collect(g.After.Args)
		for _, e := range g.Since {
			collect(e.Args)
		}
	}
	return all
}

func assignArgs(p *ir.Program) (*args, error) {
	a := &args{number: map[string]uint64{}, last: map[string]int{}}
	all := sequences(p)
	slices.SortStableFunc(all, func(x, y []string) int { return len(y) - len(x) })
	for _, seq := range all {
		if a.has(a.key(seq)) {
			continue
		}
		if n := a.count + len(seq); n > ir.MaxArgPatterns {
			return nil, &LimitError{What: "argv token positions", Figure: ir.MaxArgPatterns, Limit: ir.MaxArgPatterns, More: true}
		}
		for i := range seq {
			if key := a.key(seq[:i+1]); !a.has(key) {
				a.last[key] = a.count + i
			}
		}
		a.count += len(seq)
		a.tokens = append(a.tokens, seq)
	}
	return a, nil
}

func (a *args) has(key string) bool {
	_, ok := a.last[key]
	return ok
}

// position returns the position of a sequence's last token, -1 for none.
func (a *args) position(seq []string) int {
	if len(seq) == 0 {
		return -1
	}
	return a.last[a.key(seq)]
}

func (a *args) words() int { return (a.count + 63) / 64 }

// starts returns the set of first positions.
func (a *args) starts() []uint64 {
	set := make([]uint64, a.words())
	at := 0
	for _, seq := range a.tokens {
		set[at/64] |= 1 << (at % 64)
		at += len(seq)
	}
	return set
}

// byToken returns the positions of each distinct token glob.
func (a *args) byToken() (globs []string, positions [][]int) {
	index := map[string]int{}
	at := 0
	for _, seq := range a.tokens {
		for _, t := range seq {
			i, ok := index[t]
			if !ok {
				i = len(globs)
				index[t] = i
				globs = append(globs, t)
				positions = append(positions, nil)
			}
			positions[i] = append(positions[i], at)
			at++
		}
	}
	return globs, positions
}
