// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"math/rand/v2"
	"path"
	"strconv"
	"strings"
	"testing"

	"github.com/actplane/actplane/policy/dfa"
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/model"
)

// accepts runs a grammar over a key.
func accepts(g grammar, key string) (kind model.SpecialKind, ok bool) {
	state := g.start()
	for i := range len(key) {
		if state, ok = g.step(state, key[i]); !ok {
			return kind, false
		}
	}
	return g.end(state)
}

// Paths are the clean absolute ones, and of the kind that the model says.
func TestPaths(t *testing.T) {
	g := newPaths()
	parts := []string{"/", "/", "/", "a", ".", "..", "dev", "null", "pts", "run", "actplane", "feedback.sock", "bin", "actplane-guest", "sys", "fs", "cgroup", "\x80", "tty"}
	for _, s := range model.Specials() {
		parts = append(parts, s.Path)
	}
	r := rand.New(rand.NewPCG(1, 2))
	special, valid := 0, 0
	for range 20_000 {
		var key string
		for range 1 + r.IntN(8) {
			key += parts[r.IntN(len(parts))]
		}
		kind, ok := accepts(g, key)
		if want := key[0] == '/' && path.Clean(key) == key; ok != want {
			t.Fatalf("%q is a path: %v", key, ok)
		}
		if !ok {
			continue
		}
		valid++
		if want := model.SpecialOf(key); kind != want {
			t.Fatalf("%q is of kind %d, want %d", key, kind, want)
		} else if want != model.Ordinary {
			special++
		}
	}
	if valid < 1000 || special < 100 {
		t.Errorf("%d paths, %d special ones", valid, special)
	}
	if _, ok := accepts(g, "/a\x00"); ok {
		t.Error("a path with NUL")
	}
}

func TestSockets(t *testing.T) {
	g := sockets{newPaths()}
	for key, want := range map[string]bool{"@": true, "@a/..": true, "@\x00": false, "/run/x": true, "/run/": false, "x": false, "": false} {
		if _, ok := accepts(g, key); ok != want {
			t.Errorf("%q is a socket: %v", key, ok)
		}
	}
	if kind, _ := accepts(g, "/run/actplane/feedback.sock"); kind != model.Exempt {
		t.Error("the feedback socket is like others")
	}
}

// Hosts have a port from 1 to 65535 without zeros before it.
func TestHosts(t *testing.T) {
	g := hosts{readable()}
	for port := range 70_000 {
		if _, ok := accepts(g, fmt.Sprintf("a.example.com:%d", port)); ok != (port >= 1 && port <= 65535) {
			t.Fatalf("port %d: %v", port, ok)
		}
	}
	for key, want := range map[string]bool{"a:080": false, "a:": false, "a": false, ":1": false, "A:1": false, ".a:1": false, "a-b_c.d:1": true, "a:655350": false} {
		if _, ok := accepts(g, key); ok != want {
			t.Errorf("%q is a host: %v", key, ok)
		}
	}
}

func TestNames(t *testing.T) {
	g := names{readable()}
	for key, want := range map[string]bool{"": false, ".": false, "..": false, "...": true, ".a": true, "a/b": false, "a\x00": false, "git": true} {
		if _, ok := accepts(g, key); ok != want {
			t.Errorf("%q is a name: %v", key, ok)
		}
	}
}

func TestTuples(t *testing.T) {
	s := tuples{width: 3}
	want := map[string]int{}
	r := rand.New(rand.NewPCG(3, 4))
	for range 10_000 {
		tuple := []uint16{uint16(r.IntN(20)), uint16(r.IntN(20)), uint16(r.IntN(20))}
		key := fmt.Sprint(tuple)
		_, known := want[key]
		if s.add(tuple) == known {
			t.Fatalf("%s is new: %v", key, !known)
		}
		if !known {
			want[key] = len(want)
		}
		if got := fmt.Sprint(s.at(want[key])); got != key {
			t.Fatalf("number %d is %s, want %s", want[key], got, key)
		}
	}
}

// patterns makes a policy of one clause for each pattern.
func patterns(t *testing.T, globs ...string) Policy {
	t.Helper()
	p := &ir.Program{Workspace: "/", Layers: []ir.Layer{{}}, Rules: []ir.Rule{{Name: "r"}}}
	for _, g := range globs {
		p.Clauses = append(p.Clauses, ir.Clause{Effect: ir.Block, Op: ir.Read, Pattern: ir.Pattern{Text: g}, Pos: "p:1:1", Text: g})
	}
	img, err := dfa.Compile(p)
	if err != nil {
		t.Fatal(err)
	}
	return Policy{p, img}
}

// A walk that is given up says so, and one that is not finds each place once.
func TestWalkLimit(t *testing.T) {
	a, b := patterns(t, "/a/**", "/b/*"), patterns(t, "/a/*", "/b/**")
	images := [2]*dfa.Image{a.Image, b.Image}
	if w, complete := walk(images, dfa.Path, newPaths(), "/w", 10, &budget{searchSteps}); complete || len(w.places) == 0 {
		t.Errorf("complete %v with %d places", complete, len(w.places))
	}
	w, complete := walk(images, dfa.Path, newPaths(), "/w", maxTuples, &budget{searchSteps})
	if !complete {
		t.Error("it is not complete")
	}
	for i := range w.places {
		for j := range i {
			if w.same(w.places[i].key, w.places[j].key) {
				t.Errorf("%q and %q are one place", w.places[i].key, w.places[j].key)
			}
		}
	}
}

// What is given up is told, and ends soon: a condition that needs half of many labels.
func TestSolveLimit(t *testing.T) {
	var yes, no []predicate
	const n = 24
	for i := range n {
		for j := range i {
			no = append(no, predicate{tokens: -1, literals: []literal{{i, true}, {j, true}}}, predicate{tokens: -1, literals: []literal{{i, false}, {j, false}}})
		}
	}
	s := newSequences(&budget{searchSteps})
	if _, found, complete := s.solve(yes, no); found || !complete {
		// Of three labels two are there or two are not: found at once.
		t.Errorf("found %v, complete %v", found, complete)
	}
	s.work.left = 1
	if _, found, complete := s.solve(yes, no); found || complete {
		t.Errorf("without work left: found %v, complete %v", found, complete)
	}
}

func TestReadable(t *testing.T) {
	seen := map[byte]bool{}
	for _, b := range readable() {
		seen[b] = true
	}
	if len(seen) != 256 || len(readable()) != 256 {
		t.Errorf("%d bytes, %d of them different", len(readable()), len(seen))
	}
	if !strings.HasPrefix(string(readable()), "abc") || strconv.IsPrint(rune(readable()[255])) {
		t.Error("it begins or ends with others")
	}
}
