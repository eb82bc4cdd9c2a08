// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"net/netip"
	"path"
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
	links     map[string]string
	epoch     []int    // of each gate: how often it was invalidated
	armed     []int    // the epoch at which it was armed, -1 for never
	open      []string // requests for approval, the oldest first
	granted   map[string]int
	denied    map[string]bool
}

type process struct {
	labels, lineage uint64
	cleared         uint64 // labels that its program clears, and so does not regain
	pending         []pendingGate
}

// pendingGate is armed when the program ends with a status.
type pendingGate struct{ gate, exit, epoch int }

// event is one operation on one key.
type event struct {
	op   ir.Op
	key  string
	rows []*dfa.Row // of the key; of an exec also of the invoked name
	argv []string
	in   uint64 // labels that it would bring
	// forged: of an exec, the program was written inside, so it arms nothing.
	forged bool
}

func newWorld(p *Policy) *world {
	w := &world{
		img: p.Image, rules: p.Program.Rules,
		processes: map[string]*process{}, files: map[string]uint64{}, modified: map[string]bool{}, links: map[string]string{},
		epoch: make([]int, len(p.Program.Gates)), armed: make([]int, len(p.Program.Gates)),
		granted: map[string]int{}, denied: map[string]bool{},
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
	if step[0] == "human" {
		return w.answer(step[1])
	}
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
	case "execfails":
		e := w.running(args[0], args)
		return w.decide(&process{labels: p.labels, lineage: p.lineage}, e)
	case "connect", "send":
		return w.network(t, p, op, args[0])
	}
	return w.file(t, p, op, args)
}

func (w *world) file(t *testing.T, p *process, op string, args []string) string {
	name := w.resolve(args[0])
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
			w.gain(p, read.in)
		}
		return verdict
	case "symlink":
		verdict := w.decide(p, w.on(ir.Write, args[1]))
		if !denied(verdict) {
			w.links[args[1]] = name
		}
		return verdict
	case "write", "truncate", "chmod", "mkdir":
		return w.changed(p, w.decide(p, w.on(ir.Open, name), w.on(ir.Write, name)), name)
	case "append":
		return w.changed(p, w.decide(p, w.on(ir.Open, name), w.on(ir.Append, name)), name)
	case "unlink", "rmdir":
		return w.decide(p, w.on(ir.Write, name), w.on(ir.Unlink, name))
	case "rename":
		if from, to := w.row(dfa.Path, name), w.row(dfa.Path, args[1]); from.Sources|to.Sources != 0 || len(from.Protects) > 0 {
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

// resolve follows one symbolic link.
func (w *world) resolve(name string) string {
	for link, target := range w.links {
		if rest, ok := strings.CutPrefix(name, link+"/"); ok {
			return target + "/" + rest
		}
	}
	return name
}

func (w *world) on(op ir.Op, name string) event {
	return event{op: op, key: name, rows: []*dfa.Row{w.row(dfa.Path, name)}}
}

func (w *world) labels(name string) uint64 { return w.files[name] | w.row(dfa.Path, name).Sources }

func (w *world) changed(p *process, verdict, name string) string {
	if !denied(verdict) {
		w.files[name] |= p.labels &^ w.img.Integrity
		w.modified[name] = true
	}
	return verdict
}

// running is the event of running a program.
func (w *world) running(name string, argv []string) event {
	resolved, invoked := w.row(dfa.Path, name), w.row(dfa.Name, path.Base(name))
	return event{
		op: ir.Exec, key: name, rows: []*dfa.Row{resolved, invoked}, argv: argv,
		in: w.labels(name) | resolved.ExecSources | invoked.ExecSources, forged: w.modified[name],
	}
}

func (w *world) exec(p *process, name string, argv []string) string {
	e := w.running(name, argv)
	p.pending = nil
	verdict := w.decide(p, e)
	if denied(verdict) {
		return verdict
	}
	p.cleared = 0
	w.gain(p, e.in)
	if resolved := e.rows[0]; !e.forged {
		p.lineage |= resolved.Lineage
		p.cleared = resolved.Declassify
		p.labels = p.labels&^resolved.Declassify | resolved.Endorse
	}
	return verdict
}

// gain is what a flow brings: no mark of integrity, and the end of those held.
func (w *world) gain(p *process, labels uint64) {
	labels &^= p.cleared | w.img.Integrity
	if labels&^p.labels != 0 {
		p.labels &^= w.img.Integrity
	}
	p.labels |= labels
}

// answer is what a person says to the oldest request.
func (w *world) answer(what string) string {
	if len(w.open) == 0 {
		return "no request"
	}
	request := w.open[0]
	w.open = w.open[1:]
	if what == "deny" {
		w.denied[request] = true
	} else {
		w.granted[request]++
	}
	return "ok"
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
	e.key, e.in = object, e.rows[0].Sources
	verdict := w.decide(p, e)
	if !denied(verdict) {
		w.gain(p, e.in)
	}
	return verdict
}
