// SPDX-License-Identifier: Apache-2.0

package dfa

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/pattern"
)

// bounds limits the construction, so that patterns that blow up end in an error
// within a second and not in a full memory. The automaton shrinks when it is
// minimised, so that raw is more than final.
type bounds struct{ raw, steps, final int }

const (
	maxSteps = 1 << 24
	// maxTransitions bounds the table, which is needed some four times over. With all
	// 256 classes it holds as many states as an image may have.
	maxTransitions = 256 * ir.MaxCompiledStates

	memberCost = 16 // of each member of a set that is kept, for its memory
)

// raw is a deterministic automaton before minimisation. State 0 is Dead.
type raw struct {
	classOf [256]uint8
	bytes   []byte // one byte of each class
	next    []int32
	row     []int32 // by state
	start   []int32 // by input
	first   []int32 // by input, its first state
}

// addState makes room for the transitions of one more state. The table doubles when
// it is full: it is large, and append would copy it more often.
func (r *raw) addState() {
	n, k := len(r.next), len(r.bytes)
	if n+k > cap(r.next) {
		r.next = slices.Grow(r.next, max(n, 1024*k))
	}
	r.next = r.next[:n+k]
}

// rowFunc returns the row of the keys of one entry that match exactly a set of
// patterns, which is sorted.
type rowFunc func(in input, patterns []int32) (int32, error)

// determinize runs the subset construction from all entries.
func determinize(inputs []input, rowOf rowFunc, limits bounds) (*raw, error) {
	all := map[pattern.Range]int{}
	for _, in := range inputs {
		for _, r := range slices.SortedFunc(maps.Keys(in.nfa.ranges), compareRanges) {
			if _, ok := all[r]; !ok {
				all[r] = len(all)
			}
		}
	}
	out := &raw{row: []int32{NoRow}}
	var count int
	out.classOf, count = classes(all)
	out.bytes = make([]byte, count)
	for b := 255; b >= 0; b-- {
		out.bytes[out.classOf[b]] = byte(b)
	}
	out.next = make([]int32, count)
	limits.raw = min(limits.raw, maxTransitions/count)
	steps := 0
	for _, in := range inputs {
		out.first = append(out.first, int32(len(out.row)))
		c := newConstruction(in, out, rowOf, &steps)
		c.limits = limits
		if err := c.run(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// joinNames lets the states of Name lead where those of Base do by a slash, which is in no
// name: so the two have states in common, as far as their rows are the same.
func (r *raw) joinNames() {
	for s := r.first[Name]; s < r.first[Name+1]; s++ {
		r.next[int(s)*len(r.bytes)+int(r.classOf['/'])] = r.start[Base]
	}
}

func compareRanges(a, b pattern.Range) int {
	if c := int(a.Lo) - int(b.Lo); c != 0 {
		return c
	}
	return int(a.Hi) - int(b.Hi)
}

// construction is the subset construction from one entry. Sets of states of
// different entries never meet, but in Dead.
type construction struct {
	input
	out     *raw
	rowOf   rowFunc
	steps   *int
	limits  bounds
	closure [][]int32
	classOf [256]uint8
	count   int          // of classes
	leave   [][]spanEdge // by state of the nfa
	sets    map[string]int32
	members [][]int32 // by state, from the first of this entry
	first   int32
	rows    map[string]int32
	mark    []int32
	stamp   int32
	scratch []int32
	key     []byte

	absorb  *absorption
	special []bool // by class: see targets
	narrow  [][]int32
	wide    []spanEdge
	accept  []int32
}

// span is a range of bytes in terms of classes.
type span struct {
	has [256]bool // by class
	// few are the classes that the range has or, when it is wide, lacks.
	few  []uint8
	wide bool
}

type spanEdge struct {
	over *span
	to   int32
}

func newConstruction(in input, out *raw, rowOf rowFunc, steps *int) *construction {
	n := in.nfa
	c := &construction{
		input: in, out: out, rowOf: rowOf, steps: steps,
		closure: n.closures(),
		leave:   make([][]spanEdge, len(n.states)),
		sets:    map[string]int32{},
		rows:    map[string]int32{},
		mark:    make([]int32, len(n.states)),
		first:   int32(len(out.row)),
		absorb:  newAbsorption(n, in.meanings),
	}
	c.classOf, c.count = classes(n.ranges)
	spans := map[pattern.Range]*span{}
	for r := range n.ranges {
		spans[r] = c.span(r)
	}
	for s := range n.states {
		for _, e := range n.states[s].edges {
			c.leave[s] = append(c.leave[s], spanEdge{spans[e.over], e.to})
		}
	}
	c.special, c.narrow = make([]bool, c.count), make([][]int32, c.count)
	return c
}

func (c *construction) span(r pattern.Range) *span {
	out := &span{}
	size := 0
	for b := int(r.Lo); b <= int(r.Hi); b++ {
		if class := c.classOf[b]; !out.has[class] {
			out.has[class] = true
			size++
		}
	}
	out.wide = 2*size > c.count
	for class := range c.count {
		if out.has[class] != out.wide {
			out.few = append(out.few, uint8(class))
		}
	}
	return out
}

func (c *construction) run() error {
	start, err := c.state([]int32{0})
	if err != nil {
		return err
	}
	c.out.start = append(c.out.start, start)
	count := len(c.out.bytes)
	targets := make([]int32, c.count)
	for at := c.first; int(at) < len(c.out.row); at++ {
		if err := c.targets(c.members[at-c.first], targets); err != nil {
			return err
		}
		row := c.out.next[int(at)*count : int(at+1)*count]
		for class, b := range c.out.bytes {
			row[class] = targets[c.classOf[b]]
		}
		if c.kind != Address {
			row[c.out.classOf[0]] = at
		}
	}
	return nil
}

// targets finds where a state leads by each class. Most classes lead where all wide
// edges lead, and only there; the special ones, which a narrow edge has or a wide
// one lacks, are few.
func (c *construction) targets(members []int32, targets []int32) error {
	clear(c.special)
	c.wide = c.wide[:0]
	for i := range c.narrow {
		c.narrow[i] = c.narrow[i][:0]
	}
	for _, s := range members {
		for _, e := range c.leave[s] {
			for _, class := range e.over.few {
				c.special[class] = true
				if !e.over.wide {
					c.narrow[class] = append(c.narrow[class], e.to)
				}
			}
			if e.over.wide {
				c.wide = append(c.wide, e)
			} else {
				*c.steps += len(e.over.few)
			}
		}
	}
	usual := int32(-1)
	for class := range targets {
		if !c.special[class] && usual >= 0 {
			targets[class] = usual
			continue
		}
		bucket := c.narrow[class]
		for _, e := range c.wide {
			if e.over.has[class] {
				bucket = append(bucket, e.to)
			}
		}
		c.narrow[class] = bucket // for its room
		*c.steps += len(c.wide)
		to, err := c.state(bucket)
		if err != nil {
			return err
		}
		if targets[class] = to; !c.special[class] {
			usual = to
		}
	}
	return nil
}

// state returns the state for the closure of a set, which it makes if need be.
func (c *construction) state(set []int32) (int32, error) {
	if len(set) == 0 {
		return Dead, nil
	}
	c.stamp++
	members := c.scratch[:0]
	for _, s := range set {
		*c.steps += len(c.closure[s])
		for _, m := range c.closure[s] {
			if c.mark[m] != c.stamp {
				c.mark[m] = c.stamp
				members = append(members, m)
			}
		}
	}
	c.scratch = members
	if len(members) == 0 {
		return Dead, nil
	}
	if *c.steps > c.limits.steps {
		return 0, &LimitError{What: "steps to build its automaton", Figure: c.limits.steps, Limit: maxSteps, More: true, automaton: true}
	}
	slices.Sort(members)
	members = c.absorb.of(members)
	key := c.encode(members)
	if s, ok := c.sets[string(key)]; ok {
		return s, nil
	}
	if len(c.out.row) == c.limits.raw {
		return 0, &LimitError{What: "automaton states", Figure: c.limits.raw, Limit: ir.MaxCompiledStates, More: true, automaton: true}
	}
	s := int32(len(c.out.row))
	c.sets[string(key)] = s
	row, err := c.row(members) // uses key
	if err != nil {
		return 0, err
	}
	c.members = append(c.members, slices.Clone(members))
	*c.steps += memberCost * len(members)
	c.out.row = append(c.out.row, row)
	c.out.addState()
	return s, nil
}

func (c *construction) row(members []int32) (int32, error) {
	accept := c.accept[:0]
	for _, m := range members {
		accept = append(accept, c.nfa.states[m].accept...)
		if id := c.absorb.always[m]; id >= 0 {
			accept = append(accept, id)
		}
	}
	if len(accept) == 0 {
		return NoRow, nil
	}
	c.accept = accept
	slices.Sort(accept)
	accept = slices.Compact(accept)
	key := string(c.encode(accept))
	if row, ok := c.rows[key]; ok {
		return row, nil
	}
	row, err := c.rowOf(c.input, accept)
	c.rows[key] = row
	return row, err
}

func (c *construction) encode(set []int32) []byte {
	c.key = c.key[:0]
	for _, s := range set {
		c.key = binary.LittleEndian.AppendUint32(c.key, uint32(s))
	}
	return c.key
}
