// SPDX-License-Identifier: Apache-2.0

package model

import "github.com/actplane/actplane/policy/ir"

// place is what a path leads to.
type place struct {
	name  string // absolute, symbolic links resolved
	file  *file
	known bool // else the path cannot be resolved, and the file may be any
	tree  *tree
	links int // that led there
}

// at finds what a path leads to; what a symbolic link in its last component leads
// to if follow says so.
func (t *tree) at(path string, follow bool) place {
	name, links, ok := t.walk(path, follow)
	if !ok { // each time another file, for all that is known: no grant holds for it
		return place{name, t.number(t.fresh()), false, t, links}
	}
	return place{name, t.find(name), true, t, links}
}

func (x place) event(op ir.Op) *event {
	return &event{op: op, path: x.name, file: x.file, unresolved: !x.known}
}

// isThere says why there is nothing at a place, nil if there is.
func (x place) isThere() error {
	if x.known && !x.tree.exists(x.name) {
		return stepErrorf("%s does not exist any more", x.name)
	}
	return nil
}

// isFile says why there is no file, nil if there is, or may be.
func (x place) isFile() error {
	if err := x.isThere(); err != nil {
		return err
	}
	return x.canBeFile()
}

// canBeFile says why there is none and none can be made.
func (x place) canBeFile() error {
	switch {
	case !x.known:
		return nil
	case x.tree.inFile(x.name):
		return stepErrorf("%s is in what is no directory", x.name)
	case x.name == "/" || x.tree.parent(x.name):
		return stepErrorf("%s is a directory that is not empty", x.name)
	}
	return nil
}

// isFree says why a name cannot be given, nil if it can.
func (x place) isFree() error {
	if x.known && x.tree.used(x.name) {
		return stepErrorf("%s exists already", x.name)
	}
	return x.canBeFile()
}

// put gives the file its name for good.
func (x place) put() {
	if x.known {
		x.tree.give(x.name, x.tree.number(x.file))
	}
}

// keep is put, unless the name is a symbolic link's.
func (x place) keep() {
	if x.tree.target(x.name) == "" {
		x.put()
	}
}
