// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/actplane/actplane/policy/dfa"
	"github.com/actplane/actplane/policy/ir"
)

// ruling is what a clause, a default or a protected pattern says.
type ruling struct {
	effect ir.Effect
	rule   string
	order  int // in the program
	asks   *ask
}

func (r ruling) String() string {
	switch {
	case r.effect == ir.Allow:
		return "ok"
	case r.rule == "":
		return r.effect.String()
	}
	return r.effect.String() + " " + r.rule
}

// judge collects what is said of an operation.
type judge struct {
	w       *world
	p       *process
	best    ruling
	granted []taken
}

// taken is a reply by which an operation goes on, with its key and what it opens.
type taken struct {
	*reply
	key, opens string
}

func (j *judge) hear(r ruling) {
	if r.effect > j.best.effect || r.effect == j.best.effect && r.order < j.best.order {
		j.best = r
	}
}

// decide finds the strictest ruling on all events of an operation.
func (w *world) decide(a *act) (ruling, []taken) {
	const last = 1 << 20
	j := &judge{w: w, p: a.subject, best: ruling{order: last}}
	if a.refused {
		j.hear(ruling{effect: ir.Block, order: last})
	}
	for _, e := range a.events {
		j.clauses(e)
		j.defaults(e)
		j.structure(e)
		if a.runs && j.best.effect >= ir.Ask {
			break // a script that is refused has no interpreter
		}
	}
	if a.moved != nil {
		j.directory(a.moved, a.events)
	}
	return j.best, j.granted
}

func (j *judge) labels(e *event) uint64 {
	in := e.in &^ j.w.img.Integrity
	if e.op != ir.Exec {
		in &^= j.p.program.clears
	}
	return j.p.labels | in
}

func (j *judge) clauses(e *event) {
	var seen []uint16
	for _, r := range e.all() {
		for _, i := range r.Clauses[e.op] {
			if !slices.Contains(seen, i) && j.matches(&j.w.img.Clauses[i], e) {
				seen = append(seen, i)
				j.clause(&j.w.img.Clauses[i], e)
			}
		}
	}
}

func (j *judge) clause(c *dfa.Clause, e *event) {
	r := ruling{effect: c.Effect, rule: j.w.rules[c.Rule].Name, order: c.Clause}
	if c.Effect == ir.Ask {
		r = j.asked(r, e, c.Op, c.Hold > 0)
	}
	j.hear(r)
}

// matches tells whether a candidate does.
func (j *judge) matches(c *dfa.Clause, e *event) bool {
	labels := j.labels(e)
	reached := j.w.reached(e.argv)
	targets := uint64(0)
	for _, r := range e.rows {
		targets |= r.Targets
	}
	switch {
	case e.mapped && (c.Any || c.Effect < ir.Ask),
		e.writes && (c.UnlessModified || c.UnlessUnmodified),
		e.inode != nil && e.known && (c.UnlessModified && e.inode.modified && !e.inode.unclear || c.UnlessUnmodified && !e.inode.modified),
		c.Arg >= 0 && !e.mapped && !bit(reached, c.Arg),
		c.Target >= 0 && targets>>c.Target&1 == 1:
		return false
	}
	return j.holds(c, labels)
}

// holds tells of a clause what has nothing to do with the object.
func (j *judge) holds(c *dfa.Clause, labels uint64) bool {
	return labels&c.All == c.All && labels&c.None == 0 && j.p.lineage&c.UnlessLineage == 0 &&
		!slices.ContainsFunc(c.UnlessGates, j.w.fresh)
}

// defaults hears the strictest default that no allow clause lifts.
func (j *judge) defaults(e *event) {
	if e.device || e.mapped {
		return
	}
	lifted := uint64(0)
	for _, r := range e.all() {
		for _, i := range r.Allows[e.op] {
			if c := &j.w.img.Clauses[i]; j.matches(c, e) {
				lifted |= c.Lifts
			}
		}
	}
	j.unlifted(e, lifted)
}

func (j *judge) unlifted(e *event, lifted uint64) {
	for i, d := range j.w.img.Defaults {
		if !ir.Governs(d.Op, e.op) || lifted>>i&1 == 1 || d.Effect == ir.Allow {
			continue
		}
		r := ruling{effect: d.Effect, order: 1 << 19}
		if d.Effect == ir.Ask {
			r = j.asked(r, e, d.Op, d.Hold > 0)
		}
		j.hear(r)
	}
}

// structure is what no policy is needed for, and what is protected.
func (j *judge) structure(e *event) {
	refuse := func() { j.hear(ruling{effect: ir.Block, order: 1 << 20}) }
	if e.op == ir.Write || e.op == ir.Append || e.op == ir.Unlink {
		if strings.HasPrefix(e.key+"/", "/run/actplane/") || strings.HasPrefix(e.key+"/", "/sys/fs/cgroup/") {
			refuse()
		}
		for _, r := range slices.Concat(e.rows, j.w.aliases(e)) {
			for _, i := range r.Protects {
				if x := j.w.img.Protects[i]; j.labels(e)&x.All == x.All && j.labels(e)&x.None == 0 {
					refuse()
				}
			}
		}
	}
	if strings.HasPrefix(e.key, "unix:/run/actplane/") {
		refuse()
	}
}

// difference is what treats names below two directories differently: indexes of
// the image, by operation.
type difference struct {
	clauses, allows [ir.NumOps]map[uint16]bool
	protects        map[uint16]bool
	sources         bool
	spoils          map[int]bool
	engine          bool
}

// apart walks the automaton from both places at once.
func (w *world) apart(from, to string) *difference {
	d := &difference{protects: map[uint16]bool{}, spoils: map[int]bool{}}
	for op := range d.clauses {
		d.clauses[op], d.allows[op] = map[uint16]bool{}, map[uint16]bool{}
	}
	d.engine = strings.HasPrefix("/run/actplane/", from+"/") || strings.HasPrefix("/sys/fs/cgroup/", from+"/")
	start := w.img.Start[dfa.Path]
	first := [3]uint16{w.run(start, from+"/"), w.run(start, to+"/"), w.img.Start[dfa.Base]}
	seen := map[[3]uint16]bool{first: true}
	for open := [][3]uint16{first}; len(open) > 0; open = open[1:] {
		x, y, name := open[0][0], open[0][1], open[0][2]
		if x == y {
			continue
		}
		d.compare(&w.img.Rows[w.img.RowOf[x]], &w.img.Rows[w.img.RowOf[y]], &w.img.Rows[w.img.RowOf[name]])
		for b := 1; b < 256; b++ {
			next := [3]uint16{w.img.Next[int(x)*256+b], w.img.Next[int(y)*256+b], w.img.Next[int(name)*256+b]}
			if !seen[next] {
				seen[next] = true
				open = append(open, next)
			}
		}
	}
	if m := d.moves(); !maps.Equal(m, listed(w.img.Moved(from, to))) {
		panic(fmt.Sprintf("rename %s %s: the image says %v, its automaton %v", from, to, w.img.Moved(from, to), m))
	}
	return d
}

// moves is the difference as an image lists it.
func (d *difference) moves() map[dfa.Move]bool {
	out := map[dfa.Move]bool{}
	for _, op := range []ir.Op{ir.Write, ir.Unlink} {
		for i := range d.clauses[op] {
			out[dfa.Move{Kind: dfa.MoveClause, Index: int(i), Op: op}] = true
		}
		for i := range d.allows[op] {
			out[dfa.Move{Kind: dfa.MoveAllow, Index: int(i), Op: op}] = true
		}
	}
	for i := range d.protects {
		out[dfa.Move{Kind: dfa.MoveProtect, Index: int(i), Op: ir.Write}] = true
	}
	if d.sources {
		out[dfa.Move{Kind: dfa.MoveSource, Op: ir.Write}] = true
	}
	return out
}

// listed is the same of an image: gates may be listed by operation, and are compared
// by what the trace then says.
func listed(moves []dfa.Move) map[dfa.Move]bool {
	out := map[dfa.Move]bool{}
	for _, m := range moves {
		m.Word, m.Mask = 0, 0
		if m.Kind == dfa.MoveSource {
			m.Index = 0
		}
		if m.Kind != dfa.MoveGate {
			out[m] = true
		}
	}
	return out
}

// compare notes what two paths' rows say otherwise, of one last name with its row.
func (d *difference) compare(x, y, name *dfa.Row) {
	for _, op := range []ir.Op{ir.Write, ir.Unlink} {
		unlike(d.clauses[op], x.Clauses[op], y.Clauses[op])
		unlike(d.allows[op], x.Allows[op], y.Allows[op])
		spoils := func(r *dfa.Row) (out []int) {
			for _, g := range r.Gates[op] {
				if !g.Arm && !slices.ContainsFunc(name.Gates[op], func(n dfa.GateRef) bool { return n.Gate == g.Gate && !n.Arm }) {
					out = append(out, g.Gate)
				}
			}
			return out
		}
		unlike(d.spoils, spoils(x), spoils(y))
	}
	unlike(d.protects, x.Protects, y.Protects)
	d.sources = d.sources || (x.Sources^y.Sources)&^name.Sources != 0
}

func unlike[T comparable](set map[T]bool, x, y []T) {
	for _, v := range append(slices.Clone(x), y...) {
		if slices.Contains(x, v) != slices.Contains(y, v) {
			set[v] = true
		}
	}
}

// directory judges the move of one, which is an event on names below it.
func (j *judge) directory(d *difference, names []*event) {
	for _, op := range []ir.Op{ir.Write, ir.Unlink} {
		e := &event{op: op, key: names[0].key, beside: names[0].beside, inode: names[0].inode, known: true}
		for i := range d.clauses[op] {
			if c := &j.w.img.Clauses[i]; j.holds(c, j.p.labels) {
				j.clause(c, e)
			}
		}
		unlifted := ^uint64(0)
		for i := range d.allows[op] {
			unlifted &^= j.w.img.Clauses[i].Lifts
		}
		j.unlifted(e, unlifted)
	}
	for i := range d.protects {
		if x := j.w.img.Protects[i]; j.p.labels&x.All == x.All && j.p.labels&x.None == 0 {
			j.hear(ruling{effect: ir.Block, order: 1 << 20})
		}
	}
	if d.sources || d.engine {
		j.hear(ruling{effect: ir.Block, order: 1 << 20})
	}
}

// asks are the requests for approval and their answers.
type asks struct {
	now      time.Duration
	requests []*ask
	answers  map[string]*reply
}

type ask struct {
	key  string
	hold time.Duration // of who is stopped
	who  *process
	step []string
	till time.Duration
}

// reply is a grant or a denial. ever, or until a time, or for some uses.
type reply struct {
	denial, ever bool
	till         time.Duration
	uses         int
}

func (r *reply) stands(now time.Duration) bool {
	return r != nil && (r.ever || now < r.till || r.uses > 0)
}

func (r *reply) spend(now time.Duration) {
	if !r.ever && now >= r.till {
		r.uses--
	}
}

// spend uses up what an operation goes on by.
func (w *world) spend(p *process, all []taken) {
	spent := map[*reply]bool{}
	for _, t := range all {
		if !spent[t.reply] {
			t.reply.spend(w.now)
			spent[t.reply] = true
		}
		if t.opens != "" {
			if p.opens == nil {
				p.opens = map[string]string{}
			}
			p.opens[t.opens] = t.key
		}
	}
}

// asked decides by the answer that an ask has had.
func (j *judge) asked(r ruling, e *event, op ir.Op, hold bool) ruling {
	if e.op != ir.Send {
		op = e.op
	}
	opens := fmt.Sprint(r.rule, op, e.beside)
	if e.beside == "" {
		opens += e.key
	}
	if e.inode != nil && e.beside == "" {
		opens += fmt.Sprint(e.inode.number)
	}
	if _, open := j.p.opens[opens]; open && e.opened {
		r.effect = ir.Allow
		return r
	}
	key := fmt.Sprint(opens, strings.Join(e.argv, "\x00"), j.p.dir, j.p.user)
	if e.inode != nil && e.beside == "" {
		key += fmt.Sprint(e.inode.modified, e.inode.unclear)
	}
	if e.op == ir.Exec {
		key += fmt.Sprint(j.p.env)
	}
	if e.op == ir.Exec && !e.mapped {
		key += fmt.Sprint(" ", e.inode.opened)
	}
	switch a := j.w.answers[key]; {
	case !a.stands(j.w.now):
		r.asks = &ask{key: key}
		if hold {
			r.asks.hold = holdTime
		}
	case a.denial:
		r.effect = ir.Block
	default:
		r.effect = ir.Allow
		t := taken{a, key, opens}
		if e.op == ir.Exec {
			t.opens = ""
		}
		j.granted = append(j.granted, t)
	}
	return r
}

// holdTime is what all `ask hold` in these tests say: the image has no time.
const holdTime = 5 * time.Minute

func (w *world) request(p *process, a *ask, step []string) {
	if a.hold > 0 {
		a.who, a.step, a.till = p, step, w.now+a.hold
		p.asks = a
	} else if slices.ContainsFunc(w.requests, func(x *ask) bool { return x.key == a.key && x.who == nil }) {
		return
	}
	w.requests = append(w.requests, a)
}

func (w *world) drop(a *ask) {
	if a == nil {
		return
	}
	if a.who != nil {
		a.who.asks = nil
	}
	w.requests = slices.DeleteFunc(w.requests, func(x *ask) bool { return x == a })
}

func (w *world) answer(words []string) {
	if len(w.requests) == 0 {
		return
	}
	first := w.requests[0]
	w.drop(first)
	a := w.answers[first.key]
	if denial := words[0] == "deny"; a == nil || denial || a.denial {
		a = &reply{denial: denial}
		w.answers[first.key] = a
	}
	for _, p := range w.processes {
		maps.DeleteFunc(p.opens, func(_, key string) bool { return a.denial && key == first.key })
	}
	switch {
	case len(words) > 1 && words[1] == "once":
		a.uses++
	case len(words) > 1 && words[1] == "scope", a.denial && (len(words) == 1 || words[1] == "because"):
		a.ever = true
	default:
		d := 10 * time.Minute
		if len(words) > 1 {
			d, _ = time.ParseDuration(words[1])
		}
		a.till = max(a.till, w.now+d)
	}
	again := []*ask{first}
	for len(again) > 0 {
		if x := again[0]; x.who != nil && !a.denial && w.sense(x.step[1], x.step[2:]) {
			w.do(x.step)
		}
		again = nil
		if i := slices.IndexFunc(w.requests, func(x *ask) bool { return x.key == first.key }); i >= 0 && a.stands(w.now) {
			again = append(again, w.requests[i])
			w.drop(again[0])
		}
	}
}

func (w *world) wait(d time.Duration) {
	w.now += d
	for _, a := range slices.Clone(w.requests) {
		if a.who != nil && w.now >= a.till {
			w.drop(a)
		}
	}
}
