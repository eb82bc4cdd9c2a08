// SPDX-License-Identifier: Apache-2.0

package model

import (
	"strings"
	"unicode/utf8"

	"github.com/actplane/actplane/policy/pattern"
)

// Match tells whether a canonical glob matches a key. It tries everything, and
// shares no code with package pattern or the automaton: it is the second opinion
// on section 6.
func Match(glob, key string, mode pattern.Mode) bool {
	for _, g := range expandGlob(glob) {
		if matchGlob(g, key, mode) {
			return true
		}
	}
	return false
}

// expandGlob replaces braces by their alternatives.
func expandGlob(g string) []string {
	for i := 0; i < len(g); i++ {
		switch g[i] {
		case '\\':
			i++
		case '[':
			i += classLength(g[i:]) - 1
		case '{':
			depth, start := 0, i+1
			var parts []string
			for j := i; j < len(g); j++ {
				switch g[j] {
				case '\\':
					j++
				case '[':
					j += classLength(g[j:]) - 1
				case '{':
					depth++
				case ',':
					if depth == 1 {
						parts = append(parts, g[start:j])
						start = j + 1
					}
				case '}':
					depth--
					if depth > 0 {
						continue
					}
					if len(parts) == 0 {
						goto plain
					}
					var out []string
					for _, p := range append(parts, g[start:j]) {
						out = append(out, expandGlob(g[:i]+p+g[j+1:])...)
					}
					return out
				}
			}
		plain:
		}
	}
	return []string{g}
}

// classLength is the length of the class that g begins with; 1 if nothing closes it.
func classLength(g string) int {
	i := 1
	if i < len(g) && (g[i] == '!' || g[i] == '^') {
		i++
	}
	for n := 0; i < len(g); n++ {
		if g[i] == ']' && n > 0 {
			return i + 1
		}
		if g[i] == '\\' {
			i++
		}
		i++
	}
	return 1
}

// matchGlob matches a glob without alternatives.
func matchGlob(g, k string, mode pattern.Mode) bool {
	return (&matcher{mode: mode, known: map[[2]int]bool{}}).match(g, k)
}

// matcher remembers which rest of a key matches which rest of the glob: without,
// every further star multiplies the work.
type matcher struct {
	mode  pattern.Mode
	known map[[2]int]bool // by the lengths of the rests
}

func (m *matcher) match(g, k string) bool {
	at := [2]int{len(g), len(k)}
	matches, ok := m.known[at]
	if !ok {
		matches = m.step(g, k)
		m.known[at] = matches
	}
	return matches
}

func (m *matcher) step(g, k string) bool {
	mode := m.mode
	if g == "" {
		return k == ""
	}
	if mode == pattern.Path && strings.HasPrefix(g, "/**") {
		rest := strings.TrimLeft(g[3:], "*")
		if rest == "" {
			return k == "" || k[0] == '/'
		}
		if next := strings.TrimPrefix(rest, "/**"); next != rest {
			if next = strings.TrimLeft(next, "*"); next == "" || next[0] == '/' {
				return m.match(rest, k) // a/**/**/b is a/**/b
			}
		}
		if rest[0] == '/' {
			if k == "" || k[0] != '/' {
				return false
			}
			for i := range len(k) {
				if k[i] == '/' && m.match(rest, k[i:]) {
					return true
				}
			}
			return false
		}
	}
	switch g[0] {
	case '*':
		rest := strings.TrimLeft(g, "*")
		across := mode == pattern.Token || mode == pattern.Path && len(g)-len(rest) > 1
		for i := 0; i <= len(k); i++ {
			if m.match(rest, k[i:]) {
				return true
			}
			if i < len(k) && k[i] == '/' && !across {
				break
			}
		}
		return false
	case '?':
		_, n, _ := firstChar(k)
		return n > 0 && (k[0] != '/' || mode == pattern.Token) && m.match(g[1:], k[n:])
	case '[':
		n := classLength(g)
		taken := classPrefix(g[1:n-1], k, mode)
		return taken > 0 && m.match(g[n:], k[taken:])
	case '\\':
		g = g[1:]
	}
	return k != "" && k[0] == g[0] && m.match(g[1:], k[1:])
}

// firstChar returns the first character and its length: a sequence that has
// the form of UTF-8, or a byte that begins none. exact tells that it is the
// shortest form of a code point.
func firstChar(k string) (r rune, n int, exact bool) {
	if k == "" {
		return 0, 0, false
	}
	c := k[0]
	switch {
	case c < 0x80:
		return rune(c), 1, true
	case c < 0xC2 || c > 0xF4:
		return -1, 1, true
	case c < 0xE0:
		n = 2
	case c < 0xF0:
		n = 3
	default:
		n = 4
	}
	if len(k) < n {
		return 0, 0, false
	}
	r = rune(c) & (0x7F >> n)
	for _, b := range []byte(k[1:n]) {
		if b&0xC0 != 0x80 {
			return 0, 0, false
		}
		r = r<<6 | rune(b&0x3F)
	}
	return r, n, r >= []rune{0, 0, 0x80, 0x800, 0x10000}[n] && r <= utf8.MaxRune
}

// classPrefix returns how many bytes of k a class takes, 0 for none.
func classPrefix(body, k string, mode pattern.Mode) int {
	r, n, exact := firstChar(k)
	if n == 0 || r == '/' && mode != pattern.Token {
		return 0
	}
	negated := body[0] == '!' || body[0] == '^'
	if negated {
		body = body[1:]
	}
	in, wide := false, false
	for body != "" {
		lo, size := classMember(body)
		body = body[size:]
		hi := lo
		if len(body) > 1 && body[0] == '-' {
			hi, size = classMember(body[1:])
			body = body[1+size:]
		}
		in = in || r >= lo && r <= hi
		wide = wide || hi >= 0x80
	}
	if (wide || !negated) && !exact || in == negated {
		return 0
	}
	return n
}

// classMember returns the first member of a class and its length.
func classMember(body string) (rune, int) {
	skip := 0
	if body[0] == '\\' && len(body) > 1 {
		skip = 1
	}
	r, n := utf8.DecodeRuneInString(body[skip:])
	return r, skip + n
}
