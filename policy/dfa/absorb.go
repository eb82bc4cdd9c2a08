// SPDX-License-Identifier: Apache-2.0

package dfa

import (
	"fmt"
	"slices"

	"github.com/actplane/actplane/policy/pattern"
)

// Patterns that end in /** match whatever follows, and each that does so of its own accord
// doubles the states: **/a/** and **/b/** have matched, or one of them, or none. But what
// has the same meaning twice adds nothing: not the other alternatives of **/{a,b}/**, not
// another source of the same label, and not a clause that stands below one of the same rule
// which decides the same. So states that lead to nothing else are left out of a set that
// holds such a match already.

// meaning is what a pattern stands for. Of two patterns of one group, the one of the lower
// rank says all that the other says.
type meaning struct{ group, rank int32 }

var (
	nothing = meaning{-1, 0}
	mixed   = meaning{-2, 0} // of several groups
)

func (m meaning) with(other meaning) meaning {
	switch {
	case m == nothing || other == mixed:
		return other
	case other == nothing || m == mixed:
		return m
	case m.group != other.group:
		return mixed
	}
	return meaning{m.group, min(m.rank, other.rank)}
}

// apart are meanings of n patterns that have nothing in common.
func apart(n int) []meaning {
	out := make([]meaning, n)
	for id := range out {
		out[id] = meaning{group: int32(id)}
	}
	return out
}

// meanings groups the patterns by what they take part in. It notes clauses that may be in
// no row for want of a key that needs them as live.
func (b *builder) meanings() []meaning {
	out := apart(len(b.patterns))
	groups := map[string][]int32{}
	for id, u := range b.uses {
		if key, ok := b.says(int32(id), u); ok {
			groups[key] = append(groups[key], int32(id))
		}
	}
	for _, ids := range groups {
		slices.SortFunc(ids, func(x, y int32) int { return slices.Compare(b.uses[x].order(), b.uses[y].order()) })
		if !b.ranked(ids) {
			continue // one comes first in one place and another in another
		}
		for rank, id := range ids {
			out[id] = meaning{ids[0], int32(rank)}
			for _, c := range b.uses[id].clauses {
				b.live[c] = true
			}
		}
	}
	return out
}

// says is equal for patterns that say the same, but for the order in which they stand; ok
// is false for those of which each says something of its own.
func (b *builder) says(id int32, u *use) (key string, ok bool) {
	if u.target {
		return "", false
	}
	p := b.patterns[id]
	key = fmt.Sprint(p.Kind, p.Any, p.Host, b.homes[id], u.labels, u.lineages, u.declassify, u.endorse, u.gates)
	for _, i := range u.protects {
		key += fmt.Sprintf(" protect %d %d", b.img.Protects[i].All, b.img.Protects[i].None)
	}
	for _, i := range u.clauses {
		c := &b.p.Clauses[i]
		if len(c.Unless.Targets) > 0 { // which are decided with the pattern
			return "", false
		}
		key += fmt.Sprintf(" %d %d %d %d %q %v %v", c.Rule, c.Effect, c.Hold, c.Op, c.Args, c.If, c.Unless)
	}
	return key, true
}

// order is where what a pattern takes part in stands, as far as that matters.
func (u *use) order() []int { return slices.Concat(u.clauses, u.protects) }

// ranked tells whether each pattern of a sorted list precedes the next one.
func (b *builder) ranked(ids []int32) bool {
	for i := range ids[1:] {
		if !b.uses[ids[i]].precedes(b.uses[ids[i+1]]) {
			return false
		}
	}
	return true
}

// precedes tells whether all of it comes before what is the same of another, or is that.
func (u *use) precedes(other *use) bool {
	theirs := other.order()
	for i, n := range u.order() {
		if n > theirs[i] {
			return false
		}
	}
	return true
}

// absorption finds what a set of states can do without.
type absorption struct {
	only   []meaning // what a state leads to
	always []int32   // the pattern that a state matches with whatever follows, or -1
	// first is the first state that does so for a pattern: it stands for all.
	first    map[int32]int32
	meanings []meaning
	best     map[int32]int32 // of each group, the pattern of the lowest rank that the present set matches
}

func newAbsorption(n *nfa, meanings []meaning) *absorption {
	a := &absorption{
		only: n.leadTo(meanings), always: make([]int32, len(n.states)), first: map[int32]int32{},
		meanings: meanings, best: map[int32]int32{},
	}
	for s := range n.states {
		a.always[s] = -1
		if !n.loops(int32(s)) {
			continue
		}
		for _, id := range n.ends(int32(s)) {
			if a.only[s] != meanings[id] {
				continue // it leads to more
			}
			a.always[s] = id
			if _, ok := a.first[id]; !ok {
				a.first[id] = int32(s)
			}
		}
	}
	return a
}

// leadTo returns what the patterns mean that each state leads to.
func (n *nfa) leadTo(meanings []meaning) []meaning {
	out := make([]meaning, len(n.states))
	from := make([][]int32, len(n.states))
	var work []int32
	for s := range n.states {
		st := &n.states[s]
		for _, e := range st.edges {
			from[e.to] = append(from[e.to], int32(s))
		}
		for _, to := range st.empty {
			from[to] = append(from[to], int32(s))
		}
		out[s] = nothing
		for _, id := range st.accept {
			out[s] = out[s].with(meanings[id])
		}
		if out[s] != nothing {
			work = append(work, int32(s))
		}
	}
	for len(work) > 0 {
		s := work[len(work)-1]
		work = work[:len(work)-1]
		for _, before := range from[s] {
			if m := out[before].with(out[s]); m != out[before] {
				out[before] = m
				work = append(work, before)
			}
		}
	}
	return out
}

// loops tells whether every byte leads a state back to itself.
func (n *nfa) loops(s int32) bool {
	return slices.Contains(n.states[s].edges, edge{pattern.Range{Lo: 0, Hi: 0xFF}, s})
}

// ends lists the patterns that end in a state or behind one empty transition from it: so
// do those of AnyStar and OptTail.
func (n *nfa) ends(s int32) []int32 {
	out := slices.Clone(n.states[s].accept)
	for _, to := range n.states[s].empty {
		out = append(out, n.states[to].accept...)
	}
	return out
}

// of leaves out of a sorted set, in place, what it can do without.
func (a *absorption) of(members []int32) []int32 {
	clear(a.best)
	for _, s := range members {
		id := a.always[s]
		if id < 0 {
			continue
		}
		m := a.meanings[id]
		if best, ok := a.best[m.group]; !ok || m.rank < a.meanings[best].rank {
			a.best[m.group] = id
		}
	}
	if len(a.best) == 0 {
		return members
	}
	members = slices.DeleteFunc(members, func(s int32) bool {
		best, ok := a.best[a.only[s].group]
		return ok && a.only[s].rank >= a.meanings[best].rank
	})
	for _, id := range a.best {
		members = append(members, a.first[id])
	}
	slices.Sort(members)
	return members
}
