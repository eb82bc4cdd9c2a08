// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/actplane/actplane/policy/dfa"
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/model"
)

// predicate is under which state and arguments one clause matches at a place: all its
// literals hold, and its tokens are among the arguments.
type predicate struct {
	effect   ir.Effect
	hold     time.Duration
	literals []literal // sorted
	tokens   int       // number of the sequence, -1 for none
	order    int       // ties go to the smaller one
	says     string    // what the agent is told where it decides
	targets  string    // that can excuse, of a bare question
}

// unlifted is a default, which decides unless one of its lifters matches.
type unlifted struct {
	predicate
	lifters []predicate
}

// verdicts is what one policy decides at a place, as far as it matters there.
type verdicts struct {
	clauses  []predicate // and protected files
	defaults []unlifted
}

// problem is what both policies decide at a place.
type problem [2]verdicts

// manner is how an event happens, beside its operation.
type manner uint8

const (
	plainly    manner = iota
	mapped            // the code of a program is mapped
	unresolved        // the path cannot be known
	asDevice          // the path is of a device, which only those patterns name that say it
)

// question is an event, but for its arguments and the state.
type question struct {
	op     ir.Op
	manner manner
	place  place
	name   *place // by which a program is run, if it is another than its own
	// bare: what the place is, and not what is decided there. Labels that the event
	// brings and targets are left open.
	bare bool
	// cleared are the labels that the program which the process runs clears, so that the
	// event does not bring them.
	cleared clearing
	// opened: what is done to a file, with the opening that comes before it.
	opened bool
}

func (x *predicate) key() string {
	return fmt.Sprintf("%d %d %d %v %s", x.effect, x.hold, x.tokens, x.literals, x.targets)
}

// key is equal for verdicts that say the same; with identity also of the same clauses.
func (v *verdicts) key(identity bool) string {
	var keys []string
	add := func(x *predicate, more string) {
		key := x.key() + more
		if identity {
			key += fmt.Sprintf(" at %d", x.order)
		}
		keys = append(keys, key)
	}
	for i := range v.clauses {
		add(&v.clauses[i], "")
	}
	for i := range v.defaults {
		var lifters []string
		for j := range v.defaults[i].lifters {
			lifters = append(lifters, v.defaults[i].lifters[j].key())
		}
		slices.Sort(lifters)
		add(&v.defaults[i].predicate, fmt.Sprintf(" unless %q", slices.Compact(lifters)))
	}
	slices.Sort(keys)
	return strings.Join(slices.Compact(keys), "\n")
}

// size is something like the work that verdicts make wherever they are looked at.
func (v *verdicts) size() int {
	n := 64
	for i := range v.clauses {
		n += 64 + 16*len(v.clauses[i].literals)
	}
	for i := range v.defaults {
		n += 64
		for j := range v.defaults[i].lifters {
			n += 64 + 16*len(v.defaults[i].lifters[j].literals)
		}
	}
	return n
}

// key is equal for problems with the same answers that the same clauses decide.
func (p *problem) key() string { return p[0].key(true) + "\n\n" + p[1].key(true) }

// same tells whether both policies say the same, word for word.
func (p *problem) same() bool {
	return p[0].key(false) == p[1].key(false) && slices.Equal(p[0].waits(), p[1].waits())
}

// waits are what asks, in its order, if not all of it waits for the same time: whatever
// else decides, its order only changes what the agent is told.
func (v *verdicts) waits() (keys []string) {
	var asks []predicate
	for _, x := range v.clauses {
		if x.effect == ir.Ask {
			asks = append(asks, x)
		}
	}
	for _, d := range v.defaults {
		if d.effect == ir.Ask {
			asks = append(asks, d.predicate)
		}
	}
	if !slices.ContainsFunc(asks, func(x predicate) bool { return x.hold != asks[0].hold }) {
		return nil
	}
	slices.SortFunc(asks, func(x, y predicate) int { return x.order - y.order })
	for i := range asks {
		keys = append(keys, asks[i].key())
	}
	return keys
}

// problem makes the problem of a question.
func (c *comparison) problem(q *question) *problem {
	p := &problem{}
	for side := range p {
		p[side] = c.verdicts(side, q)
		c.work.spend(p[side].size())
	}
	return p
}

// verdicts collects what one policy has to say. The rows list candidates, strictest
// first, and leave out what stands behind a clause that always matches.
func (c *comparison) verdicts(side int, q *question) (v verdicts) {
	if q.manner == asDevice {
		return c.ofDevice(side, q)
	}
	img := c.sides[side].Image
	rows := rowsOf(img, q.place.rows[side])
	called := rows
	if q.name != nil {
		called = slices.Concat(rows, rowsOf(img, q.name.rows[side]))
	}
	var brought, targets uint64
	if !q.bare {
		brought = c.brought(side, q)
		for _, r := range rows {
			targets |= r.Targets
		}
	}
	var allows []uint16
	taken := map[uint16]bool{}
	for _, r := range called {
		for _, i := range slices.Concat(eachOf(q, r.Clauses[:])...) {
			if x := &img.Clauses[i]; !taken[i] && (q.manner != mapped || x.Effect >= ir.Ask && !x.Any) {
				if p, ok := c.predicate(side, x, q, brought, targets); ok {
					v.clauses = append(v.clauses, p)
				}
			}
			taken[i] = true
		}
	}
	for _, r := range rows {
		allows = append(allows, slices.Concat(eachOf(q, r.Allows[:])...)...)
		for _, i := range r.Protects {
			x := &img.Protects[i]
			if p, ok := c.predicate(side, &dfa.Clause{Clause: -1, Effect: ir.Block, All: x.All, None: x.None, Arg: -1, Target: -1}, q, brought, 0); ok && changes(q.op) {
				v.clauses = append(v.clauses, p)
			}
		}
	}
	if q.manner == plainly || q.manner == unresolved {
		v.defaults = c.defaults(side, q, allows, brought, targets)
	}
	return v
}

func rowsOf(img *dfa.Image, numbers []uint16) (out []*dfa.Row) {
	for _, r := range numbers {
		out = append(out, &img.Rows[r])
	}
	return out
}

// events are those that the operation consists of, as model.Query has it: no name goes
// away without being written.
func (q *question) events() []ir.Op {
	switch {
	case q.op == ir.Unlink:
		return []ir.Op{ir.Write, ir.Unlink}
	case q.opened:
		return []ir.Op{ir.Open, q.op}
	}
	return []ir.Op{q.op}
}

// eachOf picks what a row has of the events of an operation.
func eachOf[T any](q *question, list []T) (out []T) {
	for _, e := range q.events() {
		out = append(out, list[e])
	}
	return out
}

// governs tells whether what is said of one operation is about one of the events.
func (q *question) governs(by ir.Op) bool {
	return slices.ContainsFunc(q.events(), func(e ir.Op) bool { return ir.Governs(by, e) })
}

func changes(op ir.Op) bool { return op == ir.Write || op == ir.Append || op == ir.Unlink }

// brought are the labels that the event brings by its object's names.
func (c *comparison) brought(side int, q *question) (labels uint64) {
	img := c.sides[side].Image
	if q.manner == mapped || q.manner == asDevice || !brings(q.op) {
		return 0
	}
	if q.manner == unresolved { // the row has those of endpoints as well
		for _, s := range c.sides[side].Program.Sources {
			if s.Pattern.Kind == ir.File || s.Pattern.Kind == ir.ExecProgram && q.op == ir.Exec {
				labels |= 1 << s.Label
			}
		}
		return labels &^ img.Integrity
	}
	rows := rowsOf(img, q.place.rows[side])
	if q.name != nil {
		rows = append(rows, rowsOf(img, q.name.rows[side])...)
	}
	for _, r := range rows {
		labels |= r.Sources
		if q.op == ir.Exec {
			labels |= r.ExecSources
		}
	}
	return labels &^ q.cleared[side] &^ img.Integrity
}

// brings tells whether an operation gives its subject the object's labels.
func brings(op ir.Op) bool {
	return op == ir.Exec || op == ir.Read || op == ir.Connect || op == ir.Send || op == ir.Recv
}

// predicate is what is left of a clause when the event's place is known and the labels
// that it brings; ok is false where it cannot match.
func (c *comparison) predicate(side int, x *dfa.Clause, q *question, brought, targets uint64) (p predicate, ok bool) {
	if x.Target >= 0 && targets>>x.Target&1 == 1 || x.None&(brought|x.All) != 0 { // excused, or an if that never holds
		return p, false
	}
	a := c.atoms
	p = predicate{effect: x.Effect, tokens: -1, order: x.Clause}
	p.literals = literals(p.literals, a.labels[side], x.All&^brought, true)
	p.literals = literals(p.literals, a.labels[side], x.None, false)
	p.literals = literals(p.literals, a.lineages[side], x.UnlessLineage, false)
	for _, g := range x.UnlessGates {
		p.literals = append(p.literals, literal{a.gates[side][g], false})
	}
	if q.manner != unresolved && x.UnlessModified {
		p.literals = append(p.literals, literal{a.modified, false})
	}
	if q.manner != unresolved && x.UnlessUnmodified {
		p.literals = append(p.literals, literal{a.modified, true})
	}
	slices.SortFunc(p.literals, compareLiterals)
	p.literals = slices.Compact(p.literals)
	if x.Clause < 0 { // of a protected file
		p.order = len(c.sides[side].Program.Clauses) + len(c.sides[side].Program.Defaults)
		p.says = ofProtect
		return p, true
	}
	clause := &c.sides[side].Program.Clauses[x.Clause]
	p.hold = clause.Hold
	p.says = c.says[side][clause.Rule]
	if q.bare {
		p.targets = fmt.Sprint(clause.Unless.Targets)
	}
	if q.manner != mapped && len(clause.Args) > 0 {
		p.tokens = c.tokens.sequence(clause.Args)
	}
	return p, !contradicts(p.literals)
}

func compareLiterals(a, b literal) int {
	if a.atom == b.atom && a.want != b.want {
		if b.want {
			return -1
		}
		return 1
	}
	return a.atom - b.atom
}

// contradicts tells whether sorted literals want an atom and its negation.
func contradicts(list []literal) bool {
	for i := 1; i < len(list); i++ {
		if list[i].atom == list[i-1].atom {
			return true
		}
	}
	return false
}

// defaults collects the defaults of the operation with the allow clauses that lift them.
func (c *comparison) defaults(side int, q *question, allows []uint16, brought, targets uint64) (out []unlifted) {
	img := c.sides[side].Image
	for bit, d := range img.Defaults {
		if d.Effect == ir.Allow || !q.governs(d.Op) {
			continue
		}
		u := unlifted{predicate: predicate{
			effect: d.Effect, hold: c.sides[side].Program.Defaults[d.Default].Hold, tokens: -1,
			order: len(c.sides[side].Program.Clauses) + d.Default, says: ofDefault,
		}}
		never := false
		for _, i := range allows {
			if x := &img.Clauses[i]; x.Lifts>>bit&1 == 1 {
				if p, ok := c.predicate(side, x, q, brought, targets); ok {
					u.lifters = append(u.lifters, p)
					never = never || len(p.literals) == 0 && p.tokens < 0
				}
			}
		}
		if !never {
			out = append(out, u)
		}
	}
	return out
}

// ofDevice collects what a policy says of a device: the model knows which patterns name
// it. Conditions of protected files are left out: they count as always met.
func (c *comparison) ofDevice(side int, q *question) (v verdicts) {
	p := c.sides[side].Program
	some, numbers := aboutDevice(p, q, path.Base(string(q.place.key)))
	c.work.spend(decideSteps * (1 + len(some.Clauses) + len(p.Protects)))
	trace, err := (&model.Query{Op: q.op, With: q.company(), Object: string(q.place.key)}).Decide(some)
	if err != nil {
		return v
	}
	for i, t := range trace.Clauses {
		if t.Clause.Effect == ir.Allow || slices.ContainsFunc(t.Conditions, func(x model.Condition) bool { return !x.State && !x.Met }) {
			continue
		}
		terms := t.Clause.If
		if len(terms) == 0 {
			terms = []ir.Term{{}}
		}
		for _, term := range terms {
			x := dfa.Clause{
				Clause: numbers[i], Effect: t.Clause.Effect, All: term.All, None: term.None, Target: -1, UnlessGates: t.Clause.Unless.Gates,
				UnlessModified: t.Clause.Unless.Modified, UnlessUnmodified: t.Clause.Unless.NotModified,
			}
			for _, l := range t.Clause.Unless.Lineages {
				x.UnlessLineage |= 1 << l
			}
			if p, ok := c.predicate(side, &x, q, trace.Brings, 0); ok {
				v.clauses = append(v.clauses, p)
			}
		}
	}
	if trace.Protect != nil {
		v.clauses = append(v.clauses, predicate{effect: ir.Block, tokens: -1, order: len(p.Clauses) + len(p.Defaults), says: ofProtect})
	}
	return v
}

// aboutDevice leaves out the clauses that cannot name a device literally: those without
// its name, and without a backslash that may hide it. It returns the others' numbers.
func aboutDevice(p *ir.Program, q *question, name string) (*ir.Program, []int) {
	some := *p
	some.Clauses = nil
	var numbers []int
	for i, x := range p.Clauses {
		if q.governs(x.Op) && (strings.Contains(x.Pattern.Text, name) || strings.Contains(x.Pattern.Text, `\`)) {
			some.Clauses, numbers = append(some.Clauses, x), append(numbers, i)
		}
	}
	return &some, numbers
}
