// SPDX-License-Identifier: Apache-2.0

package syntax

import "github.com/actplane/actplane/policy/diag"

// File is one policy text.
type File struct {
	Sources    []*Source
	Rules      []*Rule
	Transforms []*Transform
	Defaults   []*Default
	Comments   []Comment
	// Misread are the labels of sources and transforms that could not be read.
	Misread []Name
}

// Comment is a comment from its # to the end of the line.
type Comment struct {
	Span diag.Span
	Text string
}

// Name is an identifier, a keyword or a string, with its place.
type Name struct {
	Span diag.Span
	Text string
}

// Pattern is a string or the word any.
type Pattern struct {
	Span diag.Span
	Any  bool
	Text string // the string's value
}

// Source is `source LABEL = KIND PATTERN`.
type Source struct {
	Span    diag.Span
	Label   Name
	Kind    Name
	Pattern Pattern
}

// Transform is `declassify LABEL by exec PATTERN`, or endorse.
type Transform struct {
	Span    diag.Span
	Verb    Name
	Label   Name
	Pattern Pattern
}

// Default is `default EFFECT OP`.
type Default struct {
	Span   diag.Span
	Effect Name
	Hold   *Name // the duration of `ask hold`
	Op     Name
}

// Rule is `rule NAME: CLAUSE… [because STRING]`.
type Rule struct {
	Span    diag.Span
	Name    Name
	Clauses []*Clause
	Because *Name
	// mixed tells that a line in it begins with nothing known: what follows may
	// have been meant for another rule.
	mixed bool
}

// Clause is `[EFFECT] OP [KIND] PATTERN ARG… [if EXPR] [unless COND or …]`.
type Clause struct {
	Span    diag.Span
	Effect  *Name // nil: block
	Hold    *Name // the duration of `ask hold`
	Op      Name
	Kind    *Name
	Pattern Pattern
	Args    []Name
	If      Expr // nil: always
	Unless  []*Cond
	Broken  bool // something follows it that could not be read
}

// Expr is a boolean expression over labels.
type Expr interface{ Place() diag.Span }

// The expressions. Mixed of a Binary tells that it is an `or` with a bare
// `and` beside it, which some readers take from left to right.
type (
	// Label is a label's name.
	Label struct{ Name Name }
	// True is the word true.
	True struct{ Span diag.Span }
	// Not is `not X`.
	Not struct {
		Span diag.Span
		X    Expr
	}
	// Binary is `X and Y` or `X or Y`.
	Binary struct {
		Or    bool
		X, Y  Expr
		Mixed bool
	}
	// Paren is `(X)`.
	Paren struct {
		Span diag.Span
		X    Expr
	}
)

// Place returns where the expression stands.
func (e *Label) Place() diag.Span { return e.Name.Span }

// Place returns where the expression stands.
func (e *True) Place() diag.Span { return e.Span }

// Place returns where the expression stands.
func (e *Not) Place() diag.Span { return e.Span }

// Place returns where the expression stands.
func (e *Binary) Place() diag.Span {
	return diag.Span{Start: e.X.Place().Start, End: e.Y.Place().End}
}

// Place returns where the expression stands.
func (e *Paren) Place() diag.Span { return e.Span }

// CondKind tells the conditions of `unless` apart.
type CondKind uint8

// The conditions.
const (
	CondTarget CondKind = iota
	CondLineage
	CondAfter
	CondContract
	CondUnsteered
)

// Cond is one condition of `unless`.
type Cond struct {
	Span diag.Span
	Kind CondKind
	// Not is set for `target not`.
	Not bool
	// Property is the word modified or signed after target; else nil.
	Property *Name
	Pattern  Pattern // of CondTarget and CondLineage
	Contract Name
	After    *Event
	Exits    *Name // a number, as written
	Since    []*Event
}

// Event is `OP [KIND] PATTERN ARG…` in after and since.
type Event struct {
	Span    diag.Span
	Op      Name
	Kind    *Name
	Pattern Pattern
	Args    []Name
}
