// SPDX-License-Identifier: Apache-2.0

// Package pattern knows what the patterns of the language mean: globs over
// paths, names and tokens, and endpoints. It validates them, gives them a
// canonical text, and turns them into elements, of which package dfa builds its
// automaton.
//
// Patterns match bytes. `?` and classes match one character: a UTF-8 sequence,
// or a single byte that no such sequence begins with.
package pattern

import (
	"fmt"
	"strings"
)

// Range is a range of bytes, both ends included.
type Range struct{ Lo, Hi byte }

// Elem is one step of a pattern.
type Elem struct {
	Kind ElemKind
	// Seqs, for Lit: alternatives, each a sequence of byte ranges.
	Seqs [][]Range
}

// ElemKind tells the steps apart.
type ElemKind uint8

// The steps.
const (
	Lit     ElemKind = iota // one of Seqs
	Star                    // any bytes but /
	AnyStar                 // any bytes
	OptDeep                 // nothing, or any bytes and a /
	OptTail                 // nothing, or a / and any bytes; the last step
)

// Error says what is wrong with a pattern.
type Error struct {
	Kind ErrorKind
	Msg  string
	Hint string
}

// ErrorKind tells the errors apart, for their codes.
type ErrorKind uint8

// The errors.
const (
	BadGlob ErrorKind = iota
	NeverMatches
	NotExpanded
	BadAddress
	BadPort
	UnknownSet
	TooLong
)

func (e *Error) Error() string { return e.Msg }

func errorf(kind ErrorKind, hint, format string, args ...any) *Error {
	return &Error{Kind: kind, Hint: hint, Msg: fmt.Sprintf(format, args...)}
}

// Mode is what a glob is matched against.
type Mode uint8

// The modes.
const (
	Path  Mode = iota // an absolute path: wildcards stop at /, ** does not
	Name              // a base name
	Token             // an argv element or abstract socket name: no separators
)

// MaxAlternatives bounds what the braces of one pattern expand to.
const MaxAlternatives = 1024

// Alternatives returns what the braces of a glob expand to, the glob itself without
// any; at most MaxAlternatives.
func Alternatives(text string) ([]string, error) { return expand(text) }

// Glob returns the elements of each alternative of a canonical glob.
func Glob(text string, mode Mode) ([][]Elem, error) {
	alternatives, err := expand(text)
	if err != nil {
		return nil, err
	}
	out := make([][]Elem, 0, len(alternatives))
	for _, a := range alternatives {
		elems, err := elements(a, mode)
		if err != nil {
			return nil, err
		}
		out = append(out, elems)
	}
	return out, nil
}

// elements parses a glob without alternatives.
func elements(s string, mode Mode) ([]Elem, error) {
	if mode == Path {
		if s = plainSeparators(s); strings.HasPrefix(s, "**/") {
			s = "/" + s
		}
	}
	var out []Elem
	made := map[string]Elem{} // classes: a pattern may have thousands that are alike
	for i := 0; i < len(s); {
		switch c := s[i]; c {
		case '*':
			var e Elem
			e, i = star(s, i, mode, &out)
			out = append(out, e)
		case '?':
			e, ok := made["?"]
			if !ok {
				e = anyChar(mode)
				made["?"] = e
			}
			out = append(out, e)
			i++
		case '[':
			end := skipClass(s, i)
			e, ok := made[s[i:end]]
			if !ok {
				var err error
				if e, err = class(s[i:end], mode); err != nil {
					return nil, err
				}
				made[s[i:end]] = e
			}
			out = append(out, e)
			i = end
		case '\\':
			if i+1 == len(s) {
				return nil, errorf(BadGlob, `a backslash itself is written \\\\`, "pattern %q ends in a lone backslash", s)
			}
			out = append(out, literal(s[i+1]))
			i += 2
		default:
			out = append(out, literal(c))
			i++
		}
	}
	return out, nil
}

func literal(c byte) Elem { return Elem{Kind: Lit, Seqs: [][]Range{{{c, c}}}} }

// star reads a run of asterisks. In a path, ** that makes up a whole segment
// stands for any number of segments, none included; it may take back the slash
// before it from out.
func star(s string, i int, mode Mode, out *[]Elem) (Elem, int) {
	end := i
	for end < len(s) && s[end] == '*' {
		end++
	}
	switch {
	case mode == Name:
		return Elem{Kind: Star}, end
	case mode == Token:
		return Elem{Kind: AnyStar}, end
	case end == i+1:
		return Elem{Kind: Star}, end
	}
	if i > 0 && s[i-1] != '/' || end < len(s) && s[end] != '/' {
		return Elem{Kind: AnyStar}, end
	}
	for { // a/**/**/b is a/**/b
		next := end
		for next++; next < len(s) && s[next] == '*'; {
			next++
		}
		if next < end+3 || next < len(s) && s[next] != '/' {
			break
		}
		end = next
	}
	switch {
	case end < len(s):
		return Elem{Kind: OptDeep}, end + 1
	case i > 1:
		*out = (*out)[:len(*out)-1]
		return Elem{Kind: OptTail}, end
	}
	return Elem{Kind: AnyStar}, end
}

// alternativeBytes is what an alternative takes beside its text.
const alternativeBytes = 16

// Expanded is how many bytes a glob takes with its braces expanded, counted and not
// expanded: there may be any number.
func Expanded(text string) int {
	if checkText(text) != nil { // which nothing expands
		return alternativeBytes + len(text)
	}
	count, size := expanded(text)
	return size + alternativeBytes*count
}

// expanded counts alternatives and their bytes, both up to a bound that is far above
// what is accepted.
func expanded(s string) (count, size int) {
	const most = 1 << 28
	open, parts, end, err := firstBrace(s)
	if err != nil || open < 0 {
		return 1, len(s)
	}
	heads, headSize := 0, 0
	for _, p := range parts {
		n, bytes := expanded(p)
		heads, headSize = min(most, heads+n), min(most, headSize+bytes)
	}
	tails, tailSize := expanded(s[end:])
	count = min(most, heads*tails)
	return count, min(most, open*count+headSize*tails+tailSize*heads)
}

// expand replaces braces by their alternatives: a{b,c}d is abd and acd. Braces
// without a comma are plain characters.
func expand(s string) ([]string, error) {
	if err := checkText(s); err != nil {
		return nil, err
	}
	if !strings.Contains(s, "{") {
		return []string{s}, nil
	}
	return expandUpTo(s, MaxAlternatives)
}

// checkText refuses what is too long, and classes that nothing closes: each would be
// looked for to the end.
func checkText(s string) error {
	if len(s) > maxLength {
		return errorf(TooLong, "", "the pattern has %d bytes; the limit is %d", len(s), maxLength)
	}
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '[':
			end := skipClass(s, i)
			if end == i+1 {
				return errNotClosed()
			}
			i = end - 1
		}
	}
	return nil
}

func errNotClosed() error {
	return errorf(BadGlob, `a bracket itself is written \[`, "pattern has a [ that nothing closes")
}

// Bounds of a pattern: of its text, the text of all its alternatives, and the
// nesting of its braces.
const (
	maxLength     = 1 << 16
	maxExpanded   = 1 << 18
	maxBraceDepth = 16
)

func expandUpTo(s string, limit int) ([]string, error) {
	open, parts, end, err := firstBrace(s)
	if err != nil {
		return nil, err
	}
	if open < 0 {
		return []string{s}, nil
	}
	tails, err := expandUpTo(s[end:], limit)
	if err != nil {
		return nil, err
	}
	var out []string
	size := 0
	for _, p := range parts {
		heads, err := expandUpTo(p, limit)
		if err != nil {
			return nil, err
		}
		if len(out)+len(heads)*len(tails) > limit {
			return nil, errorf(TooLong, "", "pattern expands to more than %d alternatives", limit)
		}
		for _, h := range heads {
			for _, t := range tails {
				if size += open + len(h) + len(t); size > maxExpanded {
					return nil, errorf(TooLong, "", "the pattern expands to more than %d bytes", maxExpanded)
				}
				out = append(out, s[:open]+h+t)
			}
		}
	}
	return out, nil
}

// firstBrace finds the first brace expression that has alternatives: where it
// opens (-1: none), its parts, and where the text after it begins.
func firstBrace(s string) (open int, parts []string, end int, err error) {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '[':
			i = skipClass(s, i) - 1
		case '{':
			parts, end := braceParts(s, i)
			if end < 0 {
				return 0, nil, 0, errorf(BadGlob, `a brace itself is written \{`, "pattern has a { that nothing closes, or braces more than %d deep", maxBraceDepth)
			}
			if len(parts) > 1 {
				return i, parts, end, nil
			}
			// {x} is plain, but x may have braces of its own: go on inside.
		}
	}
	return -1, nil, 0, nil
}

func braceParts(s string, open int) (parts []string, end int) {
	depth, start := 0, open+1
	for i := open; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '[':
			i = skipClass(s, i) - 1
		case '{':
			if depth++; depth > maxBraceDepth {
				return nil, -1
			}
		case ',':
			if depth == 1 {
				parts = append(parts, s[start:i])
				start = i + 1
			}
		case '}':
			if depth--; depth == 0 {
				return append(parts, s[start:i]), i + 1
			}
		}
	}
	return nil, -1
}

// skipClass returns where the text after the class that opens at i begins; for
// a class that nothing closes, the end of its [.
func skipClass(s string, i int) int {
	j := i + 1
	if j < len(s) && (s[j] == '!' || s[j] == '^') {
		j++
	}
	for first := true; j < len(s); first = false {
		switch {
		case s[j] == ']' && !first:
			return j + 1
		case s[j] == '\\':
			j++
		}
		j++
	}
	return i + 1
}
