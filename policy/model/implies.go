// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"

	"github.com/actplane/actplane/policy/ir"
)

// Implies tells whether gate a can be fresh only while gate b is: what arms a arms b,
// and what makes b stale makes a stale. Moves of directories are left out. False is also
// the answer where it would take long to find out.
func Implies(a, b *ir.Gate) bool {
	if b.Exit >= 0 && a.Exit != b.Exit || !within(a.After, []ir.Event{b.After}, resolved) {
		return false
	}
	since := a.Since
	if a.After.Op == ir.Exec { // else the write of an unlink may arm it again before the name goes
		for _, e := range a.Since {
			if e.Op == ir.Write {
				e.Op = ir.Unlink // no name goes away without being written
				since = append(slices.Clip(since), e)
			}
		}
	}
	return !slices.ContainsFunc(b.Since, func(e ir.Event) bool { return !within(e, since, either) })
}

// mostPatternText bounds the patterns that are compared, in bytes.
const mostPatternText = 1 << 10

// within tells whether whatever is event e is one of the list as well.
func within(e ir.Event, list []ir.Event, by names) bool {
	var some language
	length := len(e.Pattern.Text)
	for _, x := range list {
		// Of a name that is invoked no path is known.
		known := by == resolved || !isName(e.Pattern) || x.Pattern.Any || isName(x.Pattern)
		if known && x.Op == e.Op && asksLess(x.Args, e.Args) {
			some.patterns = append(some.patterns, anywhere(x.Pattern))
			length += len(x.Pattern.Text)
		}
	}
	if len(some.patterns) == 0 || length > mostPatternText {
		return false
	}
	for _, g := range expandGlob(e.Pattern.Text) { // devices are what is named literally
		if is, _ := device(g); is && !slices.ContainsFunc(some.patterns, func(p ir.Pattern) bool { return namesLiterally(p.Text, g) }) {
			return false
		}
	}
	all := language{patterns: append(slices.Clone(some.patterns), anywhere(e.Pattern))}
	return some.same(some.after(""), all.after(""))
}

// asksLess tells whether all arguments that have some tokens have others, too.
func asksLess(less, more []string) bool {
	for _, token := range less {
		i := slices.Index(more, token)
		if i < 0 {
			return false
		}
		more = more[i+1:]
	}
	return true
}

// anywhere is the path of a program that a base name stands for.
func anywhere(p ir.Pattern) ir.Pattern {
	if isName(p) {
		p.Text = "/**/" + p.Text
	}
	return p
}
