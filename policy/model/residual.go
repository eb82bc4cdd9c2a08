// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"strings"

	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/pattern"
)

// all is the residual of a pattern that matches whatever is below a directory.
const all = "/**"

// residuals returns what is left of a file pattern to match after a directory:
// equal residuals treat equal names below two directories alike. It is the
// specification's "states after D/", as texts.
func residuals(p ir.Pattern, dir string) []string {
	if p.Any {
		return []string{all}
	}
	var out []string
	for _, g := range expandGlob(p.Text) {
		out = residue(g, dir+"/", out)
	}
	slices.Sort(out)
	out = slices.Compact(out)
	if slices.Contains(out, all) {
		return []string{all}
	}
	return out
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

// movedApart tells whether a pattern treats names below two directories
// differently.
func movedApart(p ir.Pattern, from, to string) bool {
	return !slices.Equal(residuals(p, from), residuals(p, to))
}

// covers tells whether a pattern matches all that is below a directory.
func covers(p ir.Pattern, dir string) bool {
	return slices.Equal(residuals(p, dir), []string{all})
}
