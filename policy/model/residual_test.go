// SPDX-License-Identifier: Apache-2.0

package model

import (
	"math/rand/v2"
	"testing"

	"github.com/actplane/actplane/internal/testenv"
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
		if got := (language{patterns: []ir.Pattern{{Text: c.glob}}}).movedApart(c.from, c.to); got != c.apart {
			t.Errorf("%s after %s and %s: %t; %q %q", c.glob, c.from, c.to, got,
				residuals(ir.Pattern{Text: c.glob}, c.from), residuals(ir.Pattern{Text: c.glob}, c.to))
		}
	}
}

// TestMovedApartWithTargets: what a clause's targets excuse is none of its names.
func TestMovedApartWithTargets(t *testing.T) {
	for _, c := range []struct {
		glob, target string
		not          bool
		from, to     string
		apart        bool
	}{
		{"/**", "/job/**", false, "/job/a", "/job/b", false},
		{"/**", "/job/**", false, "/job/a", "/b", true},
		{"/**", "/job/**", false, "/a", "/b", false},
		{"/**", "/job/*", false, "/job/a", "/b", false},
		{"/**", "/**/*.md", true, "/a", "/b", false},
		{"/**", "/a/**/*.md", true, "/a", "/b", true},
		{"/{a,b}/**", "/a/**", false, "/b", "/c", true},
		{"/a/**", "/a/**", false, "/a", "/c", false},
	} {
		l := language{[]ir.Pattern{{Text: c.glob}}, []ir.Target{{Not: c.not, Pattern: ir.Pattern{Text: c.target}}}}
		if got := l.movedApart(c.from, c.to); got != c.apart {
			t.Errorf("%s unless %s after %s and %s: %t", c.glob, c.target, c.from, c.to, got)
		}
	}
}

// TestSame: what is called the same is so for names of all kinds.
func TestSame(t *testing.T) {
	r := rand.New(rand.NewPCG(testenv.Seed(t), 1))
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
		if (language{patterns: []ir.Pattern{{Text: c}}}).movedApart(from, to) {
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
