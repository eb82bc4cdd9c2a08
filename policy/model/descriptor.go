// SPDX-License-Identifier: Apache-2.0

package model

import (
	"maps"
	"slices"

	"github.com/actplane/actplane/policy/ir"
)

// descriptor is an open file. "Through a descriptor a file keeps the path by which
// it was opened", whatever its names are by now.
type descriptor struct {
	file     *file
	path     string
	resolved bool
	ops      []ir.Op // what it was opened for: read, write or append
}

// openAs opens a file under the name of a descriptor, for r, w, a or rw.
func (s *Scope) openAs(p *Process, name, mode, object string) (*operation, error) {
	path, ok := s.files.resolve(object, true)
	exists := s.files.exists(path)
	if !exists && mode == "r" {
		return nil, stepErrorf("%s does not exist any more", path)
	}
	d := descriptor{file: s.files.find(path), path: path, resolved: ok}
	d.ops = map[string][]ir.Op{"r": {ir.Read}, "w": {ir.Write}, "a": {ir.Append}, "rw": {ir.Read, ir.Write}}[mode]
	ops := append([]ir.Op{ir.Open}, d.ops...)
	if mode == "a" && !exists {
		ops = []ir.Op{ir.Open, ir.Write}
	}
	o := s.use(p, ops, path, d.file, ok)
	o.effect = func() {
		s.files.put(path, d.file)
		d.file.kind = regular
		p.open = with(p.open, name, d)
	}
	return o, nil
}

// through is "reading through an inherited or received descriptor" or one's own,
// and "writing through any descriptor": decided again each time, as sends are.
// "Plain writes through" one that appends are appends.
func (s *Scope) through(p *Process, op, name string) (*operation, error) {
	d, ok := p.open[name]
	if !ok {
		return nil, stepErrorf("%s has no descriptor %s", p.Name, name)
	}
	for _, has := range d.ops {
		if (has == ir.Read) == (op == "fdread") {
			return s.use(p, []ir.Op{has}, d.path, d.file, d.resolved), nil
		}
	}
	return nil, stepErrorf("the descriptor %s was not opened for that", name)
}

// pass sends a descriptor through a Unix socket, which carries the sender's labels.
func (s *Scope) pass(p *Process, name string, q *Process) error {
	d, ok := p.open[name]
	if !ok {
		return stepErrorf("%s has no descriptor %s", p.Name, name)
	}
	s.gain(q, s.carried(p))
	q.open = with(q.open, name, descriptor{d.file, d.path, d.resolved, slices.Clone(d.ops)})
	s.settle()
	return nil
}

// with is a map with one more entry; the old one stays as it is.
func with[V any](m map[string]V, key string, value V) map[string]V {
	m = maps.Clone(m)
	if m == nil {
		m = map[string]V{}
	}
	m[key] = value
	return m
}
