// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/model"
)

// ask looks for differences at a place.
func (c *comparison) ask(q *question) {
	if q.op == ir.Unlink && c.asWritten(q) {
		return
	}
	for _, x := range append([]*question{q}, c.whileCleared(q)...) {
		c.askOnce(x)
		c.askWaits(x)
	}
}

// asWritten tells whether both policies decide an unlink as the write that it is: there
// is nothing to add to what differs of that.
func (c *comparison) asWritten(q *question) bool {
	write := *q
	write.op = ir.Write
	return c.problem(q).key() == c.problem(&write).key()
}

func (c *comparison) askOnce(q *question) {
	p := c.problem(q)
	if p.same() {
		return
	}
	key := p.key()
	if !q.plain() {
		key += "roundabout"
	}
	c.note(q, key, func() []answer { return c.differ(p, !q.plain()) })
}

// askWaits looks for what is waited for otherwise when a file is opened, which is decided
// together with what is done to it: how strictly, each of both decides alone.
func (c *comparison) askWaits(q *question) {
	if q = q.withOpening(); q == nil {
		return
	}
	if p := c.problem(q); !slices.Equal(p[0].waits(), p[1].waits()) {
		c.note(q, "waits\n"+p.key(), func() []answer { return c.holds(p) })
	}
}

// withOpening is the question about what is done to a file with the opening that comes
// before it, nil for what needs none.
func (q *question) withOpening() *question {
	if q.op != ir.Read && q.op != ir.Write && q.op != ir.Append {
		return nil
	}
	opened := *q
	opened.opened = true
	return &opened
}

// note notes the findings of a question, those that are known of the same problem or else
// those that are found for it.
func (c *comparison) note(q *question, key string, find func() []answer) {
	known, ok := c.solved[key]
	if !ok {
		for _, a := range find() {
			if f := c.confirm(q, a); f != nil {
				known = append(known, solution{f, a})
			}
		}
		c.solved[key] = known
	}
	for _, s := range known {
		if !slices.Contains(s.finding.Ops, q.op) {
			s.finding.Ops = append(s.finding.Ops, q.op)
		}
		if better(q, s.answer, s.finding) {
			s.finding.question, s.finding.answer = *q, s.answer
		}
	}
}

// solution is an answer with the finding that it is an example of.
type solution struct {
	finding *finding
	answer  answer
}

// better tells whether an example is better than another: it happens plainly, needs less
// of a state and fewer arguments, and is about a program in a folder for programs.
func better(q *question, a answer, than *finding) bool {
	rank := func(q *question, a answer) []int {
		out := []int{int(q.manner), 0, 0, len(sortedAtoms(a.state)), len(a.argv), 0}
		if q.name != nil {
			out[1] = 1
		}
		if q.cleared != (clearing{}) {
			out[2] = 1
		}
		if q.op == ir.Exec && !q.usual() {
			out[5] = 1
		}
		return out
	}
	return slices.Compare(rank(q, a), rank(&than.question, than.answer)) < 0
}

// usual tells whether a program is in a folder for programs.
func (q *question) usual() bool { return strings.HasPrefix(q.object(), "/usr/bin/") }

// plain tells whether an example happens plainly: a program is run by its own name.
func (q *question) plain() bool {
	return q.manner == plainly && q.name == nil && q.cleared == clearing{}
}

// statementOf is a clause or default of one policy.
type statementOf struct{ side, order int }

// differ finds answers to a problem: one for each clause and default of either policy
// that decides something which the other policy decides less strictly; with fresh, only
// for those for which the other policy is not known to allow some of it anyway.
func (c *comparison) differ(p *problem, fresh bool) (out []answer) {
	for side := range p {
		strict, other := &p[side], &p[1-side]
		for _, x := range strict.clauses {
			if c.work.spent() {
				return out
			}
			if !fresh || !c.seen[statementOf{side, x.order}] {
				out = append(out, c.stricter(unlifted{predicate: x}, strict, other)...)
			}
		}
		for _, d := range strict.defaults {
			out = append(out, c.stricter(d, strict, other)...)
		}
	}
	return append(out, c.holds(p)...)
}

// stricter finds an answer in which x matches and the other policy decides less. The
// best is one in which x decides.
func (c *comparison) stricter(x unlifted, strict, other *verdicts) []answer {
	if c.work.spend(8 * (len(other.clauses) + len(other.defaults) + len(strict.clauses))); other.has(&x) {
		return nil
	}
	yes := []predicate{x.predicate}
	no, defaults := other.from(x.effect)
	no = append(no, x.lifters...)
	above, own := strict.from(x.effect + 1)
	if a, ok := c.lift(yes, slices.Concat(no, above), slices.Concat(defaults, own)); ok {
		return []answer{a}
	}
	if a, ok := c.lift(yes, no, defaults); ok {
		return []answer{a}
	}
	return nil
}

// has tells whether the policy has a clause that decides as much whenever x does.
func (v *verdicts) has(x *unlifted) bool {
	implied := func(y *predicate) bool {
		return y.effect >= x.effect && (y.tokens < 0 || y.tokens == x.tokens) &&
			!slices.ContainsFunc(y.literals, func(l literal) bool { return !slices.Contains(x.literals, l) })
	}
	return slices.ContainsFunc(v.clauses, func(y predicate) bool { return implied(&y) }) ||
		slices.ContainsFunc(v.defaults, func(d unlifted) bool { return len(d.lifters) == 0 && implied(&d.predicate) })
}

// from lists what decides an effect or a stricter one.
func (v *verdicts) from(effect ir.Effect) (clauses []predicate, defaults []unlifted) {
	for _, x := range v.clauses {
		if x.effect >= effect {
			clauses = append(clauses, x)
		}
	}
	for _, d := range v.defaults {
		if d.effect >= effect {
			defaults = append(defaults, d)
		}
	}
	return clauses, defaults
}

// lift solves with defaults that must be lifted: each by one of its lifters.
func (c *comparison) lift(yes, no []predicate, defaults []unlifted) (answer, bool) {
	if c.work.spent() {
		return answer{}, false
	}
	if len(defaults) == 0 {
		c.work.spend(4 * len(c.never))
		a, found, complete := c.tokens.solve(yes, append(c.about(yes, no), no...))
		if !complete {
			c.missed["Not all combinations of labels, gates and arguments were looked at: there are too many."] = true
		}
		return a, found
	}
	for _, l := range defaults[0].lifters {
		if a, ok := c.lift(append(slices.Clip(yes), l), no, defaults[1:]); ok {
			return a, true
		}
	}
	return answer{}, false
}

// holds finds an answer in which both policies ask, one of them for another time.
func (c *comparison) holds(p *problem) (out []answer) {
	asks := func(v *verdicts) (list []unlifted) {
		for _, x := range v.clauses {
			if x.effect == ir.Ask {
				list = append(list, unlifted{predicate: x})
			}
		}
		for _, d := range v.defaults {
			if d.effect == ir.Ask {
				list = append(list, d)
			}
		}
		return list
	}
	before, after := asks(&p[0]), asks(&p[1])
	for _, x := range before {
		for _, y := range after {
			if x.hold == y.hold {
				continue
			}
			if !c.work.spend(len(p[0].clauses) + len(p[1].clauses)) {
				return out
			}
			no := slices.Concat(x.lifters, y.lifters)
			var defaults []unlifted
			for side, ask := range []unlifted{x, y} {
				above, own := p[side].from(ir.Block)
				no, defaults = append(no, above...), append(defaults, own...)
				for _, earlier := range [][]unlifted{before, after}[side] {
					if earlier.order < ask.order && earlier.hold != ask.hold {
						no = append(no, earlier.predicate)
					}
				}
			}
			if a, ok := c.lift([]predicate{x.predicate, y.predicate}, no, defaults); ok {
				out = append(out, a)
			}
		}
	}
	return out
}

// confirm asks the model, and notes the finding under what decides; nil when the model
// does not know the difference, or there are too many.
func (c *comparison) confirm(q *question, a answer) *finding {
	if len(c.findings) >= maxFindings {
		c.missed[fmt.Sprintf("There are more differences than the %d that are shown.", maxFindings)] = true
		return nil
	}
	var decided [2]model.Decision
	for side := range c.sides {
		c.work.spend(c.deciding(side))
		x := c.query(side, q, a)
		d, err := x.Decision(c.sides[side].Program)
		if err != nil {
			c.missed[fmt.Sprintf("A difference was found that the model cannot decide: %v.", err)] = true
			return nil
		}
		decided[side] = d
	}
	before, after := decided[0], decided[1]
	told := before.Effect == after.Effect && holdOf(before) == holdOf(after)
	key := fmt.Sprintf("%s\n%s", decider(before), decider(after))
	if told {
		key = toldKey(saysOf(before), saysOf(after))
	}
	if told != a.told || told && saysOf(before) == saysOf(after) {
		c.missed[fmt.Sprintf("A difference was found that the model does not confirm: %s %s.", q.op, q.object())] = true
		return nil
	}
	for side, d := range decided {
		if other := decided[1-side]; q.plain() && d.Effect >= ir.Ask && !other.Denied() {
			c.seen[statementOf{side, c.orderOf(side, d)}] = true
		}
	}
	f := c.byDecider[key]
	if f == nil {
		f = &finding{question: *q, answer: a}
		f.Old, f.New, f.Direction = before, after, direction(before, after)
		c.byDecider[key] = f
		c.findings = append(c.findings, f)
	}
	return f
}

// deciding is the work of one decision of the model.
func (c *comparison) deciding(side int) int {
	p := c.sides[side].Program
	return decideSteps * (1 + len(p.Clauses) + len(p.Defaults) + len(p.Protects) + len(p.Sources))
}

// orderOf is the order of the statement that decides, -1 for none.
func (c *comparison) orderOf(side int, d model.Decision) int {
	p := c.sides[side].Program
	switch {
	case d.Clause != nil:
		return slices.IndexFunc(p.Clauses, func(x ir.Clause) bool { return x.Pos == d.Clause.Pos && x.Text == d.Clause.Text })
	case d.Default != nil:
		return len(p.Clauses) + slices.IndexFunc(p.Defaults, func(x ir.Default) bool { return x.Pos == d.Default.Pos && x.Text == d.Default.Text })
	}
	return -1
}

func direction(before, after model.Decision) Direction {
	switch {
	case before.Denied() && !after.Denied():
		return Allows
	case !before.Denied() && after.Denied():
		return Denies
	case before.Effect == after.Effect && holdOf(before) == holdOf(after):
		return Told
	}
	return Otherwise
}

func holdOf(d model.Decision) int64 {
	switch {
	case d.Effect != ir.Ask:
	case d.Clause != nil:
		return int64(d.Clause.Hold)
	case d.Default != nil:
		return int64(d.Default.Hold)
	}
	return 0
}

// decider is equal for decisions that the same statement makes.
func decider(d model.Decision) string {
	switch {
	case d.Clause != nil:
		return d.Clause.Pos + d.Clause.Text
	case d.Default != nil:
		return d.Default.Pos + d.Default.Text
	case d.Protect != nil:
		return d.Protect.Pos + d.Protect.Text
	}
	return d.Effect.String()
}

// query is a question with an answer, as one policy numbers things.
func (c *comparison) query(side int, q *question, a answer) *model.Query {
	x := &model.Query{Op: q.op, With: q.company(), Object: q.object(), Mapped: q.manner == mapped, Unresolved: q.manner == unresolved, Cleared: q.cleared[side]}
	x.Labels, x.Lineage, x.Gates = c.atoms.bits(a.state, side)
	x.Modified = a.state[c.atoms.modified]
	if q.op == ir.Exec {
		if q.name != nil {
			x.Invoked = string(q.name.key)
		}
		x.Argv = append([]string{q.called()}, a.argv...)
	}
	return x
}

// called is the name by which a program is run.
func (q *question) called() string {
	if q.name != nil {
		return string(q.name.key)
	}
	return q.object()
}

// object is the example's, as steps name it.
func (q *question) object() string {
	if q.manner == unresolved {
		return "/unknown"
	}
	return q.place.object(q.op == ir.Exec)
}
