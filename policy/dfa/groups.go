// SPDX-License-Identifier: Apache-2.0

package dfa

import (
	"strings"

	"github.com/actplane/actplane/policy/ir"
)

// The groups of the patterns of paths, each of which makes an automaton when one
// for all would be too large. Patterns of one group add their states; those of
// different groups would multiply them.
const (
	anchored  = 0 // begin in a directory: /DIR/**
	floating  = 1 // begin anywhere: **/NAME
	firstDeep = 2 // and go on anywhere: **/NAME/**
	// Deep patterns multiply each other: each that has matched is remembered, so
	// that n of them make 2^n times the states. They are spread over deepGroups,
	// which are begun one by one, with deepTogether in each.
	deepGroups   = 8
	deepTogether = 4
	maxGroups    = firstDeep + deepGroups
)

// newGroup returns the group of a new pattern. It only makes images smaller; any
// other choice would be right as well.
func (b *builder) newGroup(p ir.Pattern) int {
	if !b.split || p.Any || p.Kind == ir.Endpoint {
		return anchored
	}
	// Canonical texts have their alternatives in one pair of braces.
	deep, floats := 0, false
	for _, text := range strings.Split(strings.TrimPrefix(p.Text, "{"), ",") {
		deep = max(deep, strings.Count(text, "**"))
		floats = floats || !strings.HasPrefix(text, "/") || strings.HasPrefix(text, "/*")
	}
	switch {
	case deep > 1:
		b.deep++
		n := b.deep - 1
		if n < deepGroups*deepTogether {
			return firstDeep + n/deepTogether
		}
		return firstDeep + n%deepGroups
	case floats:
		return floating
	}
	return anchored
}
