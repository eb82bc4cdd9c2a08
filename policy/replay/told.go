// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/actplane/actplane/policy/diag"
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/model"
	"github.com/actplane/actplane/policy/pattern"
	"github.com/actplane/actplane/policy/syntax"
)

// told is what a record says of what was not so, or was, by the clause that decided.
type told struct {
	labels map[string]bool // that the clause asks for and the process did not have
	gates  []ir.Gate       // that did not hold
	// ran are the programs that neither the process nor an ancestor had run, as gates.
	ran []ir.Gate
	// Of the file: its contents were written inside, or they were not.
	written, unwritten bool
	// asked: it is for a person to decide, who may have said no.
	asked bool
	// invoked is the name by which the program was run: the clause names it so, and not
	// by what it resolved to. "" where that is not known.
	invoked string
	// hidden says what the record does not hold of the operation itself, though the
	// clause counted with it; "" for nothing.
	hidden string
}

// read takes a record's clause apart; what is none tells nothing. Relative programs are
// taken to have been under the workspace.
func read(op ir.Op, r *Record, workspace string) *told {
	t := &told{labels: map[string]bool{}}
	if len(r.Clause) > maxClause || t.otherwise(op, r, workspace) {
		return t
	}
	const before = "rule r:\n"
	tree, errs := syntax.Parse(diag.NewText("", []byte(before+r.Clause)))
	if len(errs) > 0 || len(tree.Rules) != 1 || len(tree.Rules[0].Clauses) != 1 {
		return t
	}
	clause := tree.Rules[0].Clauses[0]
	t.asked = clause.Effect != nil && clause.Effect.Text == ir.Ask.String()
	t.expression(clause.If, r.Labels)
	if !clause.Pattern.Any {
		t.object(op, r, clause.Pattern.Text, workspace)
	}
	changes := (op == ir.Write || op == ir.Unlink) && path.IsAbs(r.Object)
	for _, c := range clause.Unless {
		switch {
		case c.Kind == syntax.CondAfter:
			if g, ok := gate(c, workspace); ok {
				t.gates = append(t.gates, g)
			}
		case c.Kind == syntax.CondLineage:
			if p, ok := ofEvent(ir.Exec, c.Pattern, workspace); ok {
				t.ran = append(t.ran, run(p))
			}
		case c.Kind != syntax.CondTarget:
		case c.Property != nil && c.Property.Text == "modified":
			t.written, t.unwritten = t.written || c.Not, t.unwritten || !c.Not
		case c.Property == nil && !c.Pattern.Any && changes:
			if under(c.Pattern.Text, workspace, r.Object) != c.Not && t.hidden == "" {
				t.hidden = moved
			}
		}
	}
	if t.written && t.unwritten && changes && t.hidden == "" { // one of the two is so of any file
		t.hidden = moved
	}
	return t
}

// gate is an `after` condition as a program has it; what makes no sense is none.
func gate(c *syntax.Cond, workspace string) (g ir.Gate, ok bool) {
	g.Exit = -1
	if c.Exits != nil {
		n, err := strconv.Atoi(c.Exits.Text)
		if err != nil {
			return g, false
		}
		g.Exit = n
	}
	events := append([]*syntax.Event{c.After}, c.Since...)
	for i, e := range events {
		op, ok := operation(e.Op.Text)
		if !ok || op >= ir.Connect {
			return g, false
		}
		p, ok := ofEvent(op, e.Pattern, workspace)
		if !ok {
			return g, false
		}
		x := ir.Event{Op: op, Pattern: p}
		for _, a := range e.Args {
			x.Args = append(x.Args, a.Text)
		}
		if i == 0 {
			g.After = x
		} else {
			g.Since = append(g.Since, x)
		}
	}
	return g, true
}

// ofEvent is the pattern of an event about programs or files.
func ofEvent(op ir.Op, p syntax.Pattern, workspace string) (out ir.Pattern, ok bool) {
	if out.Any = p.Any; p.Any {
		return out, true
	}
	var err error
	if op == ir.Exec {
		out.Kind = ir.ExecProgram
		out.Text, _, err = pattern.Exec(p.Text, workspace)
	} else {
		out.Text, _, err = pattern.File(p.Text, workspace)
	}
	return out, err == nil
}

// run is that a program was run, as a gate that nothing makes stale.
func run(p ir.Pattern) ir.Gate {
	return ir.Gate{After: ir.Event{Op: ir.Exec, Pattern: p}, Exit: -1}
}

// excludes tells whether a gate was not fresh, since one of those that were not would
// have been, too.
func excludes(stale []ir.Gate, g *ir.Gate) bool {
	return slices.ContainsFunc(stale, func(x ir.Gate) bool { return model.Implies(g, &x) })
}

// otherwise is about what decides and is no clause: `protect`, and a source whose
// directory was to be moved.
func (t *told) otherwise(op ir.Op, r *Record, workspace string) bool {
	text, protects := strings.CutPrefix(r.Clause, "protect ")
	switch {
	case r.Rule != "":
		return false
	case strings.HasPrefix(r.Clause, "source "):
		t.hidden = moved
	case protects && path.IsAbs(r.Object) && !under(text, workspace, r.Object):
		if t.object(op, r, text, workspace); t.hidden == "" || t.hidden == moved {
			t.hidden = "another name of the file is protected, or a directory was to be moved; the record does not tell"
		}
	}
	return protects || t.hidden != ""
}

// object finds out what the clause's pattern matched, if not the object as recorded.
func (t *told) object(op ir.Op, r *Record, text, workspace string) {
	switch {
	case op >= ir.Connect || !path.IsAbs(r.Object) && r.Effect != ir.Notify.String(): // whatever the name is, it matched
	case !valid(text, workspace):
	case op == ir.Exec && !strings.Contains(text, "/"):
		name := invokedName(r)
		switch {
		case model.Match(text, path.Base(r.Object), pattern.Name):
		case name != "" && model.Match(text, name, pattern.Name):
			t.invoked = name
		default:
			var literal bool
			if t.invoked, literal = pattern.Unescaped(text); !literal || strings.Contains(text, "{") {
				t.hidden = "the program was run by another name, which is not recorded"
			}
		}
	case path.IsAbs(r.Object) && !under(text, workspace, r.Object):
		switch {
		case relative(text) && under("**/"+strings.TrimLeft(text, "./"), "/", r.Object):
			t.hidden = fmt.Sprintf("%q of its clause was below another directory than %s: --workspace names it", text, workspace)
		case op == ir.Write || op == ir.Unlink:
			t.hidden = moved
		}
	}
}

// valid tells whether a pattern is one: a log can have any text.
func valid(text, workspace string) bool {
	_, _, err := pattern.Exec(text, workspace)
	return err == nil
}

// moved is why a clause counts for a file that its patterns do not name.
const moved = "a directory was to be moved, and it is not recorded where to"

// under tells whether a file pattern matches a path.
func under(text, workspace, file string) bool {
	glob, _, err := pattern.File(text, workspace)
	return err == nil && model.Match(glob, file, pattern.Path)
}

func relative(text string) bool { return !path.IsAbs(text) && !strings.HasPrefix(text, "**") }

// invokedName is the name by which a program may have been run, if it is another than
// its own.
func invokedName(r *Record) string {
	if len(r.Args) == 0 {
		return ""
	}
	name := path.Base(r.Args[0])
	if name == path.Base(r.Object) || name == "." || name == "/" {
		return ""
	}
	return name
}

// mostLabels bounds the labels of an `if` for which it is looked on which of them it
// depends.
const mostLabels = 10

// expression learns from an `if` and the labels that the record has. The compiler may
// have dropped labels on which nothing depends (`true or A`), and the record says nothing
// of these.
func (t *told) expression(e syntax.Expr, carried []string) {
	names := labelsOf(e, nil)
	for i, name := range names {
		switch {
		case slices.Contains(carried, name):
			t.labels[name] = false
		case len(names) <= mostLabels && depends(e, names, i):
			t.labels[name] = true
		}
	}
}

func labelsOf(e syntax.Expr, names []string) []string {
	switch e := e.(type) {
	case *syntax.Label:
		if !slices.Contains(names, e.Name.Text) {
			names = append(names, e.Name.Text)
		}
	case *syntax.Not:
		names = labelsOf(e.X, names)
	case *syntax.Binary:
		names = labelsOf(e.Y, labelsOf(e.X, names))
	case *syntax.Paren:
		names = labelsOf(e.X, names)
	}
	return names
}

// depends tells whether an expression can be true or not for the sake of one label.
func depends(e syntax.Expr, names []string, label int) bool {
	for set := range 1 << len(names) {
		if set>>label&1 == 0 && value(e, names, set) != value(e, names, set|1<<label) {
			return true
		}
	}
	return false
}

// value is what an expression says of a process with a set of the labels.
func value(e syntax.Expr, names []string, set int) bool {
	switch e := e.(type) {
	case *syntax.Label:
		return set>>slices.Index(names, e.Name.Text)&1 == 1
	case *syntax.Not:
		return !value(e.X, names, set)
	case *syntax.Binary:
		if e.Or {
			return value(e.X, names, set) || value(e.Y, names, set)
		}
		return value(e.X, names, set) && value(e.Y, names, set)
	case *syntax.Paren:
		return value(e.X, names, set)
	}
	return true // the word true
}
