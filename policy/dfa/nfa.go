// SPDX-License-Identifier: Apache-2.0

package dfa

import (
	"slices"

	"github.com/actplane/actplane/policy/pattern"
)

// nfa is an automaton with one entry per kind of key. Patterns share the states
// of common beginnings, which keeps the sets of the subset construction small:
// thousands of **/NAME patterns have one loop, not thousands.
type nfa struct {
	states []nstate
	shared map[step]int32
	ranges map[pattern.Range]int // distinct ranges
}

type nstate struct {
	edges  []edge
	empty  []int32 // targets of empty transitions
	accept []int32 // patterns that end here
}

type edge struct {
	over pattern.Range
	to   int32
}

// step is what leads from one state to a shared one.
type step struct {
	from int32
	kind pattern.ElemKind
	over pattern.Range // of a Lit of one range
	seqs string        // of any other Lit
}

func newNFA() *nfa {
	return &nfa{shared: map[step]int32{}, ranges: map[pattern.Range]int{}}
}

// maxNFAStates bounds the text of all patterns together, braces expanded.
const maxNFAStates = 1 << 18

func (n *nfa) state() int32 {
	n.states = append(n.states, nstate{})
	return int32(len(n.states) - 1)
}

func (n *nfa) edge(from int32, over pattern.Range, to int32) {
	if _, ok := n.ranges[over]; !ok {
		n.ranges[over] = len(n.ranges)
	}
	n.states[from].edges = append(n.states[from].edges, edge{over, to})
}

// add makes the pattern id accept what elems match from the state root.
func (n *nfa) add(root int32, elems []pattern.Elem, id int32) {
	at := root
	for _, e := range elems {
		at = n.elem(at, e)
	}
	if !slices.Contains(n.states[at].accept, id) {
		n.states[at].accept = append(n.states[at].accept, id)
	}
}

// elem returns the state to which an element leads.
func (n *nfa) elem(from int32, e pattern.Elem) int32 {
	key := step{from: from, kind: e.Kind}
	if e.Kind == pattern.Lit {
		if len(e.Seqs) == 1 && len(e.Seqs[0]) == 1 {
			key.over = e.Seqs[0][0]
		} else {
			key.seqs = signature(e.Seqs)
		}
	}
	if to, ok := n.shared[key]; ok {
		return to
	}
	to := n.state()
	n.shared[key] = to
	switch e.Kind {
	case pattern.Lit:
		n.literal(from, to, e.Seqs)
	case pattern.Star:
		n.jump(from, to)
		n.loopInSegment(to)
	case pattern.AnyStar:
		n.jump(from, to)
		n.loop(to)
	case pattern.OptDeep:
		skipped := n.state()
		n.jump(from, to)
		n.jump(from, skipped)
		n.loop(skipped)
		n.edge(skipped, slash, to)
	case pattern.OptTail:
		below := n.state()
		n.jump(from, to)
		n.edge(from, slash, below)
		n.loop(below)
		n.jump(below, to)
	}
	return to
}

var slash = pattern.Range{Lo: '/', Hi: '/'}

func (n *nfa) jump(from, to int32) { n.states[from].empty = append(n.states[from].empty, to) }

func (n *nfa) loop(s int32) { n.edge(s, pattern.Range{Lo: 0, Hi: 0xFF}, s) }

func (n *nfa) loopInSegment(s int32) {
	n.edge(s, pattern.Range{Lo: 0, Hi: '/' - 1}, s)
	n.edge(s, pattern.Range{Lo: '/' + 1, Hi: 0xFF}, s)
}

func (n *nfa) literal(from, to int32, seqs [][]pattern.Range) {
	for _, seq := range seqs {
		at := from
		for i, r := range seq {
			next := to
			if i < len(seq)-1 {
				next = n.state()
			}
			n.edge(at, r, next)
			at = next
		}
	}
}

func signature(seqs [][]pattern.Range) string {
	var b []byte
	for _, seq := range seqs {
		b = append(b, byte(len(seq)))
		for _, r := range seq {
			b = append(b, r.Lo, r.Hi)
		}
	}
	return string(b)
}

// closures returns, for each state, the states that it reaches by empty
// transitions and that matter: those with edges or patterns of their own.
func (n *nfa) closures() [][]int32 {
	out := make([][]int32, len(n.states))
	seen := make([]int32, len(n.states))
	for s := range n.states {
		stack := []int32{int32(s)}
		seen[s] = int32(s) + 1
		for len(stack) > 0 {
			at := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			st := &n.states[at]
			if len(st.edges) > 0 || len(st.accept) > 0 {
				out[s] = append(out[s], at)
			}
			for _, to := range st.empty {
				if seen[to] != int32(s)+1 {
					seen[to] = int32(s) + 1
					stack = append(stack, to)
				}
			}
		}
	}
	return out
}

// classes numbers the bytes so that bytes which every range treats alike have
// one number. The byte 0 has one of its own.
func classes(ranges map[pattern.Range]int) (classOf [256]uint8, count int) {
	var sets [256][]byte
	ordered := make([]pattern.Range, len(ranges))
	for r, i := range ranges {
		ordered[i] = r
	}
	for i, r := range ordered {
		for b := int(r.Lo); b <= int(r.Hi); b++ {
			sets[b] = append(sets[b], byte(i), byte(i>>8))
		}
	}
	numbers := map[string]int{}
	for b := range sets {
		key := string(sets[b])
		if b == 0 {
			key = "zero"
		}
		number, ok := numbers[key]
		if !ok {
			number = len(numbers)
			numbers[key] = number
		}
		classOf[b] = uint8(number)
	}
	return classOf, len(numbers)
}
