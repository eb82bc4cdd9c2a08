// SPDX-License-Identifier: Apache-2.0

// Package compare finds what two policies decide differently, with an example for each
// difference.
//
// It walks the product of both policies' automata, so that it finds every set of
// patterns that some path, name, address or argument matches, and solves for each what
// arguments and which state (labels, lineages, gates, modified files) make the policies
// differ. Each example is then asked of package model, under both policies. Where no
// difference is found and the result is complete, there is none.
//
// States are free: what labels a process can have together, and whether a gate can be
// fresh, is not looked at. A difference that needs a state gets a trace from the
// beginning that comes to it, where one is found; else it says what it supposes.
package compare

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/actplane/actplane/policy/dfa"
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/model"
)

// Policy is a compiled policy.
type Policy struct {
	Program *ir.Program
	Image   *dfa.Image
}

// Result is what differs.
type Result struct {
	Differences []Difference // those that the new policy allows first, then those that it denies
	Labels      []LabelChange
	// Beside says what else differs: limits, reasons, feedback; a sentence each.
	Beside []string
	// Missed says what was not looked at, a sentence each; empty if the result is
	// complete.
	Missed []string
}

// Same tells whether the policies mean the same.
func (r *Result) Same() bool { return len(r.Differences)+len(r.Labels)+len(r.Beside) == 0 }

// Direction tells what the new policy does with what the old one decided.
type Direction uint8

// The directions.
const (
	Allows    Direction = iota // what was denied
	Denies                     // what was allowed
	Otherwise                  // denies or allows it as before, in another way
	Told                       // decides it as before, and tells the agent otherwise: another rule or reason
)

// Difference is a pair of decisions that are not the same, with an example. An example
// of each pair is enough: what decides it under each policy tells the rest.
type Difference struct {
	Direction Direction
	Ops       []ir.Op // for which the same decisions differ
	Old, New  model.Decision
	// Trace leads from the beginning to the event, its last step, where both
	// policies decide otherwise.
	Trace []string
	// Supposed is the state that the event needs and that no trace was found for, a
	// phrase each. Trace has the event alone then.
	Supposed []string
	// Note says how the event happens, if it is in no way that a step can say.
	Note string
}

// LabelChange is a label that something gives or takes under one policy only.
type LabelChange struct {
	Label string
	Verb  string   // gives, takes, endorses
	Trace []string // the example, its last step
	New   bool     // so under the new policy, and not under the old one
}

// Bounds of the search. It is given up, and says so, where it would go beyond.
const (
	maxTuples    = 1 << 20 // states of a product of automata
	maxQuestions = 1 << 18 // pairs of a program and another name of it
	maxFindings  = 1000
)

// comparison is the state of the work.
type comparison struct {
	sides     [2]Policy
	says      [2][]string // what the agent is told, by rule
	atoms     *atoms
	tokens    *sequences
	walks     [dfa.Host + 1]*walker
	complete  bool        // all keys were walked
	never     []predicate // what holds in no state
	clearings []clearing
	work      *budget
	workspace string // for examples

	solved    map[string][]solution // of problems, by their key
	findings  []*finding
	byDecider map[string]*finding
	before    map[string]bool      // what is told in place of what both policies have
	seen      map[statementOf]bool // of which the other policy allows something
	missed    map[string]bool
}

// finding is a difference with the question that it came from.
type finding struct {
	Difference
	question question
	answer   answer
}

// Compare finds what changes from one policy to the other. It takes some seconds at most:
// where there is more to do it says what it did not look at.
func Compare(before, after Policy) *Result { return within(before, after, searchSteps, showSteps) }

// within is Compare, with as many steps for the search and for showing what it found.
func within(before, after Policy, search, show int) *Result {
	work := &budget{search}
	c := &comparison{
		work:  work,
		sides: [2]Policy{before, after}, atoms: newAtoms([2]*ir.Program{before.Program, after.Program}),
		tokens: newSequences(work), workspace: after.Program.Workspace,
		solved: map[string][]solution{}, byDecider: map[string]*finding{}, before: map[string]bool{}, seen: map[statementOf]bool{}, missed: map[string]bool{},
	}
	for side, p := range c.sides {
		for i := range p.Program.Rules {
			c.says[side] = append(c.says[side], saysRule(&p.Program.Rules[i]))
		}
	}
	c.walk()
	c.arguments()
	c.rename()
	c.findClearings()
	c.constrain()
	out := c.search()
	c.work.left = show
	for _, f := range c.findings {
		if !c.told(f) {
			out.Differences = append(out.Differences, c.shown(f))
		}
	}
	slices.SortStableFunc(out.Differences, func(x, y Difference) int {
		return cmp.Or(int(x.Direction)-int(y.Direction), order(x)-order(y))
	})
	out.Missed = slices.Sorted(maps.Keys(c.missed))
	return out
}

// arguments finds those that tokens tell apart, with half of the work that there is: all
// but programs are compared without.
func (c *comparison) arguments() {
	before := c.work.left / 2
	part := &budget{before}
	if !c.tokens.find(c.sides, maxTuples, part) {
		c.missed["Not all arguments of programs were looked at: there are too many kinds of them."] = true
	}
	c.work.spend(before - part.left)
}

// search compares what is decided about each operation, then who has labels and the
// rest. Where it is given up it notes what was left.
func (c *comparison) search() *Result {
	out := &Result{}
	var left []string
	stage := func(what string, f func()) {
		others := c.work.left / 2 // what takes very long leaves half for the others
		c.work.left -= others
		if f(); c.work.spent() {
			left = append(left, what)
		}
		c.work.left += others
	}
	for op := range ir.NumOps {
		stage(op.String(), func() { c.operation(op) })
	}
	stage("labels", func() { out.Labels = c.labels() })
	stage("what the agent is told", c.reasons)
	stage("protect", func() { out.Beside = c.beside() })
	if len(left) > 0 {
		c.missed["It would take too long to compare all, and was given up: of "+strings.Join(left, ", ")+" not all was looked at."] = true
	}
	return out
}

// bringsOtherwise tells whether an event brings other labels under one policy than under
// the other.
func (c *comparison) bringsOtherwise(q *question) bool {
	var brought [2][]literal
	for side := range brought {
		brought[side] = literals(nil, c.atoms.labels[side], c.brought(side, q), true)
		slices.SortFunc(brought[side], compareLiterals)
	}
	return !slices.Equal(brought[0], brought[1])
}

// told tells whether a finding that happens in a roundabout way says no more than one
// that happens plainly: the same statement is what the other policy has not. Of a file
// whose path is not known all statements are, so that one of the operation is enough.
func (c *comparison) told(f *finding) bool {
	if f.question.plain() {
		return false
	}
	return slices.ContainsFunc(c.findings, func(other *finding) bool {
		known := f.question.manner == unresolved && other.question.manner != unresolved && slices.Contains(other.Ops, f.question.op)
		return other.Direction == f.Direction && (known || other.question.plain() && decider(*other.stricter()) == decider(*f.stricter()))
	})
}

// stricter is the decision that denies more.
func (d *Difference) stricter() *model.Decision {
	if d.New.Effect > d.Old.Effect {
		return &d.New
	}
	return &d.Old
}

// order is where the clause of the stricter decision stands.
func order(d Difference) int {
	by := d.stricter()
	line := 1 << 30 // what is no clause comes last
	if by.Clause != nil {
		line = lineOf(by.Clause.Pos)
	}
	return line
}

// lineOf takes the line from file:line:col.
func lineOf(pos string) int {
	parts := strings.Split(pos, ":")
	if len(parts) < 3 {
		return 0
	}
	line, _ := strconv.Atoi(parts[len(parts)-2])
	return line
}

// walk finds the places of all kinds of keys.
func (c *comparison) walk() {
	images := [2]*dfa.Image{c.sides[0].Image, c.sides[1].Image}
	p := newPaths()
	c.complete = true
	for _, x := range []struct {
		kind dfa.Start
		grammar
	}{{dfa.Path, p}, {dfa.Name, names{p.bytes}}, {dfa.Address, newAddresses()}, {dfa.Unix, sockets{p}}, {dfa.Host, hosts{p.bytes}}} {
		kind := x.kind
		w, complete := walk(images, kind, x.grammar, c.workspace, maxTuples, c.work)
		if c.complete = c.complete && complete; !complete {
			c.missed["Not all "+kindText(kind)+" were looked at: both automata together are too large."] = true
		}
		c.walks[kind] = w
	}
}

func kindText(kind dfa.Start) string {
	switch kind {
	case dfa.Path:
		return "paths"
	case dfa.Name:
		return "names of programs"
	case dfa.Unix:
		return "Unix sockets"
	case dfa.Host:
		return "host names"
	}
	return "addresses"
}

// operation compares what the policies decide about one operation.
func (c *comparison) operation(op ir.Op) {
	if op == ir.Exec {
		c.programs()
	} else {
		for q := range c.questions(op) {
			c.ask(q)
		}
	}
	if op < ir.Connect {
		unknown := place{rows: [2][]uint16{{dfa.UnknownRow}, {dfa.UnknownRow}}}
		c.ask(&question{op: op, manner: unresolved, place: unknown})
	}
}

// questions are those about an operation on each place, in each manner, until there is no
// work left.
func (c *comparison) questions(op ir.Op) iter.Seq[*question] {
	return func(yield func(*question) bool) {
		for _, kind := range kindsOf(op) {
			for _, p := range c.walks[kind].places {
				for _, manner := range manners(op, p.kind) {
					if c.work.spent() || !yield(&question{op: op, place: p, manner: manner}) {
						return
					}
				}
			}
		}
	}
}

// programs compares what is decided about running programs, by their own name and by
// any other, and about mapping their code.
func (c *comparison) programs() {
	paths, others := c.walks[dfa.Path].places, c.walks[dfa.Name].places
	differ := func(p place) bool {
		q := question{op: ir.Exec, place: p, bare: true}
		return !c.problem(&q).same() || c.bringsOtherwise(&q)
	}
	for i := range paths {
		for _, manner := range manners(ir.Exec, paths[i].kind) {
			if c.work.spent() {
				return
			}
			c.ask(&question{op: ir.Exec, place: paths[i], manner: manner})
		}
	}
	var changed []bool
	for i := range others {
		if c.work.spent() {
			return
		}
		changed = append(changed, differ(others[i]))
	}
	questions := 0
	for i := range paths {
		itself := differ(paths[i])
		for j := range others {
			if len(others[j].rows[0])+len(others[j].rows[1]) == 0 || !itself && !changed[j] {
				continue
			}
			if c.work.spent() {
				return
			}
			if questions++; questions > maxQuestions {
				c.missed["Not all programs were looked at under all names by which they can be invoked: there are too many."] = true
				return
			}
			for _, manner := range manners(ir.Exec, paths[i].kind) {
				c.ask(&question{op: ir.Exec, place: paths[i], name: &others[j], manner: manner})
			}
		}
	}
}
