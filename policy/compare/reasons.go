// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"slices"

	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/model"
)

// What no rule decides has words of ActPlane's own.
const (
	ofDefault = "a default"
	ofProtect = "protect"
)

// saysRule is equal for rules of which an agent is told the same.
func saysRule(r *ir.Rule) string { return "rule " + r.Name + "\x00" + r.Because }

// saysOf is equal for decisions of which an agent is told the same.
func saysOf(d model.Decision) string {
	switch {
	case d.Clause != nil:
		return saysRule(&ir.Rule{Name: d.Rule, Because: d.Because})
	case d.Default != nil:
		return ofDefault
	case d.Protect != nil:
		return ofProtect
	}
	return ""
}

func toldKey(before, after string) string { return "told\n" + before + "\n" + after }

// reasons looks for what both policies decide alike, and tell the agent otherwise. What
// happens under another name of a program, or by mapping its code, is left out, else every
// other order of rules would differ: a program can be run by any name. What happens only
// while a program runs that clears labels comes last.
func (c *comparison) reasons() {
	for op := range ir.NumOps {
		for _, whileCleared := range []bool{false, true} {
			for q := range c.questions(op) {
				c.reasonsFor(q, whileCleared)
			}
		}
	}
}

// reasonsFor looks at an event, alone and with the opening that can come before it.
func (c *comparison) reasonsFor(q *question, whileCleared bool) {
	if q.manner == mapped {
		return
	}
	list := []*question{q}
	if whileCleared {
		list = c.whileCleared(q)
	}
	for _, q := range list {
		if opened := q.withOpening(); opened != nil {
			c.reason(opened)
		}
		c.reason(q)
	}
}

func (c *comparison) reason(q *question) {
	p := c.problem(q)
	before, after := p[0].spoken(), p[1].spoken()
	if slices.EqualFunc(before, after, func(x, y statement) bool { return x.matches == y.matches && x.says == y.says }) {
		return
	}
	c.note(q, "told\n"+p.key(), func() []answer { return c.wording(q, p, before, after) })
}

// company are the events that come with the one that is asked about.
func (q *question) company() []ir.Op {
	if q.opened {
		return []ir.Op{ir.Open}
	}
	return nil
}

// statement is a clause or default that decides, with what it says.
type statement struct {
	unlifted
	matches string // equal for those that match and decide alike
	// Of the other policy's: the number of one that matches and decides alike, -1 for
	// none, and whether one says the same as well.
	alike int
	twin  bool
}

// spoken lists statements in the order in which they decide.
func (v *verdicts) spoken() (out []statement) {
	for _, x := range v.clauses {
		out = append(out, statement{unlifted: unlifted{predicate: x}, matches: x.key()})
	}
	for _, d := range v.defaults {
		key := d.key() + ofDefault
		for i := range d.lifters {
			key += "\n" + d.lifters[i].key()
		}
		out = append(out, statement{unlifted: d, matches: key})
	}
	slices.SortStableFunc(out, func(x, y statement) int {
		if x.effect != y.effect {
			return int(y.effect) - int(x.effect)
		}
		return x.order - y.order
	})
	return out
}

// pair notes for statements of one policy which ones of the other are alike.
func pair(list, others []statement) {
	number, said := map[string]int{}, map[string]bool{}
	for i := len(others) - 1; i >= 0; i-- {
		number[others[i].matches] = i
		said[others[i].matches+"\n"+others[i].says] = true
	}
	for i := range list {
		x := &list[i]
		x.twin = said[x.matches+"\n"+x.says]
		if j, ok := number[x.matches]; ok {
			x.alike = j
		} else {
			x.alike = -1
		}
	}
}

// wording finds answers in which both policies decide the same by statements that say
// something else, one for each pair of what they say.
func (c *comparison) wording(q *question, p *problem, before, after []statement) (out []answer) {
	pair(before, after)
	pair(after, before)
	found := map[[2]string]bool{}
	for i := range before {
		for j := range after {
			x, y := &before[i], &after[j]
			if !c.work.spend(4) {
				return out
			}
			key := [2]string{x.says, y.says}
			if x.effect != y.effect || x.hold != y.hold || x.says == y.says || found[key] || c.isRetold(q, x, y) {
				continue
			}
			// Where one decides, so does what is alike, and not what comes behind that.
			if x.alike >= 0 && x.alike < j || y.alike >= 0 && y.alike < i {
				continue
			}
			if a, ok := c.decideTogether(p, x, y); ok {
				a.told, found[key] = true, true
				c.retell(x, y)
				out = append(out, a)
			}
		}
	}
	return out
}

// isRetold tells whether an example shows already that one thing is told in place of the
// other, and one that is as good as this would be. For what both policies have, and which
// another rule comes before, one example of that rule is enough.
func (c *comparison) isRetold(q *question, x, y *statement) bool {
	f := c.byDecider[toldKey(x.says, y.says)]
	if f == nil {
		return x.twin && c.before[y.says] || y.twin && c.before[x.says]
	}
	return slices.Contains(f.Ops, q.op) && (q.op != ir.Exec || f.question.usual() || !q.usual())
}

func (c *comparison) retell(x, y *statement) {
	if x.twin {
		c.before[y.says] = true
	}
	if y.twin {
		c.before[x.says] = true
	}
}

// decideTogether finds an answer in which one statement of each policy decides.
func (c *comparison) decideTogether(p *problem, x, y *statement) (answer, bool) {
	no := slices.Concat(x.lifters, y.lifters)
	var defaults []unlifted
	for side, s := range []*statement{x, y} {
		if !c.work.spend(8 * (len(p[side].clauses) + len(p[side].defaults))) {
			return answer{}, false
		}
		before := func(o *predicate) bool { return o.effect > s.effect || o.effect == s.effect && o.order < s.order }
		for _, o := range p[side].clauses {
			if before(&o) {
				no = append(no, o)
			}
		}
		for _, d := range p[side].defaults {
			if before(&d.predicate) {
				defaults = append(defaults, d)
			}
		}
	}
	return c.lift([]predicate{x.predicate, y.predicate}, no, defaults)
}

// retold tells whether an example shows that a rule's reason is another one.
func (c *comparison) retold(rule string) bool {
	return slices.ContainsFunc(c.findings, func(f *finding) bool { return f.Direction == Told && f.Old.Rule == rule && f.New.Rule == rule })
}
