// SPDX-License-Identifier: Apache-2.0

package model

import (
	"path"
	"slices"
	"strings"
)

// file is an inode: "never a path string". Its labels and its modified mark stay
// with it under whatever names it has.
type file struct {
	labels   uint64
	modified bool // its contents were written inside the scope
	unclear  bool // or perhaps: what was known of it is lost
	named    bool // it got a name inside the scope
	linked   bool // it got a second one
	writes   int  // how often it was opened to write inside the scope
	kind     fileKind
	number   int // 0: it does not exist yet
	names    []*node
	shared   map[*Process]int // who has mapped it, how often
	lost     int              // when it was last counted as one of which all was lost
}

type fileKind uint8

// What a trace has shown a file to be.
const (
	unknown fileKind = iota
	regular
	directory
)

// tree has the names of files. A name that a trace has not used exists, made from
// outside the scope. It is a tree of names, so that a step takes as long as its paths
// are, however many names there are.
type tree struct {
	root  *node
	count int // inodes
	now   int // counts what happens to many names at once
	// Of files that the trace has not named: what they count as when it was lost
	// what was known of them.
	lost     int // when, 0 if it was not
	labels   uint64
	modified bool
}

// node is one name in its directory.
type node struct {
	parent   *node
	name     string
	children map[string]*node
	file     *file  // that the trace has used by this name
	link     string // the target, as written, of a symbolic link
	gone     bool   // it went away, and all below it
	moved    int    // when it was given inside, with all below it; 0 if it was not
	given    int    // when the file was
	inside   int    // how many names below it the trace has used
	// unused is the file of a name that exists and that nothing has happened to, since
	// it was found.
	unused *file
	found  int
}

func newTree() *tree { return &tree{root: &node{}} }

// path is the name with all directories above it.
func (n *node) path() string {
	var names []string
	for ; n.parent != nil; n = n.parent {
		names = append(names, n.name)
	}
	slices.Reverse(names)
	return "/" + strings.Join(names, "/")
}

// uses counts what the trace has used of this name itself.
func (n *node) uses() (count int) {
	if n.file != nil {
		count++
	}
	if n.link != "" {
		count++
	}
	return count
}

// count changes how many names are below all directories above a name.
func (n *node) count(by int) {
	for n = n.parent; n != nil && by != 0; n = n.parent {
		n.inside += by
	}
}

// components are the names in a clean absolute path.
func components(name string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for rest := strings.TrimPrefix(name, "/"); rest != ""; {
			var next string
			if next, rest, _ = strings.Cut(rest, "/"); !yield(next) {
				return
			}
		}
	}
}

// sight is what is known of a name and what is above it.
type sight struct {
	node   *node // nil if nothing is known of the name itself
	gone   bool  // it, or a directory above it, went away
	inFile bool  // something above it is known to be no directory
	moved  int   // when it last got another path, with a directory or alone; 0 if never
}

func (t *tree) look(name string) sight {
	x := sight{node: t.root, gone: t.root.gone}
	for part := range components(name) {
		n := x.node
		x.inFile = x.inFile || n.link == "" && n.file != nil && n.file.kind == regular
		if x.node = n.children[part]; x.node == nil {
			return x
		}
		x.gone, x.moved = x.gone || x.node.gone, max(x.moved, x.node.moved)
	}
	return x
}

// make returns the node of a name.
func (t *tree) make(name string) *node {
	n := t.root
	for part := range components(name) {
		next := n.children[part]
		if next == nil {
			next = &node{parent: n, name: strings.Clone(part)}
			if n.children == nil {
				n.children = map[string]*node{}
			}
			n.children[part] = next
		}
		n = next
	}
	return n
}

// below tells whether a name is a directory or in it.
func below(name, dir string) bool {
	dir = strings.TrimSuffix(dir, "/")
	return strings.HasPrefix(name, dir) && (len(name) == len(dir) || name[len(dir)] == '/')
}

// exists tells whether a name does.
func (t *tree) exists(name string) bool { return t.look(name).exists() }

func (x sight) exists() bool {
	return !x.inFile && (x.node != nil && x.node.uses() > 0 || !x.gone)
}

// inFile tells whether something above a name is known to be no directory.
func (t *tree) inFile(name string) bool { return t.look(name).inFile }

// find returns the file of a resolved path, a new one if there is none: "a denied
// create leaves no empty file".
func (t *tree) find(name string) *file {
	x := t.look(name)
	if x.node != nil && x.node.file != nil {
		f := x.node.file
		f.named = f.named || x.moved > x.node.given
		t.forgotten(f)
		return f
	}
	if !x.exists() {
		return t.fresh()
	}
	n := t.make(name)
	if n.unused == nil || n.found < max(x.moved, t.lost) { // from outside, with what is not known of it
		n.unused = t.number(&file{labels: t.labels, modified: t.modified, unclear: t.modified, named: x.moved > 0, lost: t.lost})
		n.found = t.now
	}
	return n.unused
}

// fresh is a file that does not exist yet.
func (t *tree) fresh() *file { return &file{lost: t.lost} }

// number gives a file its inode.
func (t *tree) number(f *file) *file {
	if f.number == 0 {
		t.count++
		f.number = t.count
	}
	return f
}

// saturate makes all files count as modified and as carrying labels.
func (t *tree) saturate(labels uint64) {
	t.now++
	t.labels, t.modified, t.lost = labels, true, t.now
}

// forgotten is saturate, for a file that is named again.
func (t *tree) forgotten(f *file) {
	if f.lost < t.lost {
		f.labels, f.modified, f.unclear, f.lost = f.labels|t.labels, true, true, t.lost
	}
}

func (t *tree) remove(name string) {
	t.forget(name)
	t.make(name).gone = true
}

// used tells whether the trace has used a name, and it is still there.
func (t *tree) used(name string) bool {
	n := t.look(name).node
	return n != nil && n.uses() > 0
}

// target is where the symbolic link of a name leads, "" if it is no link.
func (t *tree) target(name string) string {
	if n := t.look(name).node; n != nil {
		return n.link
	}
	return ""
}

// give gives a file a name, and link a symbolic link one with its target.
func (t *tree) give(name string, f *file) {
	n := t.make(name)
	if n.unused = nil; n.file == f {
		return
	}
	n.dropFile()
	n.file, n.given = f, t.now
	f.names = append(f.names, n)
	n.count(1)
}

func (t *tree) link(name, target string) *node {
	n := t.make(name)
	if n.link == "" {
		n.count(1)
	}
	n.link = target
	return n
}

// forget takes a name from whatever has it.
func (t *tree) forget(name string) {
	n := t.look(name).node
	if n == nil {
		return
	}
	n.dropFile()
	if n.link != "" {
		n.link = ""
		n.count(-1)
	}
}

func (n *node) dropFile() {
	if f := n.file; f != nil {
		f.names = slices.DeleteFunc(f.names, func(x *node) bool { return x == n })
		n.file = nil
		n.count(-1)
	}
}

// parent tells whether a name that was used is under a directory.
func (t *tree) parent(dir string) bool {
	n := t.look(dir).node
	return n != nil && n.inside > 0
}

// isDirectory tells whether moving a name may move names below it. What a trace
// has not shown to be a file can be a directory.
func (t *tree) isDirectory(name string) bool {
	n := t.look(name).node
	return n == nil || n.link == "" && (n.file == nil || n.file.kind != regular || n.inside > 0)
}

// rename gives a name and all that is known below it another one.
func (t *tree) rename(from, to string) {
	moved := t.detach(from)
	t.attach(moved, to)
	t.make(from).gone = true
}

// exchange swaps two names and all that is known below them.
func (t *tree) exchange(a, b string) {
	x, y := t.detach(a), t.detach(b)
	t.attach(x, b)
	t.attach(y, a)
}

// detach takes a name, with all below it, out of the tree.
func (t *tree) detach(name string) *node {
	n := t.make(name)
	n.count(-n.uses() - n.inside)
	delete(n.parent.children, n.name)
	return n
}

// attach puts what was detached in the place of a name, and of all below it.
func (t *tree) attach(n *node, name string) {
	old := t.detach(name)
	n.parent, n.name = old.parent, old.name
	if n.parent.children == nil {
		n.parent.children = map[string]*node{}
	}
	n.parent.children[n.name] = n
	n.count(n.uses() + n.inside)
	t.now++
	n.moved = t.now
}

// resolve makes a path absolute and follows symbolic links; the last component
// only where follow says so. ok is false for "a path that cannot be resolved or
// is longer than the engine's buffer".
func (t *tree) resolve(name string, follow bool) (resolved string, ok bool) {
	resolved, _, ok = t.walk(name, follow)
	return resolved, ok
}

// walk is resolve, and tells how many symbolic links it followed. Of those that a case
// has, each was made inside.
func (t *tree) walk(name string, follow bool) (resolved string, links int, ok bool) {
	const maxPath, maxLinks = 4096, 40
	var done []string
	at := []*node{t.root} // of the directories above and of done; nil where nothing is known
	rest := strings.Split(name, "/")
	slices.Reverse(rest)
	for len(rest) > 0 {
		part := rest[len(rest)-1]
		rest = rest[:len(rest)-1]
		switch part {
		case "", ".":
			continue
		case "..":
			if len(done) > 0 {
				done, at = done[:len(done)-1], at[:len(at)-1]
			}
			continue
		}
		var next *node
		if dir := at[len(at)-1]; dir != nil {
			next = dir.children[part]
		}
		if next == nil || next.link == "" || len(rest) == 0 && !follow {
			done, at = append(done, part), append(at, next)
			continue
		}
		if links++; links > maxLinks {
			return path.Clean(name), links, false
		}
		if next.link[0] == '/' {
			done, at = nil, at[:1]
		}
		target := strings.Split(next.link, "/")
		slices.Reverse(target)
		rest = append(rest, target...)
	}
	resolved = "/" + strings.Join(done, "/")
	return resolved, links, len(resolved) < maxPath
}
