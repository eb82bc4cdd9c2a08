// SPDX-License-Identifier: Apache-2.0

package model

import (
	"math/rand/v2"
	"testing"

	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/pattern"
)

func TestMovedApart(t *testing.T) {
	for _, c := range []struct {
		glob, from, to string
		apart          bool
	}{
		{"/etc/**", "/etc", "/e", true},
		{"/etc/**", "/a", "/b", false},
		{"/etc/**", "/etc/x", "/etc/y", false},
		{"/**", "/a", "/b/c", false},
		{"/**/*.md", "/a", "/b/c", false},
		{"/*/x", "/a", "/b", false},
		{"/*/x", "/a", "/b/c", true},
		{"/a*/x", "/ab", "/ac", false},
		{"/{a,b}/**", "/a", "/b", false},
		{"/{a/**,b/{*,**/?*}}", "/a/x", "/b/x", true},       // /b/x/ itself: no name
		{"/{a/**,b/{**,*/y}}", "/a/x", "/b/x", false},       // in other words
		{"/{a/?*,b/[a-z]*,b/[!a-z]*}", "/a", "/b", false},   // in other words
		{"/{a/?*,b/[a-z]*,b/[!a-y]*}", "/a", "/b", false},   // overlapping
		{"/{a/?*,b/[a-z]*,b/[!a-zé]*}", "/a", "/b", true},   // without é
		{"/{a/**/x/**/x,b/**/x/**/x}", "/a/x", "/b", true},  // one x less
		{"/{a/**/x/**/x,b/**/x/**/x}", "/a/y", "/b", false}, // none less
		{"/w/conf/app.yaml", "/w/conf", "/w/c2", true},
	} {
		if got := movedApart(ir.Pattern{Text: c.glob}, c.from, c.to); got != c.apart {
			t.Errorf("%s after %s and %s: %t; %q %q", c.glob, c.from, c.to, got,
				residuals(ir.Pattern{Text: c.glob}, c.from), residuals(ir.Pattern{Text: c.glob}, c.to))
		}
	}
}

// TestSame: what is called the same is so for names of all kinds.
func TestSame(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	text := func(parts []string, most int) (out string) {
		for range 1 + r.IntN(most) {
			out += parts[r.IntN(len(parts))]
		}
		return out
	}
	globs := []string{"a", "b", "?", "*", "/", "/**/", "[ab]", "[!a]", "{a,b*}", "{a/,}", "é", "[a-é]"}
	names := []string{"a", "b", "c", "/", "é", "\xff", "\xe0\x80\x80", "€", "z"}
	sames := 0
	for range 3000 {
		g := "/" + text(globs, 6)
		c, _, err := pattern.File(g, "/")
		if err != nil {
			continue
		}
		from, to := "/"+text(names[:2], 2), "/"+text(names[:2], 2)
		if movedApart(ir.Pattern{Text: c}, from, to) {
			continue
		}
		sames++
		for range 40 {
			n := text(names, 4)
			if Match(c, from+"/"+n, pattern.Path) != Match(c, to+"/"+n, pattern.Path) {
				t.Fatalf("%s treats %q and %q alike, and not %q below", c, from, to, n)
			}
		}
	}
	if sames < 500 {
		t.Errorf("only %d of them", sames)
	}
}
