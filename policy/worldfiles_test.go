// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"

	"github.com/actplane/actplane/policy/dfa"
	"github.com/actplane/actplane/policy/ir"
)

type inode struct {
	labels          uint64
	modified, named bool
	unclear         bool // whether it was modified is not known
	file            bool // it is known to be no directory
	number          int
	opened          int // how often to write
}

// dentry is a name in a directory.
type dentry struct {
	name     string
	parent   *dentry
	children map[string]*dentry // nil: it went away
	inode    *inode
	target   string // of a symbolic link
	outside  bool   // what is not among the children exists, made from outside
	named    bool   // some name above was given inside
	used     bool   // something has happened to it
	lost     uint64 // labels of what nothing is known of
	spoilt   bool
}

// child looks a name up. It may be one that does not exist: a negative dentry,
// without inode.
func (d *dentry) child(name string) *dentry {
	if c := d.children[name]; c != nil {
		return c
	}
	c := &dentry{name: name, parent: d}
	if _, gone := d.children[name]; !gone && d.outside {
		c.outside, c.named, c.lost, c.spoilt = true, d.named, d.lost, d.spoilt
		c.inode = &inode{labels: d.lost, modified: d.spoilt, unclear: d.spoilt, named: d.named}
	}
	if d.children == nil {
		d.children = map[string]*dentry{}
	}
	d.children[name] = c
	return c
}

func (d *dentry) remove() { d.parent.children[d.name] = nil }

// replace puts a new dentry in the place of one.
func (d *dentry) replace(n *dentry) *dentry {
	n.name, n.parent, n.used = d.name, d.parent, true
	d.parent.children[d.name] = n
	return n
}

// busy tells whether something has happened below, so that it is a directory.
func (d *dentry) busy() bool {
	for _, c := range d.children {
		if c != nil && (c.used || c.busy()) {
			return true
		}
	}
	return false
}

// known tells whether anything is known of a name or below it, be it that it is not.
func (d *dentry) known() bool {
	if d == nil || d.used || d.inode == nil {
		return true
	}
	for _, c := range d.children {
		if c.known() {
			return true
		}
	}
	return false
}

// spoil makes everything count as modified and labelled.
func (d *dentry) spoil(labels uint64) {
	d.lost, d.spoilt = labels, true
	if d.inode != nil {
		d.inode.labels, d.inode.modified, d.inode.unclear = d.inode.labels|labels, true, true
	}
	for name, c := range d.children {
		switch {
		case c == nil:
		case c.known():
			c.spoil(labels)
		default:
			delete(d.children, name) // another inode, for all that anybody knows
		}
	}
}

// moved marks all that is below as named inside.
func (d *dentry) moved() {
	d.named = true
	if d.inode != nil {
		d.inode.named = true
	}
	for _, c := range d.children {
		if c != nil {
			c.moved()
		}
	}
}

// walk resolves a path. known is false when that cannot be done.
func (w *world) walk(name string, follow bool) (d *dentry, path string, known bool) {
	d, path, known, w.linked = w.follow(name, follow)
	return d, path, known
}

// follow is walk, and tells whether a link led there.
func (w *world) follow(name string, follow bool) (d *dentry, path string, known, linked bool) {
	rest := strings.Split(name, "/")
	for links := 0; len(rest) > 0; rest = rest[1:] {
		switch rest[0] {
		case "", ".":
			continue
		case "..":
			if d != nil && d.parent != nil {
				d = d.parent
			}
			continue
		}
		if d == nil {
			d = w.root
		}
		next := d.child(rest[0])
		if next.target == "" || len(rest) == 1 && !follow {
			d = next
			continue
		}
		linked = true
		if links++; links > 40 {
			return &dentry{inode: &inode{}}, name, false, true
		}
		if next.target[0] == '/' {
			d = w.root
		}
		rest = append([]string{""}, append(strings.Split(next.target, "/"), rest[1:]...)...)
	}
	if d == nil {
		d = w.root
	}
	return d, d.path(), true, linked
}

func (d *dentry) path() string {
	if d.parent == nil {
		return "/"
	}
	return strings.TrimSuffix(d.parent.path(), "/") + "/" + d.name
}

// inFile tells whether something above is no directory.
func inFile(d *dentry) bool {
	for d = d.parent; d != nil; d = d.parent {
		if d.used && d.target == "" && d.inode != nil && d.inode.file {
			return true
		}
	}
	return false
}

// sense tells whether what a process does to files can be done.
func (w *world) sense(op string, args []string) bool {
	there := func(d *dentry) bool { return d.inode != nil || d.target != "" }
	free := func(d *dentry) bool { return !d.used && !d.busy() && !inFile(d) }
	at := func(i int, follow bool) *dentry {
		d, _, _ := w.walk(args[i], follow)
		return d
	}
	switch op {
	case "connect", "send", "recv", "bind", "fdread", "fdwrite", "ptrace", "memread", "memwrite":
		return true
	case "mkdir":
		return free(at(0, false))
	case "symlink":
		return free(at(1, false))
	case "link":
		return there(at(0, false)) && !inFile(at(0, false)) && !at(0, false).busy() && free(at(1, false)) && !below(at(0, false), at(1, false))
	case "unlink", "rmdir":
		return there(at(0, false)) && !inFile(at(0, false)) && !at(0, false).busy()
	case "rename", "exchange":
		x, y := at(0, false), at(1, false)
		return there(x) && !inFile(x) && !inFile(y) && (op == "rename" && !y.busy() || op == "exchange" && there(y)) &&
			!below(x, y) && !below(y, x)
	case "fdopen":
		d := at(2, true)
		return !d.busy() && !inFile(d) && (there(d) || args[1] != "r")
	case "write", "append":
		return !at(0, true).busy() && !inFile(at(0, true))
	case "execscript":
		if d := at(1, true); !there(d) || d.busy() || inFile(d) {
			return false
		}
	}
	d := at(0, true)
	return there(d) && !inFile(d) && (!d.busy() || op == "open" || op == "chmod" || op == "chown")
}

func below(d, top *dentry) bool {
	for ; d != nil; d = d.parent {
		if d == top {
			return true
		}
	}
	return false
}

// use puts a dentry to use, with an inode if it has none.
func (w *world) use(d *dentry) *inode {
	if d.inode == nil {
		d.inode = &inode{}
	}
	if d.inode.number == 0 {
		w.numbers++
		d.inode.number = w.numbers
	}
	d.used = true
	return d.inode
}

func (w *world) on(op ir.Op, d *dentry, path string, known bool) *event {
	i := d.inode
	if i == nil {
		i = &inode{}
	}
	if i.number == 0 && d.inode != nil {
		w.numbers++
		i.number = w.numbers
	}
	e := &event{op: op, key: path, inode: i, known: known, rows: w.pathRows(path, known)}
	if strings.HasPrefix(path, "/dev/") && op != ir.Exec { // no object of file rules
		e.rows, e.device = []*dfa.Row{&w.img.Rows[dfa.NoRow]}, true
	}
	return e
}

func (w *world) pathRows(path string, known bool) (out []*dfa.Row) {
	if !known {
		return []*dfa.Row{&w.img.Rows[dfa.UnknownRow]}
	}
	name := path[strings.LastIndexByte(path, '/')+1:]
	return []*dfa.Row{w.rowFrom(w.img.Start[dfa.Path], path), w.rowFrom(w.img.Start[dfa.Base], name)}
}

func (w *world) rowFrom(s uint16, key string) *dfa.Row {
	return &w.img.Rows[w.img.RowOf[w.run(s, key)]]
}

func (w *world) run(s uint16, key string) uint16 {
	for i := range len(key) {
		s = w.img.Next[int(s)*256+int(key[i])]
	}
	return s
}

func sources(rows []*dfa.Row) (labels uint64) {
	for _, r := range rows {
		labels |= r.Sources
	}
	return labels
}

// open is what a path and the operations on what is behind it make.
func (w *world) open(p *process, op, name string) *act {
	d, path, known := w.walk(name, true)
	var ops []ir.Op
	switch op {
	case "open":
		ops = []ir.Op{ir.Open}
	case "read":
		ops = []ir.Op{ir.Open, ir.Read}
	case "write":
		ops = []ir.Op{ir.Open, ir.Write}
	case "append":
		ops = []ir.Op{ir.Open, ir.Append}
		if d.inode == nil {
			ops[1] = ir.Write
		}
	case "mmapshared":
		ops = []ir.Op{ir.Open, ir.Read, ir.Write}
	default: // truncate, chmod, chown
		ops = []ir.Op{ir.Write}
	}
	a := w.uses(p, d, path, known, ops)
	attributes := op == "chmod" || op == "chown"
	if attributes {
		a.flow = nil
	}
	a.effect = func() {
		w.adopt(a, d)
		d.inode.file = d.inode.file || op != "open" && !attributes
		if op == "mmapshared" {
			p.shares = append(p.shares, share{inode: d.inode, rows: a.events[0].rows})
		}
	}
	return a
}

// adopt gives a dentry the inode that the events were decided on.
func (w *world) adopt(a *act, d *dentry) {
	if d.inode == nil && len(a.events) > 0 {
		d.inode = a.events[0].inode
	}
	w.use(d)
}

// uses is reading and writing a file under a path.
func (w *world) uses(p *process, d *dentry, path string, known bool, ops []ir.Op) *act {
	a := &act{subject: p}
	device := path == "/dev/null" || path == "/dev/zero"
	first := w.on(ops[0], d, path, known)
	if path == "/run/actplane/bin/actplane-guest" && !slices.Contains(ops, ir.Write) && !slices.Contains(ops, ir.Append) {
		ops = nil // outside the rules
	}
	reads := slices.Contains(ops, ir.Read)
	for _, op := range ops {
		e := *first
		e.op = op
		if reads && !device {
			e.in = e.inode.labels | sources(e.rows)
		}
		a.events = append(a.events, &e)
	}
	a.flow = func() {
		for _, e := range a.events {
			if device {
				continue
			}
			w.gain(p, e.in)
			if e.op == ir.Write || e.op == ir.Append {
				e.inode.labels |= p.labels &^ w.img.Integrity
				if !strings.HasPrefix(path, "/dev/tty") {
					e.inode.modified, e.inode.unclear = true, false
					e.inode.opened++
				}
			}
		}
	}
	return a
}

func (w *world) descriptor(p *process, op string, args []string) *act {
	if op != "fdopen" {
		o, want := p.descriptors[args[0]], ir.Read
		for _, has := range o.ops {
			if (has == ir.Read) == (op == "fdread") {
				want = has
			}
		}
		a := w.uses(p, &dentry{inode: o.inode}, o.path, o.known, []ir.Op{want})
		for _, e := range a.events {
			e.opened, e.writes = true, len(o.ops) > 1 || o.ops[0] != ir.Read
		}
		return a
	}
	d, path, known := w.walk(args[2], true)
	var ops []ir.Op
	for _, mode := range args[1] {
		ops = append(ops, map[rune]ir.Op{'r': ir.Read, 'w': ir.Write, 'a': ir.Append}[mode])
	}
	all := append([]ir.Op{ir.Open}, ops...)
	if d.inode == nil && args[1] == "a" {
		all[1] = ir.Write
	}
	a := w.uses(p, d, path, known, all)
	a.effect = func() {
		w.adopt(a, d)
		d.inode.file = true
		p.descriptors = put(p.descriptors, args[0], opened{d.inode, path, known, ops})
	}
	return a
}

// names are the operations that make or remove one.
func (w *world) names(p *process, op string, args []string) *act {
	last := args[len(args)-1]
	d, path, known := w.walk(last, false)
	a := &act{subject: p, events: []*event{w.on(ir.Write, d, path, known)}}
	switch op {
	case "unlink", "rmdir":
		a.events = append(a.events, w.on(ir.Unlink, d, path, known))
		a.effect = d.remove
	case "mkdir":
		if known {
			a.events[0].inode = &inode{}
		}
		a.effect = func() { w.use(d.replace(&dentry{inode: a.events[0].inode})) }
	case "symlink":
		a.events[0].inode = &inode{}
		a.effect = func() { w.use(d.replace(&dentry{target: args[0], inode: a.events[0].inode})) }
	case "link":
		old, from, ok := w.walk(args[0], false)
		first := w.on(ir.Write, old, from, ok)
		a.events[0].inode = first.inode
		a.events = []*event{first, a.events[0]}
		for _, e := range a.events {
			e.beside = first.told() + " " + path
		}
		a.effect = func() {
			first.inode.named = true
			old.inode, old.used = first.inode, true
			first.inode.file = true
			d.replace(&dentry{inode: first.inode, target: old.target})
		}
		known = known && ok
	}
	if !known {
		a.effect = nil
	}
	return a
}

// rename is a write and an unlink of the old name, and a write of the new one, with
// an unlink of what had it.
func (w *world) rename(p *process, from, to string, exchange bool) *act {
	a := &act{subject: p}
	x, old, okX := w.walk(from, false)
	y, fresh, okY := w.walk(to, false)
	isDir := func(d *dentry) bool {
		return d.target == "" && (!d.used || d.inode == nil || !d.inode.file || d.busy())
	}
	trees := isDir(x) || exchange && isDir(y)
	write := w.on(ir.Write, x, old, okX)
	unlink := *write
	unlink.op = ir.Unlink
	there := w.on(ir.Write, y, fresh, okY)
	theirs := there.inode
	beside := write.told() + " " + fresh
	if exchange || y.used {
		beside = write.told() + " " + there.told()
	}
	there.inode = write.inode
	a.events = []*event{write, &unlink, there}
	if exchange {
		back := w.on(ir.Write, x, old, okX)
		back.inode = theirs
		a.events = append(a.events, back)
	}
	if exchange || y.used {
		over := w.on(ir.Unlink, y, fresh, okY)
		a.events = append(a.events, over)
	}
	for _, e := range a.events {
		e.beside = beside
	}
	if trees && okX && okY {
		a.moved = w.apart(old, fresh)
	}
	if !okX || !okY {
		return a
	}
	a.effect = func() {
		w.use(x).named = true
		x.moved()
		if exchange {
			w.use(y)
			y.moved()
			x.parent.children[x.name], y.parent.children[y.name] = y, x
			x.parent, y.parent, x.name, y.name = y.parent, x.parent, y.name, x.name
			return
		}
		x.remove()
		x.parent, x.name = y.parent, y.name
		x.parent.children[x.name] = x
	}
	return a
}
