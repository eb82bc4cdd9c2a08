// SPDX-License-Identifier: Apache-2.0

package pattern

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

type runeRange struct{ lo, hi rune }

// class parses a bracket expression, as skipClass delimits it.
func class(s string, mode Mode) (Elem, error) {
	if len(s) == 1 {
		return Elem{}, errNotClosed()
	}
	body := s[1 : len(s)-1]
	negated := body != "" && (body[0] == '!' || body[0] == '^')
	if negated {
		body = body[1:]
	}
	var set []runeRange
	for body != "" {
		lo, rest, err := classChar(body)
		if err != nil {
			return Elem{}, err
		}
		hi := lo
		if len(rest) > 1 && rest[0] == '-' {
			if hi, rest, err = classChar(rest[1:]); err != nil {
				return Elem{}, err
			}
		}
		if hi < lo {
			return Elem{}, errorf(BadGlob, "", "the range %c-%c in the pattern runs backwards", lo, hi)
		}
		set = append(set, runeRange{lo, hi})
		body = rest
	}
	if !negated {
		set = subtractSlash(set, mode)
		if len(set) == 0 {
			return Elem{}, errorf(NeverMatches, "", "a class in the pattern matches no character but /, where it may not")
		}
		return Elem{Kind: Lit, Seqs: sequences(normalize(set))}, nil
	}
	return negatedClass(set, mode), nil
}

func classChar(s string) (rune, string, error) {
	if s[0] == '\\' && len(s) > 1 {
		s = s[1:]
	}
	r, n := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError && n <= 1 {
		return 0, "", errorf(BadGlob, "", "a class in the pattern has a byte that is not UTF-8")
	}
	return r, s[n:], nil
}

// subtractSlash keeps a class of a path from matching the separator.
func subtractSlash(set []runeRange, mode Mode) []runeRange {
	if mode == Token {
		return set
	}
	var out []runeRange
	for _, r := range set {
		if r.lo > '/' || r.hi < '/' {
			out = append(out, r)
			continue
		}
		if r.lo < '/' {
			out = append(out, runeRange{r.lo, '/' - 1})
		}
		if r.hi > '/' {
			out = append(out, runeRange{'/' + 1, r.hi})
		}
	}
	return out
}

// normalize sorts and joins ranges.
func normalize(set []runeRange) []runeRange {
	set = slices.Clone(set)
	slices.SortFunc(set, func(a, b runeRange) int { return int(a.lo) - int(b.lo) })
	out := set[:0]
	for _, r := range set {
		if n := len(out); n > 0 && r.lo <= out[n-1].hi+1 {
			out[n-1].hi = max(out[n-1].hi, r.hi)
			continue
		}
		out = append(out, r)
	}
	return out
}

func anyChar(mode Mode) Elem { return negatedClass(nil, mode) }

// stray are the bytes with which no UTF-8 sequence begins: each counts as a
// character of its own where any character will do.
var stray = [][]Range{{{0x80, 0xC1}}, {{0xF5, 0xFF}}}

// anyMulti are all sequences of more than one byte, well-formed or nearly so.
var anyMulti = [][]Range{
	{{0xC2, 0xDF}, {0x80, 0xBF}},
	{{0xE0, 0xEF}, {0x80, 0xBF}, {0x80, 0xBF}},
	{{0xF0, 0xF4}, {0x80, 0xBF}, {0x80, 0xBF}, {0x80, 0xBF}},
}

func negatedClass(set []runeRange, mode Mode) Elem {
	if mode != Token {
		set = append(slices.Clone(set), runeRange{'/', '/'})
	}
	set = normalize(set)
	var holes []runeRange
	next := rune(1) // NUL is in no key
	for _, r := range set {
		if r.lo > next {
			holes = append(holes, runeRange{next, r.lo - 1})
		}
		next = max(next, r.hi+1)
	}
	var seqs [][]Range
	if next <= utf8.RuneSelf { // no character above ASCII is excluded
		if next < utf8.RuneSelf {
			holes = append(holes, runeRange{next, utf8.RuneSelf - 1})
		}
		seqs = append(sequences(holes), anyMulti...)
	} else {
		if next <= utf8.MaxRune {
			holes = append(holes, runeRange{next, utf8.MaxRune})
		}
		seqs = sequences(holes)
	}
	return Elem{Kind: Lit, Seqs: append(seqs, stray...)}
}

// sequences returns the UTF-8 of ranges of characters as byte ranges.
func sequences(set []runeRange) [][]Range {
	var out [][]Range
	bounds := []rune{0x7F, 0x7FF, 0xFFFF, utf8.MaxRune}
	for _, r := range set {
		lo := r.lo
		for _, b := range bounds {
			if hi := min(r.hi, b); lo <= hi {
				out = append(out, sequencesIn(utf8Bytes(lo), utf8Bytes(hi), Range{0x80, 0xBF})...)
				lo = hi + 1
			}
		}
	}
	return out
}

// utf8Bytes encodes without the standard library's refusal of surrogates,
// which would make a range that spans them end early.
func utf8Bytes(r rune) []byte {
	switch {
	case r <= 0x7F:
		return []byte{byte(r)}
	case r <= 0x7FF:
		return []byte{0xC0 | byte(r>>6), 0x80 | byte(r&0x3F)}
	case r <= 0xFFFF:
		return []byte{0xE0 | byte(r>>12), 0x80 | byte(r>>6&0x3F), 0x80 | byte(r&0x3F)}
	}
	return []byte{0xF0 | byte(r>>18), 0x80 | byte(r>>12&0x3F), 0x80 | byte(r>>6&0x3F), 0x80 | byte(r&0x3F)}
}

// sequencesIn returns byte-range sequences that together match exactly the
// strings from lo to hi, in the order of bytes, whose bytes after the first lie
// in rest. Both have one length.
func sequencesIn(lo, hi []byte, rest Range) [][]Range {
	n := len(lo)
	if n == 0 {
		return [][]Range{nil}
	}
	if lo[0] == hi[0] {
		return prefixed(Range{lo[0], lo[0]}, sequencesIn(lo[1:], hi[1:], rest))
	}
	lowest, highest := bytes.Repeat([]byte{rest.Lo}, n-1), bytes.Repeat([]byte{rest.Hi}, n-1)
	var out, tail [][]Range
	first, last := int(lo[0]), int(hi[0])
	if !bytes.Equal(lo[1:], lowest) {
		out = prefixed(Range{lo[0], lo[0]}, sequencesIn(lo[1:], highest, rest))
		first++
	}
	if !bytes.Equal(hi[1:], highest) {
		tail = prefixed(Range{hi[0], hi[0]}, sequencesIn(lowest, hi[1:], rest))
		last--
	}
	if first <= last {
		whole := []Range{{byte(first), byte(last)}}
		for range n - 1 {
			whole = append(whole, rest)
		}
		out = append(out, whole)
	}
	return append(out, tail...)
}

func prefixed(r Range, seqs [][]Range) [][]Range {
	out := make([][]Range, 0, len(seqs))
	for _, s := range seqs {
		out = append(out, append([]Range{r}, s...))
	}
	return out
}
