// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"

	"github.com/actplane/actplane/policy/ir"
)

// name is what makes or removes one name: `link` and `symlink` have two.
func (s *Scope) name(p *Process, op, object string) (*operation, error) {
	x := s.files.at(object, false)
	if op == "mkdir" && x.known {
		x.file = s.files.fresh() // an inode of its own, whatever had the name
	}
	o := &operation{subject: p, events: []*event{x.event(ir.Write)}}
	if op == "mkdir" {
		o.effect = func() {
			x.put()
			x.file.kind = directory
			s.files.make(x.name).gone = true // what is below it was not made yet
		}
		return o.of(x), x.isFree()
	}
	o.events = append(o.events, x.event(ir.Unlink))
	o.effect = func() { s.files.remove(x.name) }
	return o.of(x), x.isFile()
}

// of takes the effect from an operation on what could not be resolved: nobody knows
// what happens.
func (o *operation) of(places ...place) *operation {
	for _, x := range places {
		if !x.known {
			o.effect = nil
		}
	}
	return o
}

// maxNames bounds the names of one file: what is protected is looked for among them.
const maxNames = 128

// link is "rename and link (old and new name)".
func (s *Scope) link(p *Process, from, to string) (*operation, error) {
	x, y := s.files.at(from, false), s.files.at(to, false)
	if err := x.isFile(); err != nil {
		return nil, err
	}
	if err := y.isFree(); err != nil {
		return nil, err
	}
	if x.known && y.known && below(x.name, y.name) {
		return nil, stepErrorf("%s exists already", y.name)
	}
	if len(x.file.names) >= maxNames {
		return nil, stepErrorf("%s has %d names already, as many as a file may have here", x.name, len(x.file.names))
	}
	y.file = x.file
	o := &operation{subject: p, events: []*event{x.event(ir.Write), y.event(ir.Write)}}
	o.twoNames(x, y, false)
	o.effect = func() {
		x.file.named, x.file.linked, x.file.kind = true, true, regular
		x.keep()
		y.put()
		if target := s.files.target(x.name); target != "" {
			s.files.link(y.name, target)
		}
	}
	return o.of(x, y), nil
}

// twoNames makes all events of an operation those of both names; over: the second has a
// file of its own.
func (o *operation) twoNames(x, y place, over bool) {
	beside := fmt.Sprintf("%s %s", x.key(), y.name)
	if over {
		beside = fmt.Sprintf("%s %s", x.key(), y.key())
	}
	for _, e := range o.events {
		e.beside = beside
	}
}

// key tells a place, its file, and whether that was modified.
func (x place) key() string {
	return fmt.Sprintf("%s inode %d modified %t unclear %t", x.name, x.file.number, x.file.modified, x.file.unclear)
}

// symlink is a write of its own name; the target need not exist.
func (s *Scope) symlink(p *Process, target, object string) (*operation, error) {
	x := s.files.at(object, false)
	if target == "" {
		return nil, stepErrorf("a symbolic link has a target")
	}
	e := x.event(ir.Write)
	e.file = s.files.fresh()
	o := &operation{subject: p, events: []*event{e}, effect: func() {
		n := s.files.link(x.name, target)
		n.unused, n.found = s.files.number(e.file), s.files.now // an inode of its own
	}}
	return o.of(x), x.isFree()
}

// rename writes and unlinks the old name, writes the new one, and unlinks what it
// renames over; an exchange does both to both.
func (s *Scope) rename(p *Process, from, to string, exchange bool) (*operation, error) {
	a, b := s.files.at(from, false), s.files.at(to, false)
	if err := s.renames(a, b, exchange); err != nil {
		return nil, err
	}
	over := exchange || s.files.used(b.name)
	trees := s.files.isDirectory(a.name) || exchange && s.files.isDirectory(b.name)
	arriving, leaving := b, a
	arriving.file, leaving.file = a.file, b.file
	o := &operation{subject: p, events: []*event{a.event(ir.Write), a.event(ir.Unlink), arriving.event(ir.Write)}, names: []string{a.name, b.name}, exchange: exchange}
	if exchange {
		o.events = append(o.events, leaving.event(ir.Write))
	}
	if over { // last: what a write opens and that closes is closed
		o.events = append(o.events, b.event(ir.Unlink))
	}
	if trees && a.known && b.known {
		// "Renaming a directory D to E counts as write and unlink under every clause
		// for which the states after D/ and E/ differ."
		for _, op := range []ir.Op{ir.Write, ir.Unlink} {
			e := a.event(op)
			e.moved, e.to = a.name, b.name
			o.events = append(o.events, e)
		}
	}
	o.twoNames(a, b, over)
	o.effect = func() {
		a.keep()
		if exchange {
			b.keep()
			s.files.exchange(a.name, b.name)
			return
		}
		if over {
			s.files.remove(b.name)
		}
		s.files.rename(a.name, b.name)
	}
	return o.of(a, b), nil
}

// renames says why one name cannot take the place of another, nil if it can.
func (s *Scope) renames(a, b place, exchange bool) error {
	if err := a.isThere(); err != nil {
		return err
	}
	if exchange {
		if err := b.isThere(); err != nil {
			return err
		}
	} else if err := b.canBeFile(); err != nil {
		return err
	}
	if a.known && b.known && (below(a.name, b.name) || below(b.name, a.name)) {
		return stepErrorf("%s and %s are the same or in one another", a.name, b.name)
	}
	return nil
}
