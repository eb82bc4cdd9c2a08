// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/actplane/actplane/policy/ir"
)

// Found is a file that a trace finds: "paths used before they are created exist,
// made from outside the scope".
type Found struct {
	Path string // where it is before the first step
	Use  Use
	// Interpreter is what a script names behind "#!".
	Interpreter string
}

// Use is what a trace needs a file to be.
type Use uint8

// A file that is used in more than one way has the greatest of its uses.
const (
	Directory Use = iota // or anything that has no contents of interest
	Regular
	Socket
	Program
	Script
)

// Outside lists, by path, the files that the trace of a case finds, and the
// directories that they and what the trace creates are in. It is for who acts out
// the case on a real file system. An error is a step that makes no sense.
func Outside(p *ir.Program, c *Case) ([]Found, error) {
	o := outsiders{scope: New(p), found: map[string]*Found{}, absent: map[string]bool{}}
	for _, step := range c.Steps {
		names := o.find(step.Words)
		d, err := o.scope.Do(step.Words)
		if err != nil {
			return nil, fmt.Errorf("line %d: %s: %w", step.Line, step.Text, err)
		}
		if !d.Denied() {
			o.happened(step.Words, names)
		}
	}
	list := make([]Found, 0, len(o.found))
	for _, f := range o.found {
		list = append(list, *f)
	}
	slices.SortFunc(list, func(a, b Found) int { return strings.Compare(a.Path, b.Path) })
	for i := range list {
		// "A directory if it is used as one", whatever else is done to it.
		if slices.ContainsFunc(list, func(f Found) bool { return f.Path != list[i].Path && below(f.Path, list[i].Path) }) {
			list[i].Use = Directory
		}
	}
	return list, nil
}

// outsiders finds out which files are from outside, and where they were.
type outsiders struct {
	scope   *Scope
	found   map[string]*Found
	absent  map[string]bool // what a step makes, or wants to make, before any other uses it
	changes []nameChange
}

// nameChange is a name, with all below it, that became another. Without from it
// was created, without to it went away. When it stays, it got another name.
type nameChange struct {
	from, to string
	stays    bool
}

// find notes the files that a step is about to use, and returns the names that its
// paths resolve to.
func (o *outsiders) find(words []string) (names []string) {
	if isHuman(words) || isTime(words) || isScope(words) {
		return nil
	}
	op, args := words[1], words[2:]
	for i, kind := range strings.TrimRight(signature(op), "*-") {
		use, last := Regular, true
		text := args[i]
		switch op {
		case "exec", "execfails", "mapexec", "execscript":
			use = Program
		case "unlink", "mkdir", "link", "symlink":
			last = false
		case "rename", "exchange", "rmdir":
			use, last = Directory, false
		case "chdir":
			use = Directory
		}
		if socket, ok := strings.CutPrefix(text, "unix:"); ok && kind == 'e' && path.IsAbs(socket) {
			text, kind, use = socket, 'p', Socket
		}
		if kind != 'p' {
			continue
		}
		name, ok := o.scope.files.resolve(text, last)
		if !ok {
			continue
		}
		names = append(names, name)
		// These make the name, or take one that may not be there.
		fresh := op == "mkdir" || op == "symlink" || op == "bind" || i == 1 && (op == "link" || op == "rename")
		switch {
		case fresh:
			o.lacks(name)
		case op == "execscript" && i == 0:
			o.note(name, Script).Interpreter = args[1]
		default:
			o.note(name, use)
		}
		o.note(path.Dir(name), Directory)
	}
	return names
}

// note takes down that a file is used by a name. What is not from outside is
// nobody's business.
func (o *outsiders) note(name string, use Use) *Found {
	origin, ok := o.origin(name)
	if !ok || o.absent[origin] {
		return &Found{}
	}
	f := o.found[origin]
	if f == nil {
		f = &Found{Path: origin}
		o.found[origin] = f
	}
	f.Use = max(f.Use, use)
	return f
}

// lacks takes down that a name is not there, unless it was used before.
func (o *outsiders) lacks(name string) {
	if origin, ok := o.origin(name); ok && o.found[origin] == nil {
		o.absent[origin] = true
	}
}

// origin is what a name was before all changes; false if there was nothing.
func (o *outsiders) origin(name string) (string, bool) {
	for _, c := range slices.Backward(o.changes) {
		switch {
		case c.to != "" && below(name, c.to):
			if c.from == "" {
				return "", false
			}
			name = path.Join(c.from, name[len(c.to):])
		case c.from != "" && !c.stays && below(name, c.from):
			return "", false
		}
	}
	return name, true
}

// happened notes what a step did to names.
func (o *outsiders) happened(words, names []string) {
	const aside = "\x00"
	two := words[1] == "link" || words[1] == "rename" || words[1] == "exchange"
	if len(names) == 0 || two && len(names) == 1 {
		return // a name that cannot be resolved: nobody knows what happens
	}
	switch words[1] {
	case "mkdir", "symlink", "bind":
		o.changes = append(o.changes, nameChange{to: names[0]})
	case "link":
		o.changes = append(o.changes, nameChange{from: names[0], to: names[1], stays: true})
	case "unlink", "rmdir":
		o.changes = append(o.changes, nameChange{from: names[0]})
	case "rename":
		o.changes = append(o.changes, nameChange{from: names[0], to: names[1]})
	case "exchange":
		o.changes = append(o.changes, nameChange{from: names[0], to: aside}, nameChange{from: names[1], to: names[0]}, nameChange{from: aside, to: names[1]})
	}
}
