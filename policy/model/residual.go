// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/pattern"
)

// all is the residual of a pattern that matches whatever is below a directory.
const all = "**"

// residuals returns what is left of a file pattern to match after a directory:
// what is the same of them treats equal names below two directories alike. It is
// the specification's "states after D/", as texts.
func residuals(p ir.Pattern, dir string) []string {
	if p.Any {
		return []string{all}
	}
	var out []string
	for _, g := range expandGlob(p.Text) {
		out = residue(g, dir+"/", out)
	}
	return tidy(out)
}

// residue adds what remains of glob g once it has matched all of k, in every way
// in which it can.
func residue(g, k string, out []string) []string {
	if k == "" {
		return append(out, g)
	}
	if g == "" {
		return out
	}
	if strings.HasPrefix(g, "/**") && k[0] == '/' {
		switch rest := strings.TrimLeft(g[3:], "*"); {
		case rest == "":
			return append(out, all)
		case rest[0] == '/':
			out = append(out, "**"+rest) // it goes on below the directory
			for i := range len(k) {
				if k[i] == '/' {
					out = residue(rest, k[i:], out)
				}
			}
			return out
		}
	}
	switch g[0] {
	case '*':
		rest := strings.TrimLeft(g, "*")
		across := len(g)-len(rest) > 1
		for i := 0; i < len(k); i++ {
			out = residue(rest, k[i:], out)
			if k[i] == '/' && !across {
				return out
			}
		}
		return append(out, g)
	case '?':
		if _, n, _ := firstChar(k); n > 0 && k[0] != '/' {
			return residue(g[1:], k[n:], out)
		}
		return out
	case '[':
		n := classLength(g)
		if m := classPrefix(g[1:n-1], k, pattern.Path); m > 0 {
			return residue(g[n:], k[m:], out)
		}
		return out
	case '\\':
		g = g[1:]
	}
	if k[0] != g[0] {
		return out
	}
	return residue(g[1:], k[1:], out)
}

// language is what a clause or patterns alone match: names that some pattern
// matches and that no target excuses.
type language struct {
	patterns []ir.Pattern
	targets  []ir.Target
}

// movedApart tells whether names below two directories are treated differently.
func (l language) movedApart(from, to string) bool {
	return !l.same(l.after(from), l.after(to))
}

// after is what is left of the patterns and of each target below a directory.
func (l language) after(dir string) [][]string {
	var left []string
	for _, p := range l.patterns {
		left = append(left, residuals(p, dir)...)
	}
	out := [][]string{tidy(left)}
	for _, t := range l.targets {
		out = append(out, residuals(t.Pattern, dir))
	}
	return out
}

// matches tells whether the name that has come to its end is one.
func (l language) matches(left [][]string) bool {
	for i, t := range l.targets {
		if empty(left[i+1]) != t.Not {
			return false
		}
	}
	return empty(left[0])
}

// mostPairs bounds the comparison of residuals; what takes longer counts as
// different.
const mostPairs = 2000

// same tells whether what is left below two directories matches the same names.
// Whatever character comes next must leave what does, and so on, until nothing
// new is left.
func (l language) same(a, b [][]string) bool {
	key := func(a, b [][]string) string { return fmt.Sprintf("%q %q", a, b) }
	seen := map[string]bool{key(a, b): true}
	alphabet := characters(slices.Concat(slices.Concat(a, b)...))
	for open := [][2][][]string{{a, b}}; len(open) > 0; open = open[1:] {
		a, b := open[0][0], open[0][1]
		if key(a, a) == key(a, b) {
			continue
		}
		if len(seen) > mostPairs || l.matches(a) != l.matches(b) {
			return false
		}
		for _, c := range alphabet {
			x, y := step(a, c), step(b, c)
			if k := key(x, y); !seen[k] {
				seen[k] = true
				open = append(open, [2][][]string{x, y})
			}
		}
	}
	return true
}

// step is what a character leaves of residuals.
func step(left [][]string, c string) (out [][]string) {
	for _, set := range left {
		var next []string
		for _, g := range set {
			next = residue(g, c, next)
		}
		out = append(out, tidy(next))
	}
	return out
}

// empty tells whether nothing more need come.
func empty(set []string) bool {
	return slices.ContainsFunc(set, func(g string) bool { return matchGlob(g, "", pattern.Path) })
}

// tidy makes equal sets equal texts.
func tidy(set []string) []string {
	slices.Sort(set)
	set = slices.Compact(set)
	if slices.Contains(set, all) {
		return []string{all}
	}
	return set
}

// characters returns one of each kind that the globs tell apart: those that they
// name with their neighbours, and of the others one of each length, one that is no
// shortest form, and a byte that begins none.
func characters(globs []string) []string {
	named := map[rune]bool{'/': true}
	for _, g := range globs {
		for _, r := range g {
			named[r-1], named[r], named[r+1] = true, true, true
		}
	}
	out := []string{"\xff", "\xe0\x80\x80"}
	for _, r := range []rune{0x1, 0x80, 0x800, 0x10000} {
		for named[r] {
			r++
		}
		named[r] = true
	}
	for r := range named {
		if r > 0 && utf8.ValidRune(r) {
			out = append(out, string(r))
		}
	}
	return out
}
