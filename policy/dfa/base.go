// SPDX-License-Identifier: Apache-2.0

package dfa

import (
	"slices"

	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/pattern"
)

// Patterns of paths that begin anywhere (**/NAME, and the names of programs) multiply
// the states of those that begin in a directory (/DIR/**): below each directory each
// beginning of a name is a state. What they match, the last name of a path tells alone,
// and so they can have an automaton of their own: then the two add up.

// homed is a pattern and the entry where it is matched: Path, or Base.
type homed struct {
	ir.Pattern
	home Start
}

// home returns the entry of a pattern of paths, Path for any other one.
func (b *builder) home(p ir.Pattern) Start {
	if b.split && named(p) != nil {
		return Base
	}
	return Path
}

// homeOf returns the entry of a clause's pattern, and that of each of its targets unless
// the clause is one of exec. Those of files are decided with the pattern, in one row.
func (b *builder) homeOf(c *ir.Clause) Start {
	home := b.home(c.Pattern)
	if c.Op == ir.Exec {
		return home
	}
	for _, t := range c.Unless.Targets {
		if b.home(t.Pattern) != Base {
			return Path
		}
	}
	return home
}

// named returns what a pattern matches from Base on, nil for one that looks at more of a
// path than its last name. validate has parsed it before, so that errors are gone.
func named(p ir.Pattern) [][]pattern.Elem {
	switch {
	case p.Any || p.Kind == ir.Endpoint:
		return nil
	case baseName(p):
		return anywhere(p)
	}
	globs, _ := pattern.Glob(p.Text, pattern.Path)
	for i, elems := range globs {
		if len(elems) < 3 || elems[1].Kind != pattern.OptDeep || slices.ContainsFunc(elems[2:], leavesName) {
			return nil
		}
		globs[i] = elems[1:] // the path's first slash is what leads to Base
	}
	return globs
}

// anywhere returns what a base-name pattern matches behind the first slash of a path.
func anywhere(p ir.Pattern) (out [][]pattern.Elem) {
	globs, _ := pattern.Glob(p.Text, pattern.Name)
	for _, g := range globs {
		out = append(out, append([]pattern.Elem{{Kind: pattern.OptDeep}}, g...))
	}
	return out
}

// leavesName tells whether a step of a pattern can match a slash.
func leavesName(e pattern.Elem) bool {
	if e.Kind != pattern.Lit {
		return e.Kind != pattern.Star
	}
	return slices.ContainsFunc(e.Seqs, func(seq []pattern.Range) bool {
		return slices.ContainsFunc(seq, func(r pattern.Range) bool { return r.Lo <= '/' && '/' <= r.Hi })
	})
}
