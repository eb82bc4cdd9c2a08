// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/actplane/actplane/policy/dfa"
	"github.com/actplane/actplane/policy/ir"
)

// world decides traces with nothing but an image, as the kernel side will. It
// knows files by their path; what the language says of inodes is not its
// business.
type world struct {
	img       *dfa.Image
	rules     []ir.Rule
	processes map[string]*process
	files     map[string]uint64 // labels stored on files
	modified  map[string]bool
	epoch     []int // of each gate: how often it was invalidated
	armed     []int // the epoch at which it was armed, -1 for never
}

type process struct {
	labels, lineage uint64
	pending         []pendingGate
}

// pendingGate is armed when the program ends with a status.
type pendingGate struct{ gate, exit, epoch int }

// event is one operation on one key.
type event struct {
	op   ir.Op
	rows []*dfa.Row // of the key; of an exec also of the invoked name
	argv []string
	in   uint64 // labels that it would bring
	// forged: of an exec, the program was written inside, so it arms nothing.
	forged bool
}

func newWorld(p *Policy) *world {
	w := &world{
		img: p.Image, rules: p.Program.Rules,
		processes: map[string]*process{}, files: map[string]uint64{}, modified: map[string]bool{},
		epoch: make([]int, len(p.Program.Gates)), armed: make([]int, len(p.Program.Gates)),
	}
	for i := range w.armed {
		w.armed[i] = -1
	}
	return w
}

func (w *world) row(start dfa.Start, key string) *dfa.Row {
	s := w.img.Start[start]
	for i := range len(key) {
		s = w.img.Next[int(s)*256+int(key[i])]
	}
	return &w.img.Rows[w.img.RowOf[s]]
}

func (w *world) process(name string) *process {
	if w.processes[name] == nil {
		w.processes[name] = &process{}
	}
	return w.processes[name]
}

func (w *world) do(t *testing.T, step []string) string {
	t.Helper()
	p, op, args := w.process(step[0]), step[1], step[2:]
	switch op {
	case "fork":
		w.processes[args[0]] = &process{labels: p.labels, lineage: p.lineage}
		return "ok"
	case "exit":
		status, _ := strconv.Atoi(args[0])
		for _, g := range p.pending {
			if g.exit == status {
				w.armed[g.gate] = g.epoch
			}
		}
		return "ok"
	case "pipe", "pipewrite":
		return "ok"
	case "exec":
		return w.exec(p, args[0], args)
	case "connect", "send":
		return w.network(t, p, op, args[0])
	}
	return w.file(t, p, op, args)
}

func (w *world) file(t *testing.T, p *process, op string, args []string) string {
	name := args[0]
	switch name {
	case "/dev/null", "/dev/zero", "/dev/tty":
		return "ok"
	}
	switch op {
	case "open":
		return w.decide(p, w.on(ir.Open, name))
	case "read":
		read := w.on(ir.Read, name)
		read.in = w.labels(name)
		verdict := w.decide(p, w.on(ir.Open, name), read)
		if !denied(verdict) {
			p.labels |= read.in
		}
		return verdict
	case "write", "truncate", "chmod", "mkdir":
		return w.changed(p, w.decide(p, w.on(ir.Open, name), w.on(ir.Write, name)), name)
	case "append":
		return w.changed(p, w.decide(p, w.on(ir.Open, name), w.on(ir.Append, name)), name)
	case "unlink", "rmdir":
		return w.decide(p, w.on(ir.Write, name), w.on(ir.Unlink, name))
	case "rename":
		if w.row(dfa.Path, name).Sources|w.row(dfa.Path, args[1]).Sources != 0 {
			return "block" // a directory with a file source below it stays
		}
		verdict := w.decide(p, w.on(ir.Write, name), w.on(ir.Unlink, name), w.on(ir.Write, args[1]))
		if !denied(verdict) {
			w.files[args[1]] |= w.files[name]
		}
		return verdict
	case "link":
		return w.decide(p, w.on(ir.Write, name), w.on(ir.Write, args[1]))
	}
	t.Fatalf("operation %q is not acted out", op)
	return ""
}

func (w *world) on(op ir.Op, name string) event {
	return event{op: op, rows: []*dfa.Row{w.row(dfa.Path, name)}}
}

func (w *world) labels(name string) uint64 { return w.files[name] | w.row(dfa.Path, name).Sources }

func (w *world) changed(p *process, verdict, name string) string {
	if !denied(verdict) {
		w.files[name] |= p.labels
		w.modified[name] = true
	}
	return verdict
}

func (w *world) exec(p *process, name string, argv []string) string {
	resolved, invoked := w.row(dfa.Path, name), w.row(dfa.Name, path.Base(name))
	e := event{op: ir.Exec, rows: []*dfa.Row{resolved, invoked}, argv: argv, in: w.labels(name) | resolved.ExecSources | invoked.ExecSources}
	e.forged = w.modified[name]
	p.pending = nil
	verdict := w.decide(p, e)
	if denied(verdict) {
		return verdict
	}
	p.labels |= e.in
	if !e.forged {
		p.lineage |= resolved.Lineage
	}
	return verdict
}

func (w *world) network(t *testing.T, p *process, op, object string) string {
	t.Helper()
	e := event{op: ir.Connect}
	if op == "send" {
		e.op = ir.Send
	}
	if socket, ok := strings.CutPrefix(object, "unix:"); ok {
		e.rows = []*dfa.Row{w.row(dfa.Unix, socket)}
	} else {
		a, err := netip.ParseAddrPort(strings.TrimSuffix(object, "/udp"))
		if err != nil {
			t.Fatal(err)
		}
		b := a.Addr().As16()
		e.rows = []*dfa.Row{w.row(dfa.Address, string(append(b[:], byte(a.Port()>>8), byte(a.Port()))))}
	}
	e.in = e.rows[0].Sources
	verdict := w.decide(p, e)
	if !denied(verdict) {
		p.labels |= e.in
	}
	return verdict
}

// decide finds the strictest clause of all events of an operation; when none
// denies it, the events reach the gates.
func (w *world) decide(p *process, events ...event) string {
	best := (*dfa.Clause)(nil)
	for _, e := range events {
		reached := w.reached(e.argv)
		for _, r := range e.rows {
			for _, i := range r.Clauses[e.op] {
				c := &w.img.Clauses[i]
				if w.matches(c, p, e, reached) && (best == nil || c.Effect > best.Effect) {
					best = c
				}
			}
		}
	}
	if best == nil || best.Effect < ir.Block {
		for _, e := range events {
			w.gates(p, e)
		}
	}
	switch {
	case best == nil:
		return "ok"
	case best.Effect == ir.Notify:
		return "notify " + w.rules[best.Rule].Name
	case best.Effect == ir.Kill:
		return "kill " + w.rules[best.Rule].Name
	}
	return "block " + w.rules[best.Rule].Name
}

func (w *world) matches(c *dfa.Clause, p *process, e event, reached []uint64) bool {
	labels := p.labels | e.in
	switch {
	case labels&c.All != c.All || labels&c.None != 0,
		c.Arg >= 0 && reached[c.Arg/64]>>(c.Arg%64)&1 == 0,
		p.lineage&c.UnlessLineage != 0,
		c.Target >= 0 && e.rows[0].Targets>>c.Target&1 == 1:
		return false
	}
	return !slices.ContainsFunc(c.UnlessGates, func(g int) bool { return w.armed[g] == w.epoch[g] })
}

// reached is the recurrence over argv that the design prescribes.
func (w *world) reached(argv []string) []uint64 {
	set := make([]uint64, w.img.ArgWords)
	for _, a := range argv[min(1, len(argv)):] {
		mask := w.row(dfa.Token, a).Tokens
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

func (w *world) gates(p *process, e event) {
	reached := w.reached(e.argv)
	for _, arm := range []bool{false, true} {
		for _, r := range e.rows {
			for _, g := range r.Gates[e.op] {
				switch {
				case g.Arm != arm || arm && e.forged || g.Arg >= 0 && reached[g.Arg/64]>>(g.Arg%64)&1 == 0:
				case !g.Arm:
					w.epoch[g.Gate]++
				case g.Exit >= 0:
					p.pending = append(p.pending, pendingGate{g.Gate, g.Exit, w.epoch[g.Gate]})
				default:
					w.armed[g.Gate] = w.epoch[g.Gate]
				}
			}
		}
	}
}

func denied(verdict string) bool {
	return strings.HasPrefix(verdict, "block") || strings.HasPrefix(verdict, "kill")
}
