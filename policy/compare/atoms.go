// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"encoding/json"
	"fmt"
	"math/bits"
	"slices"

	"github.com/actplane/actplane/policy/ir"
)

// atom is one fact about the state that a condition can be about: that the process
// has a label or a lineage, that a gate is fresh, that the object was modified. What
// is the same fact under both policies is one atom, whatever its number is in each.
type atom struct {
	kind atomKind
	key  string // equal for equal facts
	// at is its number in each program, -1 where it does not have it.
	at [2]int
}

type atomKind uint8

const (
	labelAtom atomKind = iota
	lineageAtom
	gateAtom
	modifiedAtom
)

// literal is an atom or its negation.
type literal struct {
	atom int
	want bool
}

// atoms numbers the facts of two programs.
type atoms struct {
	list     []atom
	number   map[string]int
	labels   [2][]int // of each program, by its own number
	lineages [2][]int
	gates    [2][]int
	modified int
}

func newAtoms(sides [2]*ir.Program) *atoms {
	a := &atoms{number: map[string]int{}}
	for side, p := range sides {
		for i, l := range p.Labels {
			a.labels[side] = append(a.labels[side], a.add(labelAtom, fmt.Sprintf("%d %s", l.Layer, l.Name), side, i))
		}
		for i, l := range p.Lineages {
			a.lineages[side] = append(a.lineages[side], a.add(lineageAtom, fmt.Sprintf("%+v", l), side, i))
		}
		for i, g := range p.Gates {
			a.gates[side] = append(a.gates[side], a.add(gateAtom, gateKey(g), side, i))
		}
		a.modified = a.add(modifiedAtom, "", side, 0)
	}
	return a
}

func (a *atoms) add(kind atomKind, key string, side, at int) int {
	full := fmt.Sprintf("%d %s", kind, key)
	i, ok := a.number[full]
	if !ok {
		i = len(a.list)
		a.number[full] = i
		a.list = append(a.list, atom{kind: kind, key: key, at: [2]int{-1, -1}})
	}
	a.list[i].at[side] = at
	return i
}

// gateKey is equal for gates that the same events make fresh and stale.
func gateKey(g ir.Gate) string {
	event := func(e ir.Event) string {
		text, _ := json.Marshal(e) // plain data
		return string(text)
	}
	var since []string
	for _, e := range g.Since {
		since = append(since, event(e))
	}
	slices.Sort(since)
	return fmt.Sprintf("%s %d %q", event(g.After), g.Exit, slices.Compact(since))
}

// bit returns the literals for the bits of a set of one program.
func literals(out []literal, numbers []int, set uint64, want bool) []literal {
	for ; set != 0; set &= set - 1 {
		out = append(out, literal{numbers[bits.TrailingZeros64(set)], want})
	}
	return out
}

// state is what holds of the atoms: the others don't.
type state map[int]bool

// bits returns the labels, lineages and gates of a state as one program numbers them.
func (a *atoms) bits(s state, side int) (labels, lineages, gates uint64) {
	for i, holds := range s {
		x := a.list[i]
		if !holds || x.at[side] < 0 {
			continue
		}
		switch x.kind {
		case labelAtom:
			labels |= 1 << x.at[side]
		case lineageAtom:
			lineages |= 1 << x.at[side]
		case gateAtom:
			gates |= 1 << x.at[side]
		}
	}
	return labels, lineages, gates
}
