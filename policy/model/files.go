// SPDX-License-Identifier: Apache-2.0

package model

import (
	"path"
	"strings"
)

// file is an inode: "never a path string". Its labels and its modified mark stay
// with it under whatever names it has.
type file struct {
	labels   uint64
	modified bool // its contents were written inside the scope
	kind     fileKind
	number   int
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
	count int
}

func newTree() *tree {
	return &tree{names: map[string]*file{}, links: map[string]string{}, gone: map[string]bool{}}
}

// exists tells whether a name does.
func (t *tree) exists(name string) bool {
	if t.names[name] != nil || t.links[name] != "" {
		return true
	}
	for n := name; ; n = path.Dir(n) {
		if t.gone[n] {
			return false
		}
		if n == "/" || n == "." {
			return true
		}
	}
}

// at returns the file of a resolved path. One that was not used exists, and has
// its inode from now on.
func (t *tree) at(name string) *file {
	f := t.find(name)
	if t.exists(name) {
		t.names[name] = f
	}
	return f
}

// find returns the file of a resolved path, a new inode if there is none yet: "a
// denied create leaves no empty file".
func (t *tree) find(name string) *file {
	if f := t.names[name]; f != nil {
		return f
	}
	t.count++
	return &file{number: t.count}
}

func (t *tree) remove(name string) {
	delete(t.names, name)
	delete(t.links, name)
	t.gone[name] = true
}

// used tells whether the trace has used a name, and it is still there.
func (t *tree) used(name string) bool { return t.names[name] != nil || t.links[name] != "" }

// below tells whether a known name is under a directory.
func (t *tree) below(dir string) bool {
	for name := range t.names {
		if strings.HasPrefix(name, dir+"/") {
			return true
		}
	}
	return false
}

// isDirectory tells whether moving a name may move names below it. What a trace
// has not shown to be a file can be a directory.
func (t *tree) isDirectory(name string) bool {
	if t.links[name] != "" {
		return false
	}
	f := t.names[name]
	return f == nil || f.kind != regular || t.below(name)
}

// move renames a name and all that is known below it.
func (t *tree) move(from, to string) {
	moved, links := map[string]*file{}, map[string]string{}
	for name, f := range t.names {
		if name == from || strings.HasPrefix(name, from+"/") {
			moved[to+name[len(from):]] = f
			delete(t.names, name)
		}
	}
	for name, target := range t.links {
		if name == from || strings.HasPrefix(name, from+"/") {
			links[to+name[len(from):]] = target
			delete(t.links, name)
		}
	}
	t.gone[from] = true
	for name, f := range moved {
		t.names[name] = f
	}
	for name, target := range links {
		t.links[name] = target
	}
}

// exchange swaps two names and all that is known below them.
func (t *tree) exchange(a, b string) {
	const aside = "\x00"
	t.move(a, aside)
	t.move(b, a)
	t.move(aside, b)
	delete(t.gone, a)
	delete(t.gone, b)
	delete(t.gone, aside)
}

// resolve makes a path absolute and follows symbolic links; the last component
// only where follow says so. ok is false for "a path that cannot be resolved or
// is longer than the engine's buffer".
func (t *tree) resolve(name string, follow bool) (resolved string, ok bool) {
	const maxPath, maxLinks = 4096, 40
	rest, done := path.Clean(name), "/"
	for followed := 0; rest != "" && rest != "/"; {
		first, after, more := strings.Cut(strings.TrimPrefix(rest, "/"), "/")
		next := path.Join(done, first)
		rest = after
		target := t.links[next]
		if target == "" || !more && !follow {
			done = next
			continue
		}
		if followed++; followed > maxLinks {
			return name, false
		}
		if target[0] == '/' {
			done = "/"
		}
		rest = path.Join(target, after)
	}
	return done, len(done) < maxPath
}

// device tells whether a path is "no object of file rules unless a pattern names
// the device literally"; carries, whether labels flow through it.
func device(name string) (is, carries bool) {
	switch name {
	case "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom":
		return true, false
	case "/dev/tty", "/dev/console", "/dev/ptmx":
		return true, true
	}
	return strings.HasPrefix(name, "/dev/pts/"), true
}
