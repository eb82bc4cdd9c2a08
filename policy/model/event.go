// SPDX-License-Identifier: Apache-2.0

package model

import (
	"path"
	"strings"

	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/pattern"
)

// event has one subject and one object: section 4.
type event struct {
	op   ir.Op
	path string // full: absolute, symbolic links resolved
	file *file  // nil for endpoints
	// invoked is the base name by which a program is run: it is tried as well as
	// the resolved one.
	invoked string
	argv    []string
	peer    *endpoint // nil for files
	// unresolved: the path "counts as matching every pattern of a block, ask or kill
	// clause of that operation, and no pattern of an allow".
	unresolved bool
	// moved and to are a directory that is renamed: the event stands for all that is
	// below it, and patterns that treat both places alike don't match.
	moved, to string
	beside    string // both names of a rename or link, and their files
	// used: what was opened is used, through a descriptor that is writable.
	used, writable bool
	// mapped: "a private executable mapping (ld.so /usr/bin/git)" of a program.
	mapped bool
	// interpreter is what runs it, if it is a script.
	interpreter *event
	// byLink: an interpreter to which a symbolic link led that was made inside.
	byLink bool
	in     uint64 // the labels that it would bring in
	text   string // what String returned
}

// names says by which names of a program a pattern is tried.
type names uint8

const (
	// either is for what denies, sources and what makes gates stale.
	either names = iota
	// resolved is for what only opens: allow, targets, gates, lineage, transforms;
	// for anyone can make a symbolic link.
	resolved
)

// named tells whether a pattern names the event's object.
func (e *event) named(p ir.Pattern, by names) bool {
	switch {
	case e.peer != nil:
		return p.Kind == ir.Endpoint && e.peer.matches(p)
	case p.Kind == ir.Endpoint:
		return false
	case e.unresolved:
		return by == either
	case e.moved != "":
		return by == either && language{patterns: []ir.Pattern{p}}.movedApart(e.moved, e.to)
	}
	if is, _ := device(e.path); is && e.op != ir.Exec {
		return !p.Any && namesLiterally(p.Text, e.path)
	}
	if p.Any {
		return true
	}
	if isName(p) {
		return Match(p.Text, path.Base(e.path), pattern.Name) || by == either && e.invokedAs(p)
	}
	return Match(p.Text, e.path, pattern.Path)
}

// alias returns another name of the event's file that a pattern names, "" if none does:
// "by any path, link or descriptor".
func (e *event) alias(p ir.Pattern) (name string) {
	if e.file == nil || !e.file.linked || e.unresolved || e.moved != "" {
		return ""
	}
	for _, n := range e.file.names {
		x := event{op: e.op, path: n.path(), file: e.file}
		if x.named(p, either) && (name == "" || x.path < name) {
			name = x.path
		}
	}
	return name
}

// isName tells whether a pattern is one of the base names of programs.
func isName(p ir.Pattern) bool {
	return p.Kind == ir.ExecProgram && !p.Any && !strings.Contains(p.Text, "/")
}

// invokedAs tells whether a pattern matches the name by which a program is run.
func (e *event) invokedAs(p ir.Pattern) bool {
	return isName(p) && e.invoked != "" && Match(p.Text, e.invoked, pattern.Name)
}

func namesLiterally(glob, name string) bool {
	for _, g := range expandGlob(glob) {
		if g == pattern.Literal(name) {
			return true
		}
	}
	return false
}

// argsMatch: "argv tokens, in this order, gaps allowed; globs". argv[0] is no
// token.
func (e *event) argsMatch(globs []string) bool {
	rest := e.argv
	if len(rest) > 0 {
		rest = rest[1:]
	}
	for _, glob := range globs {
		for {
			if len(rest) == 0 {
				return false
			}
			token := rest[0]
			rest = rest[1:]
			if Match(glob, token, pattern.Token) {
				break
			}
		}
	}
	return true
}

// sameOp tells whether the event is of the operation that a gate names. Gates know
// no append: a file that was appended to has been written.
func (e *event) sameOp(g ir.Event) bool {
	return g.Op == e.op || g.Op == ir.Write && e.op == ir.Append
}

// arms tells whether the event is what a gate waits for.
func (e *event) arms(g ir.Gate) bool {
	return e.sameOp(g.After) && e.named(g.After.Pattern, resolved) && e.argsMatch(g.After.Args)
}

// spoils tells whether the event makes a gate stale: one that cannot be resolved as
// any may, a directory that moves if it matters to all such patterns together.
func (e *event) spoils(g ir.Gate) bool {
	var l language
	for _, since := range g.Since {
		switch {
		case !e.sameOp(since):
		case e.moved != "":
			l.patterns = append(l.patterns, since.Pattern)
		case e.named(since.Pattern, either) && e.argsMatch(since.Args):
			return true
		}
	}
	return e.moved != "" && l.movedApart(e.moved, e.to)
}

// String is the event for people, which does not change any more: a policy of many
// clauses asks for it many times.
func (e *event) String() string {
	if e.text == "" {
		e.text = e.inWords()
	}
	return e.text
}

func (e *event) inWords() string {
	switch {
	case e.moved != "":
		return e.op.String() + " what is below " + e.moved + " (moved to " + e.to + ")"
	case e.mapped:
		return "mapping the program " + e.path
	case e.op == ir.Exec && len(e.argv) > 1:
		return "exec " + e.path + " " + WriteStep(e.argv[1:])
	}
	return e.op.String() + " " + e.object()
}

// object is what the event happens to, for people.
func (e *event) object() string {
	if e.peer != nil {
		return e.peer.key
	}
	return e.path
}

// pathSources are the labels of file sources that name a path.
func (s *Scope) pathSources(name string) (labels uint64) {
	e := event{op: ir.Read, path: name}
	for _, src := range s.program.Sources {
		if src.Pattern.Kind == ir.File && e.named(src.Pattern, either) {
			labels |= 1 << src.Label
		}
	}
	return labels
}

// sources are the labels that the event's object has by its name, and for an exec
// those of the program: "σ(f) ∪ exec sources of f".
func (s *Scope) sources(e *event) (labels uint64) {
	for _, src := range s.program.Sources {
		if (src.Pattern.Kind != ir.ExecProgram || e.op == ir.Exec) && e.named(src.Pattern, either) {
			labels |= 1 << src.Label
		}
	}
	return labels
}
