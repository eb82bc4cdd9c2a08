// SPDX-License-Identifier: Apache-2.0

// Package ir is the kernel-neutral form of a policy: what package check makes
// of the syntax trees of all layers, and what packages dfa and model read.
//
// Names are resolved to numbers, patterns are validated but still text,
// expressions are in disjunctive normal form, domains are the rules that hold.
// A Program is plain data: it marshals to JSON, and equal policies give equal
// bytes. It can say more than an engine enforces; package policy tells.
//
// A layer is an index of Program.Layers, and a smaller one is further out. What
// an inner layer says never takes from an outer one: see Default, Transform and
// Label.
package ir

import (
	"strconv"
	"time"
)

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
// those in bpf/abi.h. MaxStates is checked for enforcement only: the compiler
// makes automata of up to MaxCompiledStates.
const (
	MaxLabels      = 64
	MaxGates       = 64
	MaxLineages    = 64
	MaxClauses     = 4096
	MaxExecTargets = 64   // distinct `unless target` sets on exec clauses
	MaxClauseGates = 8    // `after` conditions of one clause
	MaxArgPatterns = 512  // argv token positions of all clauses and gates
	MaxDefaults    = 64   // of all layers
	FewStates      = 1024 // the smaller of the engine's two sizes of automata
	MaxStates      = 8192

	MaxCompiledStates = 1 << 16

	// Bytes that all patterns and all different tokens take with their braces expanded,
	// as pattern.Expanded counts: what makes the compiler take long is refused first.
	MaxPatternBytes = 1 << 20
	MaxTokenBytes   = 1 << 20
)

// Program is one compiled policy: all its layers together.
type Program struct {
	// Workspace is the root of relative file patterns, already applied.
	Workspace  string
	Layers     []Layer
	Labels     []Label   // a label's index is its bit
	Lineages   []Pattern // exec patterns of `lineage-includes`; the index is the bit
	Gates      []Gate
	Sources    []Source
	Transforms []Transform `json:",omitempty"`
	Defaults   []Default   `json:",omitempty"`
	Rules      []Rule
	Clauses    []Clause  // in file order, outer layers first
	Protects   []Protect `json:",omitempty"`
	Feedback   Feedback
	Limits     Limits
}

// Layer is one policy document that went into the program.
type Layer struct {
	Name   string // as diagnostics name it: a path or an annotation
	SHA256 string // of the text, hex
	// Domain is the document's domain that holds, "" without domains.
	Domain string `json:",omitempty"`
	// Added: it came while the policy was in force.
	Added bool `json:",omitempty"`
}

// AddedAt tells whether a layer, by its number, came while the policy was in force: a program
// in the container wrote its texts.
func (p *Program) AddedAt(layer int) bool {
	return layer >= 0 && layer < len(p.Layers) && p.Layers[layer].Added
}

// Label is a declared label. It belongs to the layer that declares it: inner
// layers may test it, and neither give nor take it.
type Label struct {
	Name  string
	Layer int
	// Integrity: some Transform endorses it. No source gives it, only fork and
	// exec keep it, and its holder loses it with the first ordinary label that a
	// flow brings.
	Integrity bool `json:",omitempty"`
	// Confines: the engine alone gives it, to a process for which rules were added. Forks
	// and execs keep it, no flow carries it, and nothing takes it away.
	Confines bool `json:",omitempty"`
}

// Pattern is a validated pattern in canonical text.
type Pattern struct {
	Kind Kind
	// Any is the word `any` or the pattern `*` of an endpoint: Text is empty.
	Any bool `json:",omitempty"`
	// Host: the pattern of an endpoint is a name, and no address is known for it.
	Host bool `json:",omitempty"`
	// Text is an absolute glob (File; ExecProgram with a slash), a base-name
	// glob (ExecProgram without one) or an endpoint in the form of the language.
	// Of a Host it is a glob over lower-case names, with :PORT or :LOW-HIGH.
	Text string `json:",omitempty"`
}

// Source gives a label to what its pattern names.
type Source struct {
	Label   int
	Pattern Pattern
	Pos     string // file:line:col
	Text    string // as written
}

// Transform is `declassify LABEL by exec PATTERN` or, with Endorse, `endorse …`.
// The label is of the transform's own layer.
type Transform struct {
	Endorse bool `json:",omitempty"` // the exec sets the label; else it clears it
	Label   int
	Pattern Pattern // of programs
	Layer   int
	Pos     string // file:line:col
	Text    string // as written
}

// Default is `default EFFECT OP`. It decides like a clause that matches every
// object, except that an `allow` clause which matches lifts it, if that clause
// is of the default's own layer or of an outer one. A default of connect covers
// sends too, as connect clauses do, and so does what lifts it.
type Default struct {
	Effect Effect
	Hold   time.Duration `json:",omitempty"` // as in Clause
	Op     Op
	Layer  int
	Pos    string // file:line:col
	Text   string // as written
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
//
// An Allow denies nothing and reports nothing: it only lifts defaults.
type Clause struct {
	Rule   int
	Effect Effect
	// Hold is how long an Ask stops the process for an answer (`ask hold 5m`); 0
	// is `ask`: the operation fails at once and may be tried again.
	Hold    time.Duration `json:",omitempty"`
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
	// Modified is `target modified`: the file's contents were written inside the
	// scope. NotModified is `target not modified`.
	Modified    bool `json:",omitempty"`
	NotModified bool `json:",omitempty"`
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

// Protect is an entry of the file's `protect:`. What it names can be read and, by
// processes for which one of If holds (an empty If holds always), not changed: by
// no path, link or descriptor, and not by moving a directory above it.
type Protect struct {
	Pattern Pattern // of files
	If      []Term  `json:",omitempty"`
	Layer   int
	Pos     string // file:line:col
	Text    string // the pattern as written
}

// Feedback is the file's `feedback:`, of the outermost layer that says it.
type Feedback struct {
	// Stderr: the reason also goes to the denied process's standard error.
	Stderr bool   `json:",omitempty"`
	Pos    string `json:",omitempty"` // file:line:col of who says so
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

// LayerOf returns the layer of a clause.
func (p *Program) LayerOf(clause int) int { return p.Rules[p.Clauses[clause].Rule].Layer }

// Lifts tells whether an allow clause of one layer lifts a default of another:
// an inner layer never takes what an outer one set.
func Lifts(allow, byDefault int) bool { return allow <= byDefault }

// Governs tells whether what is said of one operation, by a clause or a default,
// can decide events of another: connect covers send, since connecting first and
// reading the secret later must not get around a rule. An allow of send alone
// also lifts, for sends, what a default of connect says.
func Governs(said, event Op) bool {
	return said == event || said == Connect && event == Send
}

// String returns the pattern as the language writes it.
func (p Pattern) String() string {
	if p.Any {
		return "any"
	}
	return strconv.Quote(p.Text)
}

// String returns the condition as the language writes it.
func (t Target) String() string {
	if t.Not {
		return "target not " + t.Pattern.String()
	}
	return "target " + t.Pattern.String()
}

// String returns the word of the language.
func (o Op) String() string {
	if o >= NumOps {
		return "operation " + strconv.Itoa(int(o))
	}
	return [NumOps]string{"exec", "open", "read", "write", "append", "unlink", "connect", "bind", "send", "recv"}[o]
}

// String returns the word of the language.
func (e Effect) String() string {
	if e > Kill {
		return "effect " + strconv.Itoa(int(e))
	}
	return [...]string{"allow", "notify", "ask", "block", "kill"}[e]
}

// String returns the word of the language.
func (k Kind) String() string {
	if k > Endpoint {
		return "kind " + strconv.Itoa(int(k))
	}
	return [...]string{"file", "exec", "endpoint"}[k]
}
