// SPDX-License-Identifier: Apache-2.0

package model

import (
	"path"

	"github.com/actplane/actplane/policy/ir"
)

// on is an event on the file at a resolved path.
func (s *Scope) on(op ir.Op, name string, ok bool) *event {
	return &event{op: op, path: name, file: s.files.at(name), unresolved: !ok}
}

// run is an exec. argv[0] is the name invoked.
func (s *Scope) run(p *Process, argv []string, fails bool) (*operation, error) {
	name, ok := s.files.resolve(argv[0], true)
	if !s.files.exists(name) {
		return nil, stepErrorf("%s does not exist any more", name)
	}
	e := s.on(ir.Exec, name, ok)
	e.invoked, e.argv = path.Base(argv[0]), argv
	e.in = e.file.labels | s.sources(e)
	return &operation{subject: p, events: []*event{e}, fails: fails, effect: func() {
		e.file.kind = regular
		p.mapped = nil // an exec unmaps
	}}, nil
}

// access is what opens or changes the contents of one file.
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
	o, f := &operation{subject: p}, s.files.find(name)
	for _, op := range ops {
		e := &event{op: op, path: name, file: f, unresolved: !ok}
		if op == ir.Read {
			e.in = e.file.labels | s.sources(e)
		}
		o.events = append(o.events, e)
	}
	is, carries := device(name)
	o.flow = func() {
		if is && !carries {
			return
		}
		for _, e := range o.events {
			s.gain(p, e.in)
		}
		if op != "open" && op != "read" && op != "chmod" && op != "chown" {
			f.labels |= s.carried(p) // "for contents"
			f.modified = f.modified || !is
		}
	}
	o.effect = func() {
		s.files.names[name] = f
		if op != "open" && op != "chmod" && op != "chown" {
			f.kind = regular
		}
		if op == "mmapshared" {
			p.mapped = append(p.mapped, mapping{f, name})
		}
	}
	return o, nil
}

// name is what makes or removes one name: `link` and `symlink` have two.
func (s *Scope) name(p *Process, op, object string) (*operation, error) {
	name, ok := s.files.resolve(object, false)
	if op != "mkdir" && !s.files.exists(name) {
		return nil, stepErrorf("%s does not exist any more", name)
	}
	f := s.files.find(name)
	o := &operation{subject: p, events: []*event{{op: ir.Write, path: name, file: f, unresolved: !ok}}}
	if op == "mkdir" {
		o.effect = func() {
			s.files.names[name] = f
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
		s.files.names[alias] = old.file
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

// pipe moves labels through a pipe, which "is no object" and no event.
func (s *Scope) pipe(p *Process, op, name string) {
	c := s.pipes[name]
	if c == nil {
		c = &channel{}
		s.pipes[name] = c
	}
	switch op {
	case "pipewrite":
		c.labels |= s.carried(p)
	case "piperead":
		s.gain(p, c.labels)
	}
	s.settle()
}
