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
		unused: map[string]*file{},
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
	if t.names[name] != nil || t.links[name] != "" {
		return true
	}
	return !above(name, func(n string) bool { return t.gone[n] })
}

// at returns the file of a resolved path. One that was not used exists, and has
// its inode from now on.
func (t *tree) at(name string) *file {
	f := t.find(name)
	if t.exists(name) {
		t.put(name, f)
	}
	return f
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

// put gives a file a name.
func (t *tree) put(name string, f *file) {
	t.names[name] = t.number(f)
	delete(t.unused, name)
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
	delete(t.names, name)
	delete(t.links, name)
	t.gone[name] = true
}

// used tells whether the trace has used a name, and it is still there.
func (t *tree) used(name string) bool { return t.names[name] != nil || t.links[name] != "" }

// parent tells whether a known name is under a directory.
func (t *tree) parent(dir string) bool {
	for name := range t.names {
		if name != dir && below(name, dir) {
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
	return f == nil || f.kind != regular || t.parent(name)
}

// move renames a name and all that is known below it.
func (t *tree) move(from, to string) {
	moved, links := map[string]*file{}, map[string]string{}
	for name, f := range t.names {
		if below(name, from) {
			f.named = true
			moved[to+name[len(from):]] = f
			delete(t.names, name)
		}
	}
	for name, target := range t.links {
		if below(name, from) {
			links[to+name[len(from):]] = target
			delete(t.links, name)
		}
	}
	maps.DeleteFunc(t.unused, func(name string, _ *file) bool { return below(name, from) || below(name, to) })
	relocate(t.gone, from, to)
	relocate(t.moved, from, to)
	t.gone[from], t.moved[to] = true, true
	for name, f := range moved {
		t.names[name] = f
	}
	for name, target := range links {
		t.links[name] = target
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
	delete(t.gone, a)
	delete(t.gone, b)
	delete(t.gone, aside)
	delete(t.moved, aside)
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

// What of the container's files is not the policy's business.
const (
	engineFolder = "/run/actplane"
	cgroupFolder = "/sys/fs/cgroup"
)

// outside tells whether a path is one of "the scope's own feedback socket, the guest
// binary" and so "outside the rules": "a rule can't cut the agent off from its
// reasons".
func outside(name string) bool {
	return name == engineFolder+"/feedback.sock" || name == engineFolder+"/bin/actplane-guest"
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
