// SPDX-License-Identifier: Apache-2.0

package check

import (
	"regexp"
	"strings"

	"github.com/actplane/actplane/policy/diag"
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/pattern"
)

// regexps are what tells patterns that are regular expressions by their looks. They
// are made when a pattern first has a character of them.
type regexps struct {
	// signs are what globs rarely have. words are alternatives of plain words, and
	// tail is what ends a program's name or an option.
	signs, words, tail *regexp.Regexp
	// backslash is one before a letter, component one before a name, as in src\dir.
	backslash, component *regexp.Regexp
}

func newRegexps() *regexps {
	return &regexps{
		signs:     regexp.MustCompile(`\\[.dwsDWSb]|\(\?|\([^()|]*\|[^()]*\)|[.\])]\+|\.\*.*\.\*`),
		words:     regexp.MustCompile(`^[\w.-]+(\|[\w.-]+)+$`),
		tail:      regexp.MustCompile(`[A-Za-z]\.\*$`),
		backslash: regexp.MustCompile(`\\[A-Za-z0-9]`),
		component: regexp.MustCompile(`^[^/+()^$|]*\\\w[\w-][^/+()^$|]*$`),
	}
}

// warnRegex warns of a pattern that is a regular expression by its looks.
func (c *checker) warnRegex(l *layer, at diag.Span, text string, kind patternKind) bool {
	sign := c.regexSign(text, kind)
	if sign == "" {
		return false
	}
	mean := "plain text"
	if strings.Contains(sign, ".*") {
		mean = "a dot and any characters"
	}
	hint := "in a glob * is any characters (in a path, up to the next /), ** any characters, ? one, [ab] a or b, {x,y} x or y"
	if glob := c.asGlob(text, kind); glob != "" {
		hint = "as a glob this is \"" + glob + "\""
	}
	c.report(l.Text.New(diag.LooksLikeRegex, at, "patterns are globs, no regular expressions: \"%s\" is %s here", sign, mean).WithHint("%s", hint))
	return true
}

// patternKind is what a glob is about: one of the kinds of objects, or a token.
type patternKind int

const token patternKind = -1

// regexSign returns what makes a pattern look like a regular expression.
func (c *checker) regexSign(text string, kind patternKind) string {
	switch {
	case strings.HasPrefix(text, "^"):
		return "^"
	case strings.HasSuffix(text, "$") && !strings.HasSuffix(text, `\$`):
		return "$"
	case text == ".*":
		return text
	case !strings.ContainsAny(text, `\(+|.`):
		return ""
	}
	if c.regexps == nil {
		c.regexps = newRegexps()
	}
	if sign := c.regexps.signs.FindString(text); sign != "" {
		return sign
	}
	if c.regexps.words.MatchString(text) {
		return "|"
	}
	// Files and arguments can well begin with a word and a dot, programs and options can't.
	if (kind == patternKind(ir.ExecProgram) || kind == token && strings.HasPrefix(text, "-")) && c.regexps.tail.MatchString(text) {
		return ".*"
	}
	return ""
}

// asGlob returns a simple regular expression as a glob, "" for any other.
func (c *checker) asGlob(text string, kind patternKind) string {
	star := "*"
	if kind == patternKind(ir.File) {
		star = "**"
	}
	text = strings.TrimSuffix(strings.TrimPrefix(text, "^"), "$")
	if c.regexps != nil && c.regexps.words.MatchString(text) {
		text = "(" + text + ")"
	}
	if m := regexp.MustCompile(`\(\??:?([\w./-]+(?:\|[\w./-]+)+)\)`); m.MatchString(text) {
		text = m.ReplaceAllStringFunc(text, func(s string) string {
			return "{" + strings.ReplaceAll(m.FindStringSubmatch(s)[1], "|", ",") + "}"
		})
	}
	text = strings.NewReplacer(`.*`, star, `.+`, "?"+star, `\.`, ".", `\d`, "[0-9]", `\/`, "/", `\-`, "-").Replace(text)
	if text == "" || strings.ContainsAny(text, `\()|+^$"`) {
		return ""
	}
	if _, err := pattern.Glob(text, pattern.Token); err != nil || c.regexSign(text, kind) != "" {
		return ""
	}
	return text
}

// warnBackslash warns of a backslash before a letter, where it does nothing.
func (c *checker) warnBackslash(l *layer, at diag.Span, text string, kind patternKind) bool {
	if !strings.Contains(text, `\`) {
		return false
	}
	if c.regexps == nil {
		c.regexps = newRegexps()
	}
	sign := c.regexps.backslash.FindString(text)
	if sign == "" {
		return false
	}
	hint := "leave it out"
	switch {
	case kind != token && c.regexps.component.MatchString(text) && !strings.Contains(text, ".*") && !strings.Contains(text, `\.`):
		hint = "directories are separated by /: \"" + strings.ReplaceAll(text, `\`, "/") + "\""
	case c.regexSign(text, kind) != "":
		return false // there is more to say about it
	}
	c.report(l.Text.New(diag.OddBackslash, at, "a backslash before a letter is as good as none: \"%s\" is \"%s\"", sign, sign[1:]).WithHint("%s", hint))
	return true
}
