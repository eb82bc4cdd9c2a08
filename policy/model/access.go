// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"

	"github.com/actplane/actplane/policy/ir"
)

// access is what opens or changes one file by its path.
func (s *Scope) access(p *Process, op, object string) (*operation, error) {
	x := s.files.at(object, true)
	ops := map[string][]ir.Op{
		"open": {ir.Open}, "read": {ir.Open, ir.Read}, "write": {ir.Open, ir.Write}, "append": {ir.Open, ir.Append},
		"truncate": {ir.Write}, "chmod": {ir.Write}, "chown": {ir.Write}, "mmapshared": {ir.Open, ir.Read, ir.Write},
	}[op]
	attributes := op == "chmod" || op == "chown"
	err := x.isFile()
	switch {
	case op == "write" || op == "append":
		err = x.canBeFile()
	case op == "open" || attributes:
		err = x.isThere()
	}
	if err == nil && op == "mmapshared" {
		err = s.mappable(1)
	}
	if err != nil {
		return nil, err
	}
	if op == "append" && x.isThere() != nil {
		ops = []ir.Op{ir.Open, ir.Write} // "Creating the file … are writes"
	}
	o := s.use(p, ops, x)
	if attributes {
		o.flow = nil // "for contents"
	}
	o.effect = func() {
		x.put()
		if op != "open" && !attributes {
			x.file.kind = regular
		}
		if op == "mmapshared" {
			s.attach(p, mapping{file: x.file, path: x.name, unresolved: !x.known})
		}
	}
	return o, nil
}

// use is what a process does to the contents of a file that it has by a path.
func (s *Scope) use(p *Process, ops []ir.Op, x place) *operation {
	o := &operation{subject: p}
	is, carries := device(x.name)
	writes := false
	reads := slices.Contains(ops, ir.Read) && (!is || carries) && !outside(x.name)
	for _, op := range ops {
		e := x.event(op)
		if reads { // what is brought in by an event is there for all that are the same system call
			e.in = x.file.labels | s.sources(e)
		}
		writes = writes || op == ir.Write || op == ir.Append
		if !outside(x.name) || writes {
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
			s.label(x.file, s.carried(p))
			if !is {
				x.file.modified, x.file.unclear = true, false
				x.file.writes++
			}
		}
	}
	return o
}

// descriptor is an open file. "Through a descriptor a file keeps the path by which
// it was opened", whatever its names are by now.
type descriptor struct {
	place
	ops []ir.Op // what it was opened for: read, write or append
}

// openAs opens a file under the name of a descriptor, for r, w, a or rw.
func (s *Scope) openAs(p *Process, name, mode, object string) (*operation, error) {
	x := s.files.at(object, true)
	if err := x.canBeFile(); err != nil {
		return nil, err
	}
	exists := x.isThere()
	if mode == "r" && exists != nil {
		return nil, exists
	}
	d := descriptor{x, map[string][]ir.Op{"r": {ir.Read}, "w": {ir.Write}, "a": {ir.Append}, "rw": {ir.Read, ir.Write}}[mode]}
	ops := append([]ir.Op{ir.Open}, d.ops...)
	if mode == "a" && exists != nil {
		ops = []ir.Op{ir.Open, ir.Write}
	}
	o := s.use(p, ops, x)
	o.effect = func() {
		x.put()
		x.file.kind = regular
		p.open = p.open.with(name, d)
	}
	return o, nil
}

// through is "reading through an inherited or received descriptor" or one's own,
// and "writing through any descriptor": decided again each time, as sends are.
// "Plain writes through" one that appends are appends.
func (s *Scope) through(p *Process, op, name string) (*operation, error) {
	d, ok := p.open.get(name)
	if !ok {
		return nil, stepErrorf("%s has no descriptor %s", p.Name, name)
	}
	for _, has := range d.ops {
		if (has == ir.Read) == (op == "fdread") {
			o := s.use(p, []ir.Op{has}, d.place)
			for _, e := range o.events {
				e.used, e.writable = true, slices.ContainsFunc(d.ops, func(op ir.Op) bool { return op != ir.Read })
			}
			return o, nil
		}
	}
	return nil, stepErrorf("the descriptor %s was not opened for that", name)
}

// pass sends a descriptor through a Unix socket, which carries the sender's labels.
func (s *Scope) pass(p *Process, name string, q *Process) error {
	d, ok := p.open.get(name)
	if !ok {
		return stepErrorf("%s has no descriptor %s", p.Name, name)
	}
	s.gain(q, s.carried(p))
	q.open = q.open.with(name, d)
	s.settle()
	return nil
}
