// SPDX-License-Identifier: Apache-2.0

package model

import (
	"maps"
	"math/rand/v2"
	"path"
	"strings"
	"testing"

	"github.com/actplane/actplane/internal/testenv"
)

// plainTree is the tree of names as maps of whole paths, in which each step looks at all
// of them.
type plainTree struct {
	names, unused map[string]*file
	links         map[string]string
	gone, moved   map[string]bool
	labels        uint64
	lost          bool
}

func above(name string, f func(string) bool) bool {
	for ; name != "/"; name = path.Dir(name) {
		if f(name) {
			return true
		}
	}
	return f("/")
}

func (t *plainTree) inFile(name string) bool {
	return name != "/" && above(path.Dir(name), func(n string) bool {
		return t.links[n] == "" && t.names[n] != nil && t.names[n].kind == regular
	})
}

func (t *plainTree) used(name string) bool { return t.names[name] != nil || t.links[name] != "" }

func (t *plainTree) exists(name string) bool {
	return !t.inFile(name) && (t.used(name) || !above(name, func(n string) bool { return t.gone[n] }))
}

func (t *plainTree) parent(dir string) bool {
	for _, names := range []map[string]bool{keys(t.names), keys(t.links)} {
		for name := range names {
			if name != dir && below(name, dir) {
				return true
			}
		}
	}
	return false
}

func keys[V any](m map[string]V) map[string]bool {
	out := map[string]bool{}
	for k := range m {
		out[k] = true
	}
	return out
}

func (t *plainTree) find(name string) *file {
	if f := t.names[name]; f != nil {
		return f
	}
	if !t.exists(name) {
		return &file{}
	}
	if t.unused[name] == nil {
		t.unused[name] = &file{labels: t.labels, modified: t.lost, named: above(name, func(n string) bool { return t.moved[n] })}
	}
	return t.unused[name]
}

func (t *plainTree) saturate(labels uint64) {
	t.labels, t.lost = labels, true
	clear(t.unused)
	for _, f := range t.names {
		f.labels, f.modified = f.labels|labels, true
	}
}

func (t *plainTree) remove(name string) {
	delete(t.names, name)
	delete(t.links, name)
	t.gone[name] = true
}

func (t *plainTree) move(from, to string) {
	for _, f := range relocate(t.names, from, to) {
		f.named = true
	}
	relocate(t.links, from, to)
	relocate(t.gone, from, to)
	relocate(t.moved, from, to)
	maps.DeleteFunc(t.unused, func(name string, _ *file) bool { return below(name, from) || below(name, to) })
	t.moved[to] = true
}

// relocate moves what is below a directory, over what was there, and returns it.
func relocate[V any](m map[string]V, from, to string) map[string]V {
	moved := map[string]V{}
	for name, v := range m {
		if below(name, from) {
			moved[to+name[len(from):]] = v
		}
	}
	maps.DeleteFunc(m, func(name string, _ V) bool { return below(name, from) || below(name, to) })
	maps.Copy(m, moved)
	return moved
}

// TestTreeOfNames compares the tree with one that looks at all names, over random steps.
func TestTreeOfNames(t *testing.T) {
	seed := testenv.Seed(t)
	for round := range 300 {
		r := rand.New(rand.NewPCG(seed, uint64(round)))
		name := func() (out string) {
			for range 1 + r.IntN(4) {
				out += "/" + string("abc"[r.IntN(3)])
			}
			return out
		}
		tree := newTree()
		plain := &plainTree{names: map[string]*file{}, unused: map[string]*file{}, links: map[string]string{}, gone: map[string]bool{}, moved: map[string]bool{}}
		same := map[*file]*file{} // of the tree's files, those of the plain one
		var log []string
		for range 60 {
			a, b := name(), name()
			var step string
			switch kind := r.IntN(12); {
			case kind < 4:
				step = "use " + a
				f, g := tree.find(a), plain.find(a)
				f.kind, g.kind = fileKind(kind%3), fileKind(kind%3)
				f.labels, g.labels = f.labels|1<<kind, g.labels|1<<kind
				tree.give(a, tree.number(f))
				plain.names[a] = g
				delete(plain.unused, a)
			case kind == 4 && tree.target(a) == "" && plain.used(b):
				step = "link " + b + " " + a
				f, g := tree.find(b), plain.find(b)
				f.linked, f.named, g.linked, g.named = true, true, true, true
				tree.give(a, tree.number(f))
				plain.names[a] = g
				delete(plain.unused, a)
			case kind == 5:
				step = "symlink " + b + " " + a
				tree.link(a, b)
				plain.links[a] = b
			case kind == 6:
				step = "remove " + a
				tree.remove(a)
				plain.remove(a)
			case kind == 7 && !below(a, b) && !below(b, a) && !plain.parent(b):
				step = "rename " + a + " " + b
				tree.remove(b)
				plain.remove(b)
				tree.rename(a, b)
				plain.move(a, b)
				plain.gone[a] = true
			case kind == 8 && !below(a, b) && !below(b, a):
				step = "exchange " + a + " " + b
				tree.exchange(a, b)
				plain.move(a, "/\x00")
				plain.move(b, a)
				plain.move("/\x00", b)
				delete(plain.moved, "/\x00")
			case kind == 9:
				step = "made " + a
				tree.make(a).gone = true
				plain.gone[a] = true
			case kind == 10 && r.IntN(10) == 0:
				step = "lost"
				tree.saturate(1 << 10)
				plain.saturate(1 << 10)
			}
			if step == "" {
				continue
			}
			log = append(log, step)
			for range 5 {
				n := name()
				if tree.exists(n) != plain.exists(n) || tree.used(n) != plain.used(n) || tree.inFile(n) != plain.inFile(n) || tree.parent(n) != plain.parent(n) || tree.target(n) != plain.links[n] {
					t.Fatalf("round %d: %s\n%s", round, n, strings.Join(log, "\n"))
				}
				f, g := tree.find(n), plain.find(n)
				if f.labels != g.labels || f.modified != g.modified || f.named != g.named || f.linked != g.linked || f.kind != g.kind {
					t.Fatalf("round %d: %s is %+v, and not %+v\n%s", round, n, f, g, strings.Join(log, "\n"))
				}
				if plain.exists(n) {
					if same[f] == nil {
						same[f] = g
					}
					if same[f] != g {
						t.Fatalf("round %d: %s is another file\n%s", round, n, strings.Join(log, "\n"))
					}
				}
			}
		}
		counted(t, strings.Join(log, "\n"), tree.root)
	}
}
