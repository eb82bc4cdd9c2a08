// SPDX-License-Identifier: Apache-2.0

// Package dfa compiles a program's patterns to one minimal automaton and its
// rules to rows, one per set of patterns that a key can match. A decision then
// costs the length of the key and does not depend on the number of rules.
package dfa

import (
	"time"

	"github.com/actplane/actplane/policy/ir"
)

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
	// Device: the path of a terminal or of a device like /dev/null, which is no
	// object of file rules. Only alternatives of patterns that name it literally are
	// live, and no default holds.
	Device
	// Base: an absolute path again, of which this entry looks at the last name alone: a
	// slash leads back to it, so that walking the last name will do. It is Dead in images
	// that match all patterns of paths from Path on. Else those are live here that say
	// nothing of a path but its last name (**/NAME, and the names of programs), but for
	// clauses of files with targets that say more. What the rows of the two entries have,
	// the path has.
	Base
	NumStarts
	// Host: NAME:PORT of a host that is known by its name, in lower case. Its entry
	// is Image.Host. Patterns of names are live, and any.
	Host = NumStarts
)

// Dead is the state from which nothing can match.
const Dead = 0

// Image is a compiled policy: everything the engine needs to decide.
//
// The verdict on an event is the strictest of: the clauses that match, of those
// that Row.Clauses lists (ask: unless it was granted); the protected patterns that
// match, of Row.Protects, for events that change the object, each of which blocks;
// and the defaults of the operation that are not lifted. A default is lifted when
// an allow clause that Row.Allows lists matches and has the default's bit in
// Lifts. So the kernel needs one more pass over a second list of candidates, one
// word for what they lift, and one look at the operation's defaults, the strictest
// first. A key that cannot be read has row 1, whose Allows are empty: nothing
// lifts.
//
// What the engine of this version enforces of this is up to package policy: an
// image that has a Host is not given to it.
type Image struct {
	// Next is the transition table, Next[state*256+byte]. State 0 is Dead.
	Next []uint16
	// Start has the entry state of each kind of key.
	Start [NumStarts]uint16
	// Host is the entry state for the names of hosts. An endpoint that is known by
	// an address and by names has the candidates of the rows of all of them, and
	// the targets.
	Host uint16
	// RowOf gives each state's index in Rows.
	RowOf []uint16
	// Rows: row 0 matches nothing; row 1 stands for a key that cannot be read
	// (an unresolvable or overlong path): every pattern of every clause that denies
	// (ask, block, kill), every protected one, no target, every source and every
	// since event, and nothing that opens: no allow, no gate, no lineage, no
	// transform.
	Rows []Row
	// Clauses are decided in the order in which a row lists them.
	Clauses []Clause
	// Defaults of all operations, the strictest first; at most 64. They hold for
	// every object of their operation, whatever its row; not for what is no object
	// (pipes, terminals) nor for programs that are mapped and not run.
	Defaults []Default
	// Protects are what must not be changed.
	Protects []Protect
	// Moves is what the rename of a directory matters to.
	Moves Moves
	// ArgWords is the number of 64-bit words of an argv position set.
	ArgWords int
	// ArgStart has the bits of all first positions set.
	ArgStart []uint64
	// Ops is the set (1<<op) of operations that any clause, gate or source needs.
	Ops uint32
	// FileNames: some pattern of files is matched from Base on; else only programs that
	// are run need be looked up there.
	FileNames bool
	// Labels is the set of labels that some clause tests.
	Labels uint64
	// Integrity is the set of labels that are endorsed: no flow carries them, and
	// gaining another label by a flow clears them.
	Integrity uint64
	// Confines is the set of labels that the engine alone gives: no flow carries them
	// either, and nothing clears them. They are not among Labels.
	Confines uint64
	// Idle lists clauses of the program that no object can match.
	Idle []int
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
	// Lineage: the lineage bits that running it sets. Only from Path and Base.
	Lineage uint64
	// Declassify and Endorse: the labels that running it clears and then sets,
	// once the new image is there, if it is one that opens gates. While it runs, it
	// does not regain what it clears. Only from Path and Base.
	Declassify, Endorse uint64
	// Targets: the target sets (bits, see Clause.Target) that hold.
	Targets uint64
	// Clauses lists, by operation, the candidates: indexes into Image.Clauses,
	// strictest effect first, then in file order. None is an allow.
	Clauses [ir.NumOps][]uint16
	// Allows lists the allow clauses, in file order; never from Name.
	Allows [ir.NumOps][]uint16
	// Protects lists indexes into Image.Protects. What they name is not written,
	// appended to or unlinked, and no directory above it is moved; it holds for the
	// inode, whatever other names it has.
	Protects []uint16
	// Gates lists, by operation of the event, what it does to gates.
	Gates [ir.NumOps][]GateRef
	// Tokens, for rows of Token: the argv positions that this token satisfies.
	Tokens []uint64
}

// Clause is one conjunction: a clause of the policy makes one per Term.
type Clause struct {
	Clause int // index in Program.Clauses
	Rule   int
	Op     ir.Op // as written
	Effect ir.Effect
	Hold   time.Duration // of an Ask: how long the process waits for the answer; 0: not at all
	All    uint64        // labels that must be there
	None   uint64        // labels that must not
	// Any: the pattern is the word any; the clause names no program.
	Any bool
	// Arg is the argv position that must have been reached, or -1.
	Arg int
	// UnlessLineage: one of these bits excuses.
	UnlessLineage uint64
	// UnlessGates: one of these gates, when fresh, excuses.
	UnlessGates []int
	// Target is the bit in Row.Targets that excuses, or -1: of the resolved path
	// for an exec, of any key for an endpoint. Where a key decides alone, targets
	// are resolved at compile time.
	Target int
	// Added: it was added to a policy in force, so that descriptors may have been opened
	// before it held.
	Added bool
	// UnlessModified: excused if the file's contents were written inside the scope;
	// UnlessUnmodified: if they were not.
	UnlessModified, UnlessUnmodified bool
	// Lifts, of an Allow: the defaults (bits, by index in Image.Defaults) that do
	// not hold when it matches.
	Lifts uint64
}

// Default is a default of one operation; one of connect holds for send as well.
type Default struct {
	Default int // index in Program.Defaults
	Effect  ir.Effect
	Hold    time.Duration // as in Clause
	Op      ir.Op
	Layer   int
}

// Protect is one conjunction of an entry of `protect:`.
type Protect struct {
	Protect   int    // index in Program.Protects
	All, None uint64 // as in Clause
	Added     bool   // as in Clause
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
