// SPDX-License-Identifier: Apache-2.0

package model

import (
	"maps"
	"path"
	"strings"
)

// file is an inode: "never a path string". Its labels and its modified mark stay
// with it under whatever names it has.
type file struct {
	labels   uint64
	modified bool // its contents were written inside the scope
	named    bool // it got a name inside the scope
	linked   bool // it got a second one
	kind     fileKind
	number   int // 0: it does not exist yet
}

type fileKind uint8

// What a trace has shown a file to be.
const (
	unknown fileKind = iota
	regular
	directory
)

// tree has the names of files. A name that a trace has not used exists, made from
// outside the scope.
type tree struct {
	names map[string]*file
	links map[string]string // symbolic links, as written
	gone  map[string]bool   // names that went away, and all below them
	moved map[string]bool   // names that were given inside, with all below them
	count int
	// inside counts the names below each directory that the trace has used.
	inside map[string]int
	// unused are the files of names that exist and that nothing has happened to.
	unused map[string]*file
	// Of files that the trace has not named: what they count as when it was lost
	// what was known of them.
	labels   uint64
	modified bool
}

func newTree() *tree {
	return &tree{
		names: map[string]*file{}, links: map[string]string{}, gone: map[string]bool{}, moved: map[string]bool{},
		unused: map[string]*file{}, inside: map[string]int{},
	}
}

// above calls f for a name and all directories above it, until f says so.
func above(name string, f func(string) bool) bool {
	for ; ; name = path.Dir(name) {
		if f(name) {
			return true
		}
		if name == "/" || name == "." {
			return false
		}
	}
}

// below tells whether a name is a directory or in it.
func below(name, dir string) bool {
	return name == dir || strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}

// exists tells whether a name does.
func (t *tree) exists(name string) bool {
	if t.inFile(name) {
		return false
	}
	if t.names[name] != nil || t.links[name] != "" {
		return true
	}
	return !above(name, func(n string) bool { return t.gone[n] })
}

// inFile tells whether something above a name is known to be no directory.
func (t *tree) inFile(name string) bool {
	return name != "/" && above(path.Dir(name), func(n string) bool {
		return t.links[n] == "" && t.names[n] != nil && t.names[n].kind == regular
	})
}

// find returns the file of a resolved path, a new one if there is none: "a denied
// create leaves no empty file".
func (t *tree) find(name string) *file {
	if f := t.names[name]; f != nil {
		return f
	}
	if !t.exists(name) {
		return &file{}
	}
	if t.unused[name] == nil { // from outside, with what is not known of it
		t.unused[name] = t.number(&file{
			labels: t.labels, modified: t.modified, named: above(name, func(n string) bool { return t.moved[n] }),
		})
	}
	return t.unused[name]
}

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
	t.labels, t.modified = labels, true
	clear(t.unused)
	for _, f := range t.names {
		f.labels, f.modified = f.labels|labels, true
	}
}

func (t *tree) remove(name string) {
	t.forget(name)
	t.gone[name] = true
}

// used tells whether the trace has used a name, and it is still there.
func (t *tree) used(name string) bool { return t.names[name] != nil || t.links[name] != "" }

// give gives a file a name, and link a symbolic link one with its target.
func (t *tree) give(name string, f *file) {
	if t.names[name] == nil {
		t.within(name, 1)
	}
	t.names[name] = f
}

func (t *tree) link(name, target string) {
	if t.links[name] == "" {
		t.within(name, 1)
	}
	t.links[name] = target
}

// forget takes a name from whatever has it.
func (t *tree) forget(name string) {
	if t.names[name] != nil {
		t.within(name, -1)
	}
	if t.links[name] != "" {
		t.within(name, -1)
	}
	delete(t.names, name)
	delete(t.links, name)
}

func (t *tree) within(name string, by int) {
	if name == "/" {
		return
	}
	above(path.Dir(name), func(dir string) bool {
		t.inside[dir] += by
		return false
	})
}

// parent tells whether a name that was used is under a directory.
func (t *tree) parent(dir string) bool { return t.inside[dir] > 0 }

// isDirectory tells whether moving a name may move names below it. What a trace
// has not shown to be a file can be a directory.
func (t *tree) isDirectory(name string) bool {
	if t.links[name] != "" {
		return false
	}
	f := t.names[name]
	return f == nil || f.kind != regular || t.parent(name)
}

// rename gives a name and all that is known below it another one.
func (t *tree) rename(from, to string) {
	t.move(from, to)
	t.gone[from] = true
}

// move is a rename after which the old name is still to be thought of.
func (t *tree) move(from, to string) {
	moved, links := map[string]*file{}, map[string]string{}
	for name, f := range t.names {
		if below(name, from) {
			f.named = true
			moved[to+name[len(from):]] = f
		}
	}
	for name, target := range t.links {
		if below(name, from) {
			links[to+name[len(from):]] = target
		}
	}
	for name := range t.names {
		if below(name, from) {
			t.forget(name)
		}
	}
	for name := range t.links {
		if below(name, from) {
			t.forget(name)
		}
	}
	maps.DeleteFunc(t.unused, func(name string, _ *file) bool { return below(name, from) || below(name, to) })
	relocate(t.gone, from, to)
	relocate(t.moved, from, to)
	t.moved[to] = true
	for name, f := range moved {
		t.give(name, f)
	}
	for name, target := range links {
		t.link(name, target)
	}
}

// relocate moves what is marked below a directory, over what was marked there.
func relocate(marks map[string]bool, from, to string) {
	for name := range marks {
		if below(name, to) {
			delete(marks, name)
		}
	}
	for name := range maps.Clone(marks) {
		if below(name, from) {
			delete(marks, name)
			marks[to+name[len(from):]] = true
		}
	}
}

// exchange swaps two names and all that is known below them.
func (t *tree) exchange(a, b string) {
	const aside = "\x00"
	t.move(a, aside)
	t.move(b, a)
	t.move(aside, b)
	delete(t.moved, aside)
}

// resolve makes a path absolute and follows symbolic links; the last component
// only where follow says so. ok is false for "a path that cannot be resolved or
// is longer than the engine's buffer".
func (t *tree) resolve(name string, follow bool) (resolved string, ok bool) {
	const maxPath, maxLinks = 4096, 40
	done, rest := "/", strings.Split(name, "/")
	for followed := 0; len(rest) > 0; {
		next := path.Join(done, rest[0]) // the parent of what was resolved, for ..
		rest = rest[1:]
		target := t.links[next]
		if target == "" || len(rest) == 0 && !follow {
			done = next
			continue
		}
		if followed++; followed > maxLinks {
			return path.Clean(name), false
		}
		if target[0] == '/' {
			done = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return done, len(done) < maxPath
}
