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

// world decides traces with nothing but an image, and keeps its state as a kernel
// does: dentries with inodes, and a clock that gates go by. It is a second opinion
// on package model, which evaluates the program with a matcher of its own. What
// makes no sense is the model's to refuse: here it may have any outcome.
type world struct {
	img       *dfa.Image
	rules     []ir.Rule
	labels    uint64 // all that are declared
	processes map[string]*process
	root      *dentry
	linked    bool // a symbolic link led to what was walked to last
	ports     map[string]*port
	pipes     map[string]*inode
	memory    map[string]*inode
	gates     []wgate
	clock     int // of gates
	numbers   int // of inodes
	asks
}

// wgate is fresh when it was armed after it last became stale.
type wgate struct {
	armed map[int]bool
	stale int
}

func (g *wgate) fresh() bool {
	for at := range g.armed {
		if at > g.stale {
			return true
		}
	}
	return false
}

type process struct {
	name            string
	labels, lineage uint64
	program         program
	waiting         []waiting
	shares          []share
	descriptors     map[string]opened
	tracer          *process
	dir, user       string
	env             map[string]string
	setup, gone     bool
	asks            *ask              // that it is stopped for
	opens           map[string]string // by what grants have opened, the key of the answer
}

// program is what the exec of the running program did.
type program struct {
	clears, cleared, endorsed, lineage uint64
	armed                              [][2]int // gates, and when
}

// waiting is a gate that is armed when the program ends with a status.
type waiting struct{ gate, exit, at int }

// share is memory that others may have too: of a file by its rows, or of none.
type share struct {
	inode  *inode
	rows   []*dfa.Row
	traced bool
	reads  bool // and does not write
}

type opened struct {
	inode *inode
	path  string
	known bool
	ops   []ir.Op
}

type port struct {
	labels uint64
	owner  *process
}

func newWorld(p *Policy) *world {
	w := &world{
		img: p.Image, rules: p.Program.Rules, labels: 1<<len(p.Program.Labels) - 1,
		gates: make([]wgate, len(p.Program.Gates)),
		root:  &dentry{name: "/", outside: true},
		asks:  asks{answers: map[string]*reply{}},
	}
	for i := range w.gates {
		w.gates[i].armed = map[int]bool{}
	}
	w.boot()
	return w
}

// boot begins without processes.
func (w *world) boot() {
	w.processes, w.ports = map[string]*process{}, map[string]*port{}
	w.pipes, w.memory = map[string]*inode{}, map[string]*inode{}
}

func (w *world) process(name string) *process {
	if w.processes[name] == nil {
		w.processes[name] = &process{name: name}
	}
	return w.processes[name]
}

// do acts out a step and returns the verdict with its rule.
func (w *world) do(step []string) string {
	switch {
	case step[0] == "human":
		w.answer(step[1:])
		return "ok"
	case step[0] == "time":
		d, _ := time.ParseDuration(step[1])
		w.wait(d)
		return "ok"
	case step[0] == "scope":
		w.restart(step[1] == "lost")
		return "ok"
	}
	p, op, args := w.process(step[0]), step[1], step[2:]
	if w.happens(p, op, args) {
		w.spread()
		return "ok"
	}
	var a *act
	switch op {
	case "exec", "execfails", "execscript":
		a = w.exec(p, op, args)
	case "mapexec":
		a = w.mapCode(p, args[0])
	case "connect", "send", "recv", "bind":
		a = w.network(p, op, args[0])
	case "ptrace", "memread", "memwrite":
		a = w.debug(p, op, w.process(args[0]))
	case "unlink", "rmdir", "mkdir", "link", "symlink":
		a = w.names(p, op, args)
	case "rename", "exchange":
		a = w.rename(p, args[0], args[1], op == "exchange")
	case "fdopen", "fdread", "fdwrite":
		a = w.descriptor(p, op, args)
	default:
		a = w.open(p, op, args[0])
	}
	return w.perform(a, step)
}

// happens does what no policy decides.
func (w *world) happens(p *process, op string, args []string) bool {
	switch op {
	case "enter":
		p.setup = true
	case "fork":
		child := *p
		child.name, child.waiting, child.program.armed, child.opens = args[0], nil, nil, nil
		child.shares, child.descriptors, child.env = slices.Clone(p.shares), maps.Clone(p.descriptors), maps.Clone(p.env)
		w.processes[args[0]] = &child
	case "exit", "killed":
		w.ends(p, op == "exit", args[0])
		p.gone = true
	case "pipe", "pipewrite", "piperead":
		w.pipe(p, op, args[0])
	case "shm":
		if w.memory[args[0]] == nil {
			w.memory[args[0]] = &inode{}
		}
		p.shares = append(p.shares, share{inode: w.memory[args[0]]})
	case "fdpass":
		q := w.process(args[1])
		w.gain(q, p.labels)
		q.descriptors = put(q.descriptors, args[0], p.descriptors[args[0]])
	case "chdir":
		_, p.dir, _ = w.walk(args[0], true)
	case "setuid":
		p.user = args[0]
	case "setenv":
		p.env = put(p.env, args[0], args[1])
	default:
		return false
	}
	return true
}

// decides tells whether a step is one that a policy decides, of a process that can.
func (w *world) decides(step []string) bool {
	p := w.processes[step[0]]
	switch step[1] {
	case "enter", "fork", "exit", "killed", "pipe", "pipewrite", "piperead", "shm", "fdpass", "chdir", "setuid", "setenv",
		"ptrace", "memread", "memwrite":
		return false
	}
	return p != nil && !p.gone && p.asks == nil && step[0] != "human"
}

func put[V any](m map[string]V, key string, v V) map[string]V {
	if m == nil {
		m = map[string]V{}
	}
	m[key] = v
	return m
}

func (w *world) pipe(p *process, op, name string) {
	if w.pipes[name] == nil {
		w.pipes[name] = &inode{}
	}
	switch op {
	case "pipewrite":
		w.pipes[name].labels |= p.labels &^ w.img.Integrity
	case "piperead":
		w.gain(p, w.pipes[name].labels)
	}
}

// ends is the end of a process, or of the program that a kill stops.
func (w *world) ends(p *process, normal bool, status string) {
	for _, g := range p.waiting {
		if normal && fmt.Sprint(g.exit) == status {
			w.gates[g.gate].armed[g.at] = true
		}
	}
	w.drop(p.asks)
	w.unshare(p, func(share) bool { return false })
	p.waiting, p.descriptors, p.opens = nil, nil, nil
}

// unshare ends mappings but for some. What they show may have been written to until now.
func (w *world) unshare(p *process, stays func(share) bool) {
	var kept []share
	for _, s := range p.shares {
		if stays(s) {
			kept = append(kept, s)
			continue
		}
		for _, r := range s.rows {
			for _, g := range r.Gates[ir.Write] {
				if !g.Arm {
					w.spoil(g.Gate)
				}
			}
		}
	}
	p.shares = kept
}

func (w *world) restart(lost bool) {
	for _, p := range w.processes {
		w.ends(p, false, "")
	}
	w.boot()
	w.asks.requests = nil
	if lost {
		for i := range w.gates {
			w.gates[i].armed = map[int]bool{}
		}
		w.asks = asks{answers: map[string]*reply{}, now: w.now}
		w.root.spoil(w.labels &^ w.img.Integrity)
	}
}

// gain is what a flow brings: no mark of integrity, and the end of those held.
func (w *world) gain(p *process, labels uint64) {
	labels &^= p.program.clears | w.img.Integrity
	if p.setup {
		return
	}
	if labels&^p.labels != 0 {
		p.labels &^= w.img.Integrity
	}
	p.labels |= labels
}

// spread moves labels through memory that is shared, as often as there are labels.
func (w *world) spread() {
	for range 64 {
		for _, p := range w.processes {
			for _, s := range p.shares {
				if !s.reads {
					s.inode.labels |= p.labels &^ w.img.Integrity
				}
			}
		}
		for _, p := range w.processes {
			for _, s := range p.shares {
				w.gain(p, s.inode.labels)
			}
		}
	}
}

// foreign: the process is not what the program that it ran is.
func (w *world) foreign(p *process) {
	p.lineage &^= p.program.lineage
	p.labels = p.labels&^p.program.endorsed | p.program.cleared
	for _, a := range p.program.armed {
		maps.DeleteFunc(w.gates[a[0]].armed, func(at int, _ bool) bool { return at <= a[1] })
	}
	p.program, p.waiting = program{}, nil
}

// honest tells whether running a program opens what it opens.
func (p *process) honest(e *event) bool {
	if e.by != nil && !p.honest(e.by) {
		return false
	}
	for name := range p.env {
		if strings.HasPrefix(name, "LD_") || name == "PYTHONPATH" || name == "BASH_ENV" {
			return false
		}
	}
	return e.known && !e.forged && !e.inode.modified && !e.inode.named && (p.tracer == nil || p.tracer.gone)
}
