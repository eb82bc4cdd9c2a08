// SPDX-License-Identifier: Apache-2.0

// Package ir is the kernel-neutral form of a policy: what package check makes
// of the syntax trees of all layers, and what packages dfa and model read.
//
// Names are resolved to numbers, patterns are validated but still text,
// expressions are in disjunctive normal form. A Program is plain data: it
// marshals to JSON, and equal policies give equal bytes.
package ir

// Op is an operation that a clause or a gate names.
type Op uint8

// The operations, in the order in which documentation lists them.
const (
	Exec Op = iota
	Open
	Read
	Write
	Append
	Unlink
	Connect
	Bind
	Send
	Recv
	NumOps
)

// Effect is what a clause does; a larger one is stricter.
type Effect uint8

// The effects, from the most permissive to the strictest.
const (
	Allow Effect = iota
	Notify
	Ask
	Block
	Kill
)

// Kind is what a pattern is matched against.
type Kind uint8

// The kinds of objects.
const (
	File Kind = iota
	ExecProgram
	Endpoint
)

// Bounds of a Program, the engine's table sizes. A test keeps them equal to
// those in bpf/abi.h.
const (
	MaxLabels      = 64
	MaxGates       = 64
	MaxLineages    = 64
	MaxClauses     = 4096
	MaxExecTargets = 64  // distinct `unless target` sets on exec clauses
	MaxClauseGates = 8   // `after` conditions of one clause
	MaxArgPatterns = 512 // argv token positions of all clauses and gates
	MaxStates      = 8192
)

// Program is one compiled policy: all its layers together.
type Program struct {
	// Workspace is the root of relative file patterns, already applied.
	Workspace string
	Layers    []Layer
	Labels    []Label   // a label's index is its bit
	Lineages  []Pattern // exec patterns of `lineage-includes`; the index is the bit
	Gates     []Gate
	Sources   []Source
	Rules     []Rule
	Clauses   []Clause // in file order, outer layers first
	Limits    Limits
}

// Layer is one policy document that went into the program.
type Layer struct {
	Name   string // as diagnostics name it: a path or an annotation
	SHA256 string // of the text, hex
}

// Label is a declared label.
type Label struct {
	Name  string
	Layer int
}

// Pattern is a validated pattern in canonical text.
type Pattern struct {
	Kind Kind
	// Any is the word `any` or the pattern `*` of an endpoint: Text is empty.
	Any bool `json:",omitempty"`
	// Text is an absolute glob (File; ExecProgram with a slash), a base-name
	// glob (ExecProgram without one) or an endpoint in the form of the language.
	Text string `json:",omitempty"`
}

// Source gives a label to what its pattern names.
type Source struct {
	Label   int
	Pattern Pattern
}

// Rule is what several clauses share.
type Rule struct {
	Name    string
	Because string `json:",omitempty"`
	Layer   int
	Pos     string // file:line:col
}

// Term is a conjunction of labels: all of All, none of None, as label bits.
type Term struct {
	All  uint64 `json:",omitempty"`
	None uint64 `json:",omitempty"`
}

// Clause is one clause of a rule. It matches when its operation, pattern and
// Args match, one of If holds (an empty If holds always) and no Unless holds.
type Clause struct {
	Rule    int
	Effect  Effect
	Op      Op
	Pattern Pattern
	Args    []string `json:",omitempty"` // token globs, in this order, gaps allowed
	If      []Term   `json:",omitempty"`
	Unless  Unless
	Pos     string // file:line:col
	Text    string // the clause as written, on one line
}

// Unless is a disjunction of conditions, by kind.
type Unless struct {
	Targets  []Target `json:",omitempty"`
	Lineages []int    `json:",omitempty"` // indexes of Program.Lineages
	Gates    []int    `json:",omitempty"` // indexes of Program.Gates
}

// Target is `target PATTERN` or, with Not, `target not PATTERN`.
type Target struct {
	Not     bool `json:",omitempty"`
	Pattern Pattern
}

// Gate is one `after EVENT [exits N] [since EVENT or …]` condition. It is
// fresh when After happened and no Since event happened later.
type Gate struct {
	After Event
	// Exit is the status of `exits N`; -1 without one.
	Exit  int
	Since []Event `json:",omitempty"`
	Text  string  // as written
}

// Event is an operation with its pattern, as gates name it.
type Event struct {
	Op      Op // Exec, Open, Read, Write or Unlink
	Pattern Pattern
	Args    []string `json:",omitempty"`
}

// Limits are the policy file's `limits:`; a zero value says nothing.
type Limits struct {
	Pids            int64         `json:",omitempty"`
	Memory          int64         `json:",omitempty"` // bytes
	CPUs            float64       `json:",omitempty"`
	Capabilities    *Capabilities `json:",omitempty"`
	NoNewPrivileges bool          `json:",omitempty"`
}

// Capabilities are limits.capabilities: names with their CAP_ prefix, or ALL.
type Capabilities struct {
	Drop []string `json:",omitempty"`
	Add  []string `json:",omitempty"`
}
