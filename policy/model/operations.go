// SPDX-License-Identifier: Apache-2.0

package model

import (
	"path"
	"slices"

	"github.com/actplane/actplane/policy/ir"
)

// on is an event on the file at a resolved path.
func (s *Scope) on(op ir.Op, name string, ok bool) *event {
	return &event{op: op, path: name, file: s.files.at(name), unresolved: !ok}
}

// run is an exec of a program, or of a script and its interpreter: "scripts (both the
// script and its interpreter)". argv[0] is the name invoked.
func (s *Scope) run(p *Process, op string, words []string) (*operation, error) {
	o := &operation{subject: p, exec: true, fails: op == "execfails"}
	programs := [][]string{words}
	if op == "execscript" {
		script := append([]string{words[0]}, words[2:]...)
		programs = [][]string{script, append([]string{words[1]}, script...)}
	}
	var files []*file
	for _, argv := range programs {
		name, ok := s.files.resolve(argv[0], true)
		if !s.files.exists(name) {
			return nil, stepErrorf("%s does not exist any more", name)
		}
		e := s.on(ir.Exec, name, ok)
		e.invoked, e.argv = path.Base(argv[0]), argv
		e.in = e.file.labels | s.sources(e)
		files = append(files, e.file)
		if !outside(name) {
			o.events = append(o.events, e)
		}
	}
	o.effect = func() {
		for _, f := range files {
			f.kind = regular
		}
		p.setup, p.image, p.pending = false, image{}, nil
		p.mapped = slices.DeleteFunc(p.mapped, func(m mapping) bool { return !m.stays })
		for _, e := range o.events {
			s.gain(p, e.in)
		}
	}
	return o, nil
}

// load is the code of a program that is mapped, by a loader or as a library.
func (s *Scope) load(p *Process, object string) (*operation, error) {
	name, ok := s.files.resolve(object, true)
	if !s.files.exists(name) {
		return nil, stepErrorf("%s does not exist any more", name)
	}
	e := s.on(ir.Exec, name, ok)
	e.mapped, e.invoked = true, path.Base(object)
	return &operation{subject: p, events: []*event{e}, effect: func() {
		if e.file.modified {
			s.tamper(p)
		}
	}}, nil
}

// access is what opens or changes one file by its path.
func (s *Scope) access(p *Process, op, object string) (*operation, error) {
	name, ok := s.files.resolve(object, true)
	exists := s.files.exists(name)
	if !exists && op != "write" && op != "append" {
		return nil, stepErrorf("%s does not exist any more", name)
	}
	ops := map[string][]ir.Op{
		"open": {ir.Open}, "read": {ir.Open, ir.Read}, "write": {ir.Open, ir.Write}, "append": {ir.Open, ir.Append},
		"truncate": {ir.Write}, "chmod": {ir.Write}, "chown": {ir.Write}, "mmapshared": {ir.Open, ir.Read, ir.Write},
	}[op]
	if op == "append" && !exists {
		ops = []ir.Op{ir.Open, ir.Write, ir.Append} // "Creating the file … are writes"
	}
	f := s.files.find(name)
	o := s.use(p, ops, name, f, ok)
	attributes := op == "chmod" || op == "chown"
	if attributes {
		o.flow = nil // "for contents"
	}
	o.effect = func() {
		s.files.put(name, f)
		if op != "open" && !attributes {
			f.kind = regular
		}
		if op == "mmapshared" {
			p.mapped = append(p.mapped, mapping{file: f, path: name})
		}
	}
	return o, nil
}

// use is what a process does to the contents of a file that it has by a path.
func (s *Scope) use(p *Process, ops []ir.Op, name string, f *file, ok bool) *operation {
	o := &operation{subject: p}
	is, carries := device(name)
	writes := false
	for _, op := range ops {
		e := &event{op: op, path: name, file: f, unresolved: !ok}
		if op == ir.Read && (!is || carries) && !outside(name) {
			e.in = f.labels | s.sources(e)
		}
		writes = writes || op == ir.Write || op == ir.Append
		if !outside(name) || writes {
			o.events = append(o.events, e)
		}
	}
	o.flow = func() {
		if is && !carries {
			return
		}
		for _, e := range o.events {
			s.gain(p, e.in)
		}
		if writes {
			f.labels |= s.carried(p)
			f.modified = f.modified || !is
		}
	}
	return o
}

// name is what makes or removes one name: `link` and `symlink` have two.
func (s *Scope) name(p *Process, op, object string) (*operation, error) {
	name, ok := s.files.resolve(object, false)
	switch {
	case op == "mkdir" && s.files.used(name):
		return nil, stepErrorf("%s exists already", name)
	case op != "mkdir" && !s.files.exists(name):
		return nil, stepErrorf("%s does not exist any more", name)
	case op != "mkdir" && s.files.parent(name):
		return nil, stepErrorf("%s is not empty", name)
	}
	f := s.files.find(name)
	o := &operation{subject: p, events: []*event{{op: ir.Write, path: name, file: f, unresolved: !ok}}}
	if op == "mkdir" {
		o.effect = func() {
			s.files.put(name, f)
			f.kind = directory
		}
		return o, nil
	}
	o.events = append(o.events, s.on(ir.Unlink, name, ok))
	o.effect = func() { s.files.remove(name) }
	return o, nil
}

// link is "rename and link (old and new name)".
func (s *Scope) link(p *Process, from, to string) (*operation, error) {
	name, ok := s.files.resolve(from, false)
	alias, okAlias := s.files.resolve(to, false)
	if !s.files.exists(name) {
		return nil, stepErrorf("%s does not exist any more", name)
	}
	if s.files.used(alias) {
		return nil, stepErrorf("%s exists already", alias)
	}
	old := s.on(ir.Write, name, ok)
	fresh := &event{op: ir.Write, path: alias, file: old.file, unresolved: !okAlias}
	return &operation{subject: p, events: []*event{old, fresh}, effect: func() {
		old.file.named = true
		s.files.put(alias, old.file)
		if target := s.files.links[name]; target != "" {
			s.files.links[alias] = target
		}
	}}, nil
}

// symlink is a write of its own name; the target need not exist.
func (s *Scope) symlink(p *Process, target, object string) (*operation, error) {
	name, ok := s.files.resolve(object, false)
	if s.files.used(name) {
		return nil, stepErrorf("%s exists already", name)
	}
	e := &event{op: ir.Write, path: name, file: &file{}, unresolved: !ok}
	return &operation{subject: p, events: []*event{e}, effect: func() { s.files.links[name] = target }}, nil
}

// rename writes and unlinks the old name, writes the new one, and unlinks what it
// renames over; an exchange does both to both.
func (s *Scope) rename(p *Process, from, to string, exchange bool) (*operation, error) {
	a, okA := s.files.resolve(from, false)
	b, okB := s.files.resolve(to, false)
	if !s.files.exists(a) || exchange && !s.files.exists(b) {
		return nil, stepErrorf("%s or %s does not exist any more", a, b)
	}
	switch {
	case below(a, b) || below(b, a):
		return nil, stepErrorf("%s and %s are the same or in one another", a, b)
	case !exchange && s.files.parent(b):
		return nil, stepErrorf("%s is not empty", b)
	}
	over := exchange || s.files.used(b)
	trees := s.files.isDirectory(a) || exchange && s.files.isDirectory(b)
	o := &operation{subject: p, events: []*event{s.on(ir.Write, a, okA), s.on(ir.Unlink, a, okA)}}
	moved := o.events[0].file
	o.events = append(o.events, &event{op: ir.Write, path: b, file: moved, unresolved: !okB})
	if over {
		o.events = append(o.events, s.on(ir.Unlink, b, okB))
	}
	if exchange {
		o.events = append(o.events, &event{op: ir.Write, path: a, file: s.files.at(b), unresolved: !okA})
	}
	if trees && okA && okB {
		// "Renaming a directory D to E counts as write and unlink under every clause
		// for which the states after D/ and E/ differ."
		for _, op := range []ir.Op{ir.Write, ir.Unlink} {
			o.events = append(o.events, &event{op: op, path: a, moved: a, to: b})
		}
	}
	o.effect = func() {
		if exchange {
			s.files.exchange(a, b)
			return
		}
		if over {
			s.files.remove(b)
		}
		s.files.move(a, b)
	}
	return o, nil
}

// network is connect, bind, send and recv. A send is decided every time: what the
// engine may remember of an earlier decision is its own business.
func (s *Scope) network(p *Process, op ir.Op, object string) (*operation, error) {
	peer, err := parseEndpoint(object)
	if err != nil {
		return nil, err
	}
	if outside(peer.unix) {
		return &operation{subject: p}, nil
	}
	e := &event{op: op, peer: &peer}
	o := &operation{subject: p, events: []*event{e}}
	if op == ir.Bind {
		o.effect = func() { s.listen(peer.key).owner = p }
		return o, nil
	}
	e.in = s.sources(e)
	c := s.endpoints[peer.key]
	if c != nil {
		e.in |= c.labels
		if c.owner != nil && c.owner != p && !c.owner.ended && op != ir.Recv {
			e.in |= s.carried(c.owner) // it answers on the same connection
		}
	}
	o.flow = func() {
		s.gain(p, e.in)
		// "σ(endpoint) is stored only where both peers are in this scope"
		if c != nil && op != ir.Recv {
			c.labels |= s.carried(p)
		}
	}
	return o, nil
}

func (s *Scope) listen(key string) *channel {
	if s.endpoints[key] == nil {
		s.endpoints[key] = &channel{}
	}
	return s.endpoints[key]
}
