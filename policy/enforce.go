// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/actplane/actplane/policy/dfa"
	"github.com/actplane/actplane/policy/diag"
	"github.com/actplane/actplane/policy/ir"
)

// Unenforced lists what a program says and this version's engine cannot
// enforce: the language is larger than the engine. It is the one place that
// knows, and whoever is about to enforce a program refuses it unless the list is
// empty. What is not named here as enforced is not.
func Unenforced(p *ir.Program) diag.List {
	u := &unenforced{}
	for i := range p.Clauses {
		u.clause(&p.Clauses[i])
	}
	for _, d := range p.Defaults {
		switch {
		case d.Hold != 0 && d.Effect != ir.Ask:
			u.add(d.Pos, d.Text, "a default that holds")
		case d.Op >= ir.NumOps || d.Effect > ir.Kill:
			u.add(d.Pos, d.Text, "this default")
		}
	}
	for _, s := range p.Sources {
		if s.Pattern.Host {
			u.add(s.Pos, s.Text, "host names in endpoint patterns")
		}
	}
	slices.SortStableFunc(u.list, func(a, b diag.Diagnostic) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	return slices.Compact(u.list)
}

// tooLarge lists what of an image is more than the engine's tables hold.
func tooLarge(image *dfa.Image) diag.List {
	d := diag.Diagnostic{Severity: diag.Error, Code: diag.OverLimit, Length: 1}
	n := len(image.RowOf)
	if n <= ir.MaxStates {
		return nil
	}
	d.Message = fmt.Sprintf("the policy needs %d automaton states; the limit of this version's engine is %d", n, ir.MaxStates)
	d.Hint = "use fewer patterns with wildcards, or one for a folder in place of many for what is in it"
	return diag.List{d}
}

type unenforced struct{ list diag.List }

func (u *unenforced) clause(c *ir.Clause) {
	switch c.Effect {
	case ir.Allow, ir.Notify, ir.Ask, ir.Block, ir.Kill:
	default:
		u.add(c.Pos, c.Text, fmt.Sprintf("the effect %d", c.Effect))
	}
	if c.Hold != 0 && c.Effect != ir.Ask {
		u.add(c.Pos, c.Text, "a hold of what does not ask")
	}
	switch c.Op {
	case ir.Exec, ir.Open, ir.Read, ir.Write, ir.Append, ir.Unlink, ir.Connect, ir.Send, ir.Recv, ir.Bind:
	default:
		u.add(c.Pos, c.Text, fmt.Sprintf("operation %d", c.Op))
	}
	host := c.Pattern.Host
	for _, t := range c.Unless.Targets {
		host = host || t.Pattern.Host
	}
	if host {
		u.add(c.Pos, c.Text, "host names in endpoint patterns")
	}
}

// add reports a feature at the position that the program gives for it.
func (u *unenforced) add(pos, text, what string) {
	d := diag.Diagnostic{Severity: diag.Error, Code: diag.NotSupported, Length: 1, Source: text}
	d.File, d.Line, d.Col = splitPos(pos)
	if d.Line > 0 {
		d.Length = max(1, len([]rune(text)))
	}
	d.Message = "not supported by this version: " + what
	u.list = append(u.list, d)
}

// splitPos takes file:line:col apart. A program may come from anywhere, so that
// any text must do.
func splitPos(pos string) (file string, line, col int) {
	rest, last := pos, ""
	for _, n := range []*int{&col, &line} {
		i := strings.LastIndexByte(rest, ':')
		if i < 0 {
			return pos, 0, 0
		}
		rest, last = rest[:i], rest[i+1:]
		v, err := strconv.Atoi(last)
		if err != nil || v < 1 {
			return pos, 0, 0
		}
		*n = v
	}
	return rest, line, col
}
