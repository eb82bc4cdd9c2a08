// SPDX-License-Identifier: Apache-2.0

// Package dfa compiles a program's patterns to one minimal automaton and its
// rules to rows, one per set of patterns that a key can match. A decision then
// costs the length of the key and does not depend on the number of rules.
package dfa

import "github.com/actplane/actplane/policy/ir"

// Start selects the entry state of the automaton, and with it what the key is.
type Start uint8

// The entries. Keys are byte strings; in all but Address the byte 0 leads every
// state to itself, so that a key may be padded with zeros.
const (
	// Path: an absolute path. File patterns and all exec patterns are live (a
	// base-name pattern NAME as **/NAME).
	Path Start = iota
	// Name: the base name by which a program was invoked. Only base-name exec
	// patterns are live.
	Name
	// Token: one argv element.
	Token
	// Address: exactly 18 bytes, the IPv6 address (IPv4 as ::ffff:a.b.c.d) and
	// the port, both in network order. The byte 0 is a byte like any other.
	Address
	// Unix: the path of a Unix socket, or @ and the abstract name.
	Unix
	NumStarts
)

// Dead is the state from which nothing can match.
const Dead = 0

// Image is a compiled policy: everything the engine needs to decide.
type Image struct {
	// Next is the transition table, Next[state*256+byte]. State 0 is Dead.
	Next []uint16
	// Start has the entry state of each kind of key.
	Start [NumStarts]uint16
	// RowOf gives each state's index in Rows.
	RowOf []uint16
	// Rows: row 0 matches nothing; row 1 stands for a key that cannot be read
	// (an unresolvable or overlong path): every pattern of every notify-free
	// (ask, block, kill) clause, no target, every source and every since event,
	// no gate that opens and no lineage.
	Rows []Row
	// Clauses are decided in the order in which a row lists them.
	Clauses []Clause
	// ArgWords is the number of 64-bit words of an argv position set.
	ArgWords int
	// ArgStart has the bits of all first positions set.
	ArgStart []uint64
	// Ops is the set (1<<op) of operations that any clause, gate or source needs.
	Ops uint32
	// Labels is the set of labels that some clause tests.
	Labels uint64
}

// NoRow and UnknownRow are the two fixed rows.
const (
	NoRow      = 0
	UnknownRow = 1
)

// Row is what holds for all keys that match one and the same set of patterns.
type Row struct {
	// Sources: labels that a file or endpoint of this name carries.
	Sources uint64
	// ExecSources: labels that running a program of this name gives.
	ExecSources uint64
	// Lineage: the lineage bits that running it sets. Only from Path.
	Lineage uint64
	// Targets: the exec target sets (bits, see Clause.Target) that hold.
	Targets uint64
	// Clauses lists, by operation, the candidates: indexes into Image.Clauses,
	// strictest effect first, then in file order.
	Clauses [ir.NumOps][]uint16
	// Gates lists, by operation of the event, what it does to gates.
	Gates [ir.NumOps][]GateRef
	// Tokens, for rows of Token: the argv positions that this token satisfies.
	Tokens []uint64
}

// Clause is one conjunction: a clause of the policy makes one per Term.
type Clause struct {
	Clause int // index in Program.Clauses
	Rule   int
	Effect ir.Effect
	All    uint64 // labels that must be there
	None   uint64 // labels that must not
	// Any: the pattern is the word any; the clause names no program.
	Any bool
	// Arg is the argv position that must have been reached, or -1.
	Arg int
	// UnlessLineage: one of these bits excuses.
	UnlessLineage uint64
	// UnlessGates: one of these gates, when fresh, excuses.
	UnlessGates []int
	// Target is the bit in the resolved path's Row.Targets that excuses, or -1.
	// Targets of other operations are resolved at compile time.
	Target int
}

// GateRef says what an event does to a gate.
type GateRef struct {
	Gate int
	// Arm: the event is the gate's After; else it is one of its Since events.
	Arm bool
	// Exit is the exit status to wait for before arming, or -1.
	Exit int
	// Arg is the argv position that must have been reached, or -1.
	Arg int
}
