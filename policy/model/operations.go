// SPDX-License-Identifier: Apache-2.0

package model

import (
	"path"

	"github.com/actplane/actplane/policy/ir"
)

// run is an exec of a program, or of a script and its interpreter: "scripts (both the
// script and its interpreter)". argv[0] is the name invoked.
func (s *Scope) run(p *Process, op string, words []string) (*operation, error) {
	o := &operation{subject: p, exec: true, fails: op == "execfails"}
	programs := [][]string{words}
	if op == "execscript" {
		script := append([]string{words[0]}, words[2:]...)
		programs = [][]string{script, append([]string{words[1]}, script...)}
	}
	var places []place
	var script *event
	for _, argv := range programs {
		x := s.files.at(argv[0], true)
		if err := x.isFile(); err != nil {
			return nil, err
		}
		places = append(places, x)
		e := x.event(ir.Exec)
		e.invoked, e.argv = path.Base(argv[0]), argv
		e.in = e.file.labels | s.sources(e)
		if script != nil {
			script.interpreter, e.byLink = e, x.links > 0
		}
		script = e
		if !outside(x.name) {
			o.events = append(o.events, e)
		}
	}
	o.effect = func() {
		for _, x := range places {
			x.put()
			x.file.kind = regular
		}
		p.setup, p.image, p.pending = false, image{}, nil
		s.detach(p, false)
		s.touch(p) // which may gain again what its last program cleared
		for _, e := range o.events {
			s.gain(p, e.in)
		}
	}
	return o, nil
}

// load is the code of a program that is mapped, by a loader or as a library.
func (s *Scope) load(p *Process, object string) (*operation, error) {
	x := s.files.at(object, true)
	if err := x.isFile(); err != nil {
		return nil, err
	}
	if err := s.mappable(1); err != nil {
		return nil, err
	}
	e := x.event(ir.Exec)
	e.mapped = true // by what name it was opened, nobody knows any more
	return &operation{subject: p, events: []*event{e}, effect: func() {
		if e.file.modified {
			s.tamper(p)
		}
		s.attach(p, mapping{file: x.file, private: true})
	}}, nil
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
