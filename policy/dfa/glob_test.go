// SPDX-License-Identifier: Apache-2.0

package dfa

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/actplane/actplane/internal/testenv"
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/model"
	"github.com/actplane/actplane/policy/pattern"
)

var alphabet = []string{"a", "b", "/", "/", "*", "**", "?", "[ab]", "[!a]", "[^é]", "[é-ü]", "{a,b}", "{a/b,*}", "{,b}", "é", ".", `\*`, "/**", "**/", "/**/"}

func randomGlob(r *rand.Rand, n int) string {
	var b strings.Builder
	for range 1 + r.IntN(n) {
		b.WriteString(alphabet[r.IntN(len(alphabet))])
	}
	return b.String()
}

var keyParts = []string{"a", "b", "c", "/", "/", "é", "ü", ".", "*", "\x80", "\xc3", "\xff", "€", "ab", "/a", "/b"}

func randomKey(r *rand.Rand, n int) string {
	var b strings.Builder
	for range r.IntN(n) {
		b.WriteString(keyParts[r.IntN(len(keyParts))])
	}
	return b.String()
}

// TestAgainstNaive compares the automaton of several patterns with a matcher
// that tries everything.
func TestAgainstNaive(t *testing.T) {
	r := rand.New(rand.NewPCG(testenv.Seed(t), 0))
	matched := 0
	for range 400 {
		for _, mode := range []pattern.Mode{pattern.Path, pattern.Name, pattern.Token} {
			var globs []string
			for range 1 + r.IntN(5) {
				globs = append(globs, canonicalGlob(randomGlob(r, 6), mode))
			}
			globs = slices.DeleteFunc(globs, func(g string) bool { return g == "" })
			if len(globs) == 0 {
				continue
			}
			compare := compareWith(t, mode, globs)
			if compare == nil {
				continue
			}
			for range 60 {
				key := randomKey(r, 8)
				if mode == pattern.Path {
					key = "/" + key
				}
				if mode == pattern.Name {
					key = strings.ReplaceAll(key, "/", "")
				}
				matched += compare(key)
			}
		}
	}
	if matched < 1000 {
		t.Errorf("only %d matches: the keys try too little", matched)
	}
}

// canonicalGlob makes a glob valid for a mode, or "".
func canonicalGlob(glob string, mode pattern.Mode) string {
	var err error
	switch mode {
	case pattern.Path:
		glob, _, err = pattern.File(glob, "/")
	case pattern.Name:
		if strings.Contains(glob, "/") {
			return ""
		}
		glob, _, err = pattern.Exec(glob, "/")
	case pattern.Token:
		err = pattern.Arg(glob)
	}
	if err != nil {
		return ""
	}
	return glob
}

func patternsOf(kind ir.Kind, globs []string) (out []ir.Pattern) {
	for _, g := range globs {
		out = append(out, ir.Pattern{Kind: kind, Text: g})
	}
	return out
}

// TestAbsorb: of clauses of one rule that decide the same, the first that matches is the
// first of a key's row, also where the automaton passes over the others.
func TestAbsorb(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 0))
	passed := 0
	for range 2000 {
		var globs []string
		for range 2 + r.IntN(5) {
			tail := [...]string{"/**", "**", "", "/**"}[r.IntN(4)]
			if g := canonicalGlob("/**/"+randomGlob(r, 3)+tail, pattern.Path); g != "" && !slices.Contains(globs, g) {
				globs = append(globs, g)
			}
		}
		p := program(ir.Write, patternsOf(ir.File, globs)...)
		for i := range p.Clauses {
			p.Clauses[i].If = nil
		}
		img, err := Compile(p)
		if err != nil {
			continue // too large
		}
		for range 40 {
			key := "/" + randomKey(r, 8)
			want := -1
			count := 0
			for i, g := range globs {
				if model.Match(g, key, pattern.Path) {
					if count++; want < 0 {
						want = i
					}
				}
			}
			got := matching(img, ir.Write, key)
			if len(got) == 0 && want >= 0 || len(got) > 0 && got[0] != want {
				t.Fatalf("globs %q, key %q: clauses %v and not %d", globs, key, got, want)
			}
			if len(got) < count {
				passed++
			}
		}
	}
	if passed < 1000 {
		t.Errorf("a clause was passed over %d times only", passed)
	}
}

// compareWith returns a function that compares for one key, and tells how many
// of the globs match; nil when the globs are too much for an automaton.
func compareWith(t *testing.T, mode pattern.Mode, globs []string) func(key string) int {
	p := program(ir.Write)
	switch mode {
	case pattern.Path:
		p = program(ir.Write, patternsOf(ir.File, globs)...)
	case pattern.Name:
		p = program(ir.Exec, patternsOf(ir.ExecProgram, globs)...)
	case pattern.Token:
		for _, g := range globs {
			c := program(ir.Exec, ir.Pattern{Kind: ir.ExecProgram, Any: true}).Clauses[0]
			c.Args = []string{g}
			p.Clauses = append(p.Clauses, c)
		}
	}
	img, err := Compile(p)
	var limit *LimitError
	switch {
	case errors.As(err, &limit):
		return nil
	case err != nil:
		t.Fatal(err)
	}
	checkImage(t, img)
	return func(key string) int {
		count := 0
		for i, g := range globs {
			var got bool
			want := model.Match(g, key, mode)
			switch mode {
			case pattern.Path:
				got = slices.Contains(matching(img, ir.Write, key), i)
			case pattern.Name:
				got = slices.Contains(rowOf(img, Name, []byte(key)).Clauses[ir.Exec], uint16(i))
				if slices.Contains(matching(img, ir.Exec, "/x/y/"+key), i) != got {
					t.Fatalf("exec pattern %q: the name %q and a path that ends in it differ", g, key)
				}
			case pattern.Token:
				at := img.Clauses[i].Arg
				tokens := rowOf(img, Token, []byte(key)).Tokens
				got = tokens != nil && tokens[at/64]>>(at%64)&1 == 1
			}
			if got != want {
				t.Fatalf("mode %d, glob %q, key %q: the automaton says %t, the naive matcher %t", mode, g, key, got, want)
			}
			if got {
				count++
			}
		}
		return count
	}
}

func FuzzGlob(f *testing.F) {
	for _, seed := range [][2]string{
		{"/a/**", "/a"}, {"**/x", "/x"}, {"/a/**/b", "/a/b"}, {"/**/**/x", "/q/x"}, {"/a**b", "/a/b"}, {"*.{c,h}", "/x.h"},
		{"[!a-c]é?", "/zéé"}, {`\*`, "/*"}, {"[é-ü]", "/ö"}, {"[^é]", "/e"}, {"{a,{b,c}d}", "/cd"}, {"[]a]", "/]"}, {"{}", "/{}"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, glob, key string) {
		if len(glob) > 40 || len(key) > 60 || strings.IndexByte(glob, 0) >= 0 || strings.IndexByte(key, 0) >= 0 {
			return
		}
		for _, mode := range []pattern.Mode{pattern.Path, pattern.Name, pattern.Token} {
			k := key
			switch mode {
			case pattern.Path:
				k = "/" + key
			case pattern.Name:
				k = strings.ReplaceAll(key, "/", "")
			}
			if g := canonicalGlob(glob, mode); g != "" {
				if compare := compareWith(t, mode, []string{g}); compare != nil {
					compare(k)
				}
			}
		}
	})
}
