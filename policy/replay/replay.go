// SPDX-License-Identifier: Apache-2.0

// Package replay asks what would have become of recorded operations under another
// policy.
//
// A record is one decision: an operation, its object and arguments, of the process's
// labels those that the clause which decided asks for, and that clause: it matched, so
// that none of its conditions for an exception held. All else that a decision can depend
// on is not in it: other labels, lineages and gates, whether a file was written inside.
// So a record is asked of package model in every state that it leaves open, and where
// the answers differ the outcome says on what they depend. Labels count as the record
// has them, whatever gives them under the other policy.
//
// What is recorded is what was denied or noticed. What was allowed without a word is in
// no log, so that a replay does not tell what another policy would deny besides.
package replay

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/model"
)

// Record is one recorded decision.
type Record struct {
	Effect    string // notify, ask, block or kill
	Operation string
	Object    string   // a path with its links resolved, or an endpoint
	Args      []string // argv of an exec
	ArgsCut   bool     // Args are not all of it
	Rule      string   // whose clause decided, "" for a default or the engine itself
	Clause    string   // or default, as written; "" when the engine itself decided
	Labels    []string // those of the process that the clause asks for
	// Unrecorded: it stands for several operations, of whose objects nothing is known.
	Unrecorded bool
}

// Kind tells outcomes apart.
type Kind uint8

// The kinds.
const (
	Alike   Kind = iota // the same effect
	Differs             // another one, for certain
	Depends             // the same or others, by what is not recorded
	Itself              // the engine decided, and would under any policy
	Unclear             // it cannot be asked: Outcome.Why
)

// Outcome is what would have become of a record.
type Outcome struct {
	Kind Kind
	// Answers are the decisions that there can be, each with another effect. The first
	// is what is decided when nothing of what is not recorded holds.
	Answers []Answer
	// Why a record is unclear, one sentence without its full stop.
	Why string
}

// Answer is a decision, and what must hold for it of what is not recorded.
type Answer struct {
	model.Decision
	When []string // phrases; none for the first answer
	// Or are the other ways in which it comes about: lists like When, none within another.
	Or [][]string
}

// maxFacts, maxWork and maxTokens bound what is tried: for each fact twice the states. The
// others are bounds, in bytes, above those of the engine (a path of 4,095, 2,048 of arguments): globs are
// matched against these texts. Of a clause that is longer nothing is read.
const (
	maxFacts  = 10
	maxWork   = 1 << 16 // clauses that are decided, all states together
	maxTokens = 1 << 22 // bytes of arguments that tokens are held against
	maxObject = 4096
	maxArgs   = 16 << 10
	maxClause = 16 << 10
)

// Replay decides a record under a program. What it does for one record is bounded,
// however large the program is: what takes more is unclear.
func Replay(p *ir.Program, r *Record) Outcome {
	if r.Rule == "" && r.Clause == "" {
		return Outcome{Kind: Itself}
	}
	unclear := func(format string, args ...any) Outcome {
		return Outcome{Kind: Unclear, Why: fmt.Sprintf(format, args...)}
	}
	op, ok := operation(r.Operation)
	if !ok {
		return unclear("nothing is known of the operation %q", r.Operation)
	}
	was, ok := effect(r.Effect)
	if !ok || was == ir.Allow {
		return unclear("nothing is known of the effect %q", r.Effect)
	}
	if r.Unrecorded {
		return unclear("it stands for operations of which there are no records")
	}
	if len(r.Object) > maxObject || length(r.Args) > maxArgs {
		return unclear("its object or arguments are longer than any that the engine records")
	}
	if strings.ContainsRune(r.Object+strings.Join(r.Args, ""), utf8.RuneError) {
		return unclear("a name has bytes that are no UTF-8, and the record does not hold them")
	}
	q := &question{program: p, record: r, op: op, told: read(op, r, p.Workspace)}
	if q.told.hidden != "" {
		return unclear("%s", q.told.hidden)
	}
	answers, err := q.answers()
	if err != nil {
		return unclear("%s", err.Error())
	}
	if q.told.asked && was == ir.Block { // a person said no
		was = ir.Ask
	}
	out := Outcome{Kind: Depends, Answers: answers}
	if len(answers) == 1 {
		out.Kind = Differs
		if answers[0].Effect == was {
			out.Kind = Alike
		}
	}
	return out
}

func length(args []string) (n int) {
	for _, a := range args {
		n += len(a) + 1
	}
	return n
}

func operation(word string) (ir.Op, bool) {
	for op := range ir.NumOps {
		if op.String() == word {
			return op, true
		}
	}
	return 0, false
}

func effect(word string) (ir.Effect, bool) {
	for e := range ir.Kill + 1 {
		if e.String() == word {
			return e, true
		}
	}
	return 0, false
}

// question is a record that is asked of a program.
type question struct {
	program *ir.Program
	record  *Record
	op      ir.Op
	told    *told
}

// answers asks in every state that there can be, and keeps for each effect the fewest
// facts that lead to it.
func (q *question) answers() ([]Answer, error) {
	queries, err := q.queries()
	if err != nil {
		return nil, err
	}
	var out []Answer
	work := 0
	for _, x := range queries {
		program, facts, err := q.open(x.query)
		if err != nil {
			return nil, err
		}
		if len(facts) > maxFacts {
			return nil, fmt.Errorf("it depends on more than %d things that are not recorded", maxFacts)
		}
		if work += (len(program.Clauses) + len(program.Defaults) + 1) << len(facts); work > maxWork {
			return nil, errors.New("it depends on too much that is not recorded, in too many clauses")
		}
		implied := implied(facts)
		for set := range uint(1) << len(facts) {
			if !possible(implied, set) {
				continue
			}
			query := *x.query
			when := slices.Clone(x.when)
			for i, f := range facts {
				if set>>i&1 == 1 {
					f.set(&query)
					when = append(when, f.phrase)
				}
			}
			d, err := query.Decision(program)
			if err != nil {
				return nil, err
			}
			out = keep(out, Answer{Decision: d, When: when})
		}
	}
	slices.SortStableFunc(out, func(a, b Answer) int {
		return cmp.Or(len(a.When)-len(b.When), int(b.Effect)-int(a.Effect))
	})
	return out, nil
}

// keep adds an answer, or to one of the same effect the way to it, unless fewer facts
// lead there. Those that have all facts of another way come after it.
func keep(list []Answer, a Answer) []Answer {
	i := slices.IndexFunc(list, func(x Answer) bool { return x.Effect == a.Effect })
	if i < 0 {
		return append(list, a)
	}
	known := &list[i]
	for _, way := range append([][]string{known.When}, known.Or...) {
		if !slices.ContainsFunc(way, func(phrase string) bool { return !slices.Contains(a.When, phrase) }) {
			return list
		}
	}
	if len(a.When) < len(known.When) {
		known.Decision, known.When, a.When = a.Decision, a.When, known.When
	}
	known.Or = append(known.Or, a.When)
	slices.SortStableFunc(known.Or, func(x, y []string) int { return len(x) - len(y) })
	return list
}

// named refuses an address where host names decide: a record does not have the name
// under which an address was looked up.
func (q *question) named() error {
	if q.op < ir.Connect || strings.HasPrefix(q.record.Object, "/") || strings.HasPrefix(q.record.Object, "@") {
		return nil
	}
	host := func(p ir.Pattern, text string) error {
		if !p.Host {
			return nil
		}
		return fmt.Errorf("the policy names hosts (`%s`), and the record has an address", text)
	}
	for i := range q.program.Clauses {
		c := &q.program.Clauses[i]
		if !ir.Governs(c.Op, q.op) {
			continue
		}
		if err := host(c.Pattern, c.Text); err != nil {
			return err
		}
		for _, t := range c.Unless.Targets {
			if err := host(t.Pattern, c.Text); err != nil {
				return err
			}
		}
	}
	for _, s := range q.program.Sources {
		if err := host(s.Pattern, s.Text); err != nil && q.op != ir.Bind {
			return err
		}
	}
	return nil
}

// carried are the labels of the record, as the program numbers them.
func (q *question) carried() (set uint64) {
	for i, l := range q.program.Labels {
		if slices.Contains(q.record.Labels, l.Name) {
			set |= 1 << i
		}
	}
	return set
}

// open returns what of the program can decide the event, and the facts that this
// depends on and the record does not tell.
func (q *question) open(x *model.Query) (*ir.Program, []fact, error) {
	if q.tokens() > maxTokens {
		return nil, nil, errors.New("the policy asks for so many arguments of programs that this record's are too many")
	}
	t, err := x.Decide(q.program)
	if err != nil {
		return nil, nil, err
	}
	some := *q.program
	some.Clauses = nil
	var labels, lineages, gates uint64
	modified := false
	for _, c := range t.Clauses {
		if q.record.ArgsCut && slices.ContainsFunc(c.Conditions, func(x model.Condition) bool { return x.Part == model.Arguments }) {
			return nil, nil, fmt.Errorf("the record does not hold all arguments, and `%s` asks for some", c.Clause.Text)
		}
		if slices.ContainsFunc(c.Conditions, func(x model.Condition) bool { return !x.State && !x.Met }) {
			continue
		}
		clause := *c.Clause
		clause.Args = nil // they match, in whatever state
		some.Clauses = append(some.Clauses, clause)
		labels |= tested(c.Clause.If)
		for _, l := range c.Clause.Unless.Lineages {
			lineages |= 1 << l
		}
		for _, g := range c.Clause.Unless.Gates {
			gates |= 1 << g
		}
		modified = modified || c.Clause.Unless.Modified || c.Clause.Unless.NotModified
	}
	if changes(x) {
		for _, p := range q.program.Protects {
			labels |= tested(p.If)
		}
	}
	facts := q.facts(labels&^t.Brings, lineages, gates, modified && !x.Unresolved)
	return &some, append(facts, q.cleared(labels&t.Brings)...), nil
}

// tokens is how much there is to match: tokens of the program times bytes of arguments.
func (q *question) tokens() (n int) {
	for i := range q.program.Clauses {
		n += len(q.program.Clauses[i].Args)
	}
	return n * length(q.record.Args)
}

func changes(x *model.Query) bool {
	return slices.ContainsFunc(append(slices.Clip(x.With), x.Op), func(op ir.Op) bool {
		return op == ir.Write || op == ir.Append || op == ir.Unlink
	})
}
