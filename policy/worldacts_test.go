// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"

	"github.com/actplane/actplane/policy/dfa"
	"github.com/actplane/actplane/policy/ir"
)

// act is one operation of a process.
type act struct {
	subject *process
	events  []*event
	moved   *difference // of a directory: what its names below come under
	refused bool
	fails   bool   // after it was decided
	runs    bool   // an exec
	flow    func() // of labels, when it is allowed
	effect  func() // on the rest, also in setup
}

// event is one operation on one key.
type event struct {
	op     ir.Op
	key    string
	rows   []*dfa.Row
	named  *dfa.Row // of the name by which a program is invoked
	inode  *inode   // nil for endpoints
	known  bool     // the key could be read
	beside string   // both names of a rename or link
	forged bool     // the interpreter of this script was modified
	argv   []string
	in     uint64 // labels that it would bring
	mapped bool   // a program's code, without an exec
	by     *event // of a script, its interpreter
	device bool
	opened bool // a descriptor of it is used
	writes bool // for which it was opened to write
}

// told tells a name with its file.
func (e *event) told() string {
	return fmt.Sprint(e.key, e.inode.number, e.inode.modified, e.inode.unclear)
}

// perform decides an operation and does it.
func (w *world) perform(a *act, step []string) string {
	if a.subject.setup && !a.runs {
		if a.effect != nil {
			a.effect()
		}
		return "ok"
	}
	best, granted := w.decide(a)
	switch best.effect {
	case ir.Kill:
		w.ends(a.subject, false, "")
		a.subject.tracer = nil
		for _, q := range w.processes {
			if q.tracer == a.subject {
				q.tracer = nil
			}
		}
	case ir.Ask:
		w.request(a.subject, best.asks, step)
	}
	if best.effect >= ir.Ask || a.fails {
		return best.String()
	}
	w.spend(a.subject, granted)
	for _, e := range a.events {
		if e.inode != nil && e.known && !e.mapped {
			e.inode.labels |= sources(e.rows)
		}
	}
	for _, do := range []func(){a.flow, a.effect} {
		if do != nil {
			do()
		}
	}
	for _, e := range a.events {
		w.gatesOf(a.subject, e)
	}
	if a.moved != nil {
		for g := range a.moved.spoils {
			w.spoil(g)
		}
	}
	w.spread()
	return best.String()
}

// program is the event of running a program.
func (w *world) program(argv []string) (*event, *dentry) {
	d, name, known := w.walk(argv[0], true)
	e := w.on(ir.Exec, d, name, known)
	e.argv, e.named = argv, w.rowFrom(w.img.Start[dfa.Name], path.Base(argv[0]))
	e.in = e.inode.labels | sources(e.rows) | e.named.ExecSources
	for _, r := range e.rows {
		e.in |= r.ExecSources
	}
	return e, d
}

func (w *world) exec(p *process, op string, args []string) *act {
	a := &act{subject: p, runs: true, fails: op == "execfails"}
	programs := [][]string{args}
	if op == "execscript" {
		script := slices.Concat(args[:1], args[2:])
		programs = [][]string{script, slices.Concat(args[1:2], script)}
	}
	var files []*dentry
	var last *event
	for _, argv := range programs {
		e, d := w.program(argv)
		if last != nil {
			last.by, e.forged = e, w.linked
		}
		last = e
		files = append(files, d)
		if !strings.HasPrefix(e.key, "/run/actplane/bin/") {
			a.events = append(a.events, e)
		}
	}
	if len(a.events) > 1 {
		a.events[0].forged = a.events[1].inode.modified
	}
	a.effect = func() {
		for _, d := range files {
			w.use(d).file = true
		}
		p.setup, p.program, p.waiting = false, program{}, nil
		w.unshare(p, func(s share) bool { return s.traced })
		for _, e := range a.events {
			w.gain(p, e.in)
		}
	}
	return a
}

// all are the rows of all keys that an event has. What must not come from the name by
// which a program is invoked is not in its row.
func (e *event) all() []*dfa.Row {
	if e.named == nil {
		return e.rows
	}
	return append(slices.Clone(e.rows), e.named)
}

// runs is what a program opens for who runs it.
func (w *world) runs(p *process, e *event) {
	for _, r := range e.all() {
		p.program.lineage |= r.Lineage &^ p.lineage
		p.lineage |= r.Lineage
		p.program.clears |= r.Declassify
		p.program.cleared |= p.labels & r.Declassify
		p.labels &^= r.Declassify
	}
	for _, r := range e.all() {
		p.program.endorsed |= r.Endorse &^ p.labels
		p.labels |= r.Endorse
	}
}

func (w *world) mapCode(p *process, name string) *act {
	e, _ := w.program([]string{name})
	e.mapped, e.argv, e.in, e.named = true, nil, 0, nil
	return &act{subject: p, events: []*event{e}, effect: func() {
		if e.inode.modified {
			w.foreign(p)
		}
		p.shares = append(p.shares, share{inode: e.inode, reads: true})
	}}
}

func (w *world) debug(p *process, op string, q *process) *act {
	return &act{subject: p, refused: q.setup, flow: func() {
		from, to := p, q
		if op == "memread" {
			from, to = q, p
		} else {
			w.foreign(q)
		}
		if op == "ptrace" {
			q.tracer = p
			both := share{inode: &inode{}, traced: true}
			p.shares, q.shares = append(p.shares, both), append(q.shares, both)
			return
		}
		w.gain(to, from.labels)
	}}
}

func (w *world) network(p *process, op, object string) *act {
	a := &act{subject: p}
	if object == "unix:/run/actplane/feedback.sock" {
		return a
	}
	e := &event{op: map[string]ir.Op{"connect": ir.Connect, "send": ir.Send, "recv": ir.Recv, "bind": ir.Bind}[op], key: object, known: true}
	e.rows = []*dfa.Row{w.endpointRow(object)}
	a.events = []*event{e}
	if op == "bind" {
		a.effect = func() {
			if w.ports[object] == nil {
				w.ports[object] = &port{}
			}
			w.ports[object].owner = p
		}
		return a
	}
	e.in = e.rows[0].Sources
	c := w.ports[object]
	if c != nil {
		e.in |= c.labels
		if op != "recv" && c.owner != p && !c.owner.gone {
			e.in |= c.owner.labels &^ w.img.Integrity
		}
	}
	a.flow = func() {
		w.gain(p, e.in)
		if c != nil && op != "recv" {
			c.labels |= p.labels &^ w.img.Integrity
		}
	}
	return a
}

func (w *world) endpointRow(object string) *dfa.Row {
	if socket, ok := strings.CutPrefix(object, "unix:"); ok {
		return w.rowFrom(w.img.Start[dfa.Unix], socket)
	}
	object, _, _ = strings.Cut(object, "/")
	if a, err := netip.ParseAddrPort(object); err == nil {
		b := a.Addr().As16()
		return w.rowFrom(w.img.Start[dfa.Address], string(append(b[:], byte(a.Port()>>8), byte(a.Port()))))
	}
	return w.rowFrom(w.img.Host, strings.ToLower(object))
}

// tick is another time on the clock of gates.
func (w *world) tick() int {
	w.clock++
	return w.clock
}

func (w *world) spoil(gate int) { w.gates[gate].stale = w.tick() }

// gatesOf brings an event to the gates: first it spoils, then it arms.
func (w *world) gatesOf(p *process, e *event) {
	if e.mapped {
		return
	}
	honest := e.op != ir.Exec || p.honest(e)
	if e.op == ir.Exec && honest {
		w.runs(p, e)
	}
	reached := w.reached(e.argv)
	for _, arm := range []bool{false, true} {
		for _, r := range e.all() {
			for _, g := range r.Gates[e.op] {
				switch {
				case g.Arm != arm, arm && !honest, g.Arg >= 0 && !bit(reached, g.Arg):
				case !arm:
					w.spoil(g.Gate)
				case g.Exit >= 0:
					p.waiting = append(p.waiting, waiting{g.Gate, g.Exit, w.tick()})
				default:
					at := w.tick()
					w.gates[g.Gate].armed[at] = true
					if e.op == ir.Exec {
						p.program.armed = append(p.program.armed, [2]int{g.Gate, at})
					}
				}
			}
		}
	}
}

// fresh tells whether a gate excuses: a shared writable mapping of a file that
// spoils it keeps it stale.
func (w *world) fresh(gate int) bool {
	for _, p := range w.processes {
		for _, s := range p.shares {
			for _, r := range s.rows {
				if slices.ContainsFunc(r.Gates[ir.Write], func(g dfa.GateRef) bool { return g.Gate == gate && !g.Arm }) {
					return false
				}
			}
		}
	}
	return w.gates[gate].fresh()
}

// reached is the recurrence over argv that the design prescribes.
func (w *world) reached(argv []string) []uint64 {
	set := make([]uint64, w.img.ArgWords)
	for _, a := range argv[min(1, len(argv)):] {
		mask := w.rowFrom(w.img.Start[dfa.Token], a).Tokens
		carry := uint64(0)
		for i := range set {
			out := set[i] >> 63
			if mask != nil {
				set[i] |= (set[i]<<1 | carry | w.img.ArgStart[i]) & mask[i]
			}
			carry = out
		}
	}
	return set
}

func bit(set []uint64, i int) bool { return set[i/64]>>(i%64)&1 == 1 }

// aliases are the rows of the names that the event's file has.
func (w *world) aliases(e *event) (out []*dfa.Row) {
	if e.inode == nil || !e.known {
		return nil
	}
	var visit func(d *dentry)
	visit = func(d *dentry) {
		if d.inode == e.inode && d.used {
			out = append(out, w.pathRows(d.path(), true)...)
		}
		for _, c := range d.children {
			if c != nil {
				visit(c)
			}
		}
	}
	visit(w.root)
	return out
}
