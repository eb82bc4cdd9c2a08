// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"net/netip"
	"strings"
	"unicode"

	"github.com/actplane/actplane/policy/diag"
	"github.com/actplane/actplane/policy/ir"
)

// warnMisleading warns of a pattern or token that is not what it looks like, and so
// matches less than was meant, or more.
func (c *checker) warnMisleading(l *layer, at diag.Span, text string, kind patternKind) bool {
	message, hint := misleading(text, kind)
	if message == "" {
		return false
	}
	c.report(l.Text.New(diag.Misleading, at, "%s", message).WithHint("%s", hint))
	return true
}

func misleading(text string, kind patternKind) (message, hint string) {
	endpoint := kind == patternKind(ir.Endpoint)
	trimmed := strings.TrimSpace(text)
	switch {
	case kind != token && text == "any":
		return `in quotes this is something called any`, "for everything write any, without quotes"
	case trimmed != text && trimmed != "" && !strings.Contains(trimmed, " "):
		return "the string begins or ends with a blank, which counts", "write \"" + trimmed + "\""
	case kind != token && strings.HasPrefix(text, "!"):
		return "a pattern has no negation: ! is a plain character here", "what is excepted stands behind unless: any unless target \"" + text[1:] + "\""
	case endpoint:
		return misleadingAddress(text)
	case kind != token && blankInBraces(text):
		return "an alternative in braces begins or ends with a blank, which counts", "write \"" + strings.NewReplacer(", ", ",", " ,", ",", "{ ", "{", " }", "}").Replace(text) + "\""
	}
	return lookAlike(text)
}

// blankInBraces tells whether an alternative of a pattern's braces begins or ends with
// a blank.
func blankInBraces(text string) bool {
	depth, before := 0, byte(0)
	for i := 0; i < len(text) && strings.Contains(text, ","); i++ {
		c := text[i]
		switch {
		case c == '\\':
			i++
			c = 0 // what it escapes separates nothing
		case c == '{':
			depth++
		case c == '}' && depth > 0:
			depth--
		case c == ' ' && depth > 0 && (before == '{' || before == ',' || i+1 < len(text) && strings.IndexByte(",}", text[i+1]) >= 0):
			return true
		}
		before = c
	}
	return false
}

// misleadingAddress is about addresses that are narrower or wider than they look.
func misleadingAddress(text string) (message, hint string) {
	host, _, _ := strings.Cut(text, ":")
	switch {
	case host == "0.0.0.0", text == "::", strings.HasPrefix(text, "[::]"):
		return "this is one address alone, and no network", "for every endpoint write any, for every IPv4 address \"0.0.0.0/0\""
	case portInAddress(text) != "":
		return "this is an IPv6 address without a port", fmt.Sprintf("write %q for the port, or %q for the address", portInAddress(text), "["+text+"]")
	case len(host) > 1 && host[0] == '*' && host[1] != '.' && strings.Contains(host, ".") && !strings.ContainsAny(host[1:], "*?[{"):
		return "this matches other domains too, whose names end alike", "write \"*." + host[1:] + "\" for its hosts, and \"" + host[1:] + "\" for itself"
	}
	return lookAlike(text)
}

// portInAddress returns an IPv6 address without brackets with its last part as a port,
// where it looks like one: ::1:80. "" for others.
func portInAddress(text string) string {
	i := strings.LastIndexByte(text, ':')
	if i < 0 || len(text)-i < 3 || strings.Trim(text[i+1:], "0123456789") != "" {
		return ""
	}
	whole, err := netip.ParseAddr(text)
	address, short := netip.ParseAddr(text[:i])
	if err != nil || short != nil || !whole.Is6() || !address.Is6() {
		return ""
	}
	return "[" + text[:i] + "]" + text[i:]
}

// halfNetworks warns of clauses about all addresses of one family where their rule
// has none about the other.
func (c *checker) halfNetworks() {
	type key struct {
		rule    int
		op      ir.Op
		pattern string
	}
	there := map[key]bool{}
	for _, clause := range c.program.Clauses {
		there[key{clause.Rule, clause.Op, clause.Pattern.Text}] = true
	}
	for i, clause := range c.program.Clauses {
		family, other, pattern := "IPv4", "[::/0]", strings.Replace(clause.Pattern.Text, "0.0.0.0/0", "[::/0]", 1)
		if strings.HasPrefix(clause.Pattern.Text, "[::/0]") {
			family, other, pattern = "IPv6", "0.0.0.0/0", strings.Replace(clause.Pattern.Text, "[::/0]", "0.0.0.0/0", 1)
		}
		if clause.Pattern.Kind != ir.Endpoint || !strings.HasPrefix(pattern, other) || i < c.base || there[key{clause.Rule, clause.Op, pattern}] {
			continue
		}
		at := c.clauseAt[i]
		c.report(at.layer.Text.New(diag.Misleading, at.span, "this is about %s alone", family).
			WithHint("for every endpoint write any, or add a clause about %q", pattern))
	}
}

// lookAlike is about characters that are taken for others, or for none.
func lookAlike(text string) (message, hint string) {
	if strings.IndexFunc(text, func(r rune) bool { return r > unicode.MaxASCII }) < 0 {
		return "", ""
	}
	for _, r := range text {
		switch {
		case unicode.Is(unicode.Cf, r):
			return "the string has a character that shows nothing: " + fmt.Sprintf("%U", r), "remove it"
		case r > unicode.MaxASCII && unicode.IsSpace(r):
			return "the string has a blank that is not the usual one: " + fmt.Sprintf("%U", r), "write a plain blank, or separate strings"
		case unicode.Is(unicode.Pd, r) && r != '-', r == '−':
			return "the string has a typographic dash: " + fmt.Sprintf("%U", r), "write \"" + strings.ReplaceAll(text, string(r), dashes(r, text)) + "\""
		case strings.ContainsRune("“”„‟‘’‚‛«»", r):
			return "the string has a typographic quote: " + fmt.Sprintf("%U", r), "write a plain one, or leave it out"
		}
	}
	if r := mixedScript(text); r != 0 {
		return "the string has a letter that looks like a Latin one: " + fmt.Sprintf("%U", r), "write it in one script"
	}
	return "", ""
}

// dashes returns what a typographic dash was made of: editors make one of two at
// the beginning of an option.
func dashes(r rune, text string) string {
	if strings.HasPrefix(text, string(r)) && r != '−' && r != '‐' && r != '‑' {
		return "--"
	}
	return "-"
}

// mixedScript returns a Cyrillic or Greek letter that stands in one word with Latin
// ones, 0 for none.
func mixedScript(text string) rune {
	latin, other := false, rune(0)
	for _, r := range text + " " {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsMark(r):
			latin, other = false, 0
		case unicode.Is(unicode.Latin, r):
			latin = true
		case unicode.In(r, unicode.Cyrillic, unicode.Greek) && other == 0:
			other = r
		}
		if latin && other != 0 {
			return other
		}
	}
	return 0
}
