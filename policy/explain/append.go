// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"

	"github.com/actplane/actplane/policy/ir"
)

// held is where something is denied.
type held struct {
	all     bool
	globs   map[string]bool
	folders map[string]bool // all that is in them
}

func newHeld() *held { return &held{globs: map[string]bool{}, folders: map[string]bool{}} }

// appending is where that is denied, whoever it is denied to: by clauses and defaults on
// append and open, and by protect.
func appending(p *ir.Program) *held {
	h := newHeld()
	denies := func(op ir.Op, e ir.Effect) bool { return e >= ir.Ask && (op == ir.Append || op == ir.Open) }
	for _, d := range p.Defaults {
		h.all = h.all || denies(d.Op, d.Effect)
	}
	for i := range p.Clauses {
		if c := &p.Clauses[i]; denies(c.Op, c.Effect) {
			h.add(c.Pattern)
		}
	}
	for _, x := range p.Protects {
		h.add(x.Pattern)
	}
	return h
}

func (h *held) add(p ir.Pattern) {
	h.all = h.all || p.Any
	for _, glob := range alternatives(p.Text) {
		h.globs[glob] = true
		if dir, ok := strings.CutSuffix(glob, "/**"); ok {
			if top, plain := literal(dir); plain {
				h.folders[top] = true
			}
		}
	}
}

// has tells whether all that a glob matches is held, where that is easy to tell.
func (h *held) has(glob string) bool {
	if h.all || h.globs[glob] {
		return true
	}
	for i := range len(glob) {
		if glob[i] == '/' && h.folders[glob[:i]] {
			return true
		}
	}
	return h.folders[glob]
}

// appends says of a clause that denies writing that appending to the same files goes on,
// "" where it does not.
func (x *explainer) appends(c *ir.Clause) string {
	if c.Op != ir.Write || c.Effect < ir.Ask || x.held.all {
		return ""
	}
	open := c.Pattern.Any
	for _, glob := range alternatives(c.Pattern.Text) {
		open = open || !x.held.has(glob)
	}
	if !open {
		return ""
	}
	return "Appending to what is there is not writing, and nothing here holds it: `" + strings.Replace(c.Text, "write", "append", 1) + "` would."
}
