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
	if !begins(glob, key) {
		return false
	}
	for _, g := range expandGlob(glob) {
		if matchGlob(g, key, mode) {
			return true
		}
	}
	return false
}

// begins tells whether a key can match as far as a glob says it in plain characters: most
// keys cannot, and that is found out at once.
func begins(glob, key string) bool {
	for i := 0; i < len(glob) && !special(glob[i]); i++ {
		if i < len(key) && key[i] == glob[i] {
			continue
		}
		return glob[i] == '/' && i+1 < len(glob) && special(glob[i+1]) // /p/** is also /p
	}
	return true
}

func special(c byte) bool { return c == '*' || c == '?' || c == '[' || c == '{' || c == '\\' }

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
	m := matcher{mode: mode, key: len(k)}
	return m.match(g, k)
}

// matcher remembers which rest of a key was held against which rest of the glob that
// begins with a star: without, every further star multiplies the work.
type matcher struct {
	mode  pattern.Mode
	key   int
	tried map[int][]uint64 // by the length of the glob's rest, a set of lengths of the key's
}

// again tells whether two rests are tried once more: then they don't match.
func (m *matcher) again(g, k string) bool {
	set := m.tried[len(g)]
	if set == nil {
		if m.tried == nil {
			m.tried = map[int][]uint64{}
		}
		set = make([]uint64, m.key/64+1)
		m.tried[len(g)] = set
	}
	word, bit := &set[len(k)/64], uint64(1)<<(len(k)%64)
	was := *word&bit != 0
	*word |= bit
	return was
}

func (m *matcher) match(g, k string) bool {
	for g != "" {
		if rest, ok := m.directories(g); ok {
			switch {
			case rest == "":
				return k == "" || k[0] == '/'
			case k == "" || k[0] != '/' || m.again(g, k):
				return false
			case m.match(rest, k):
				return true
			}
			next := strings.IndexByte(k[1:], '/')
			if next < 0 {
				return false
			}
			k = k[1+next:]
			continue
		}
		switch g[0] {
		case '*':
			rest := strings.TrimLeft(g, "*")
			across := m.mode == pattern.Token || m.mode == pattern.Path && len(g)-len(rest) > 1
			switch {
			case m.again(g, k):
				return false
			case m.match(rest, k):
				return true
			case k == "" || k[0] == '/' && !across:
				return false
			}
			k = k[1:]
			continue
		case '?':
			_, n, _ := firstChar(k)
			if n == 0 || k[0] == '/' && m.mode != pattern.Token {
				return false
			}
			g, k = g[1:], k[n:]
			continue
		case '[':
			n := classLength(g)
			taken := classPrefix(g[1:n-1], k, m.mode)
			if taken == 0 {
				return false
			}
			g, k = g[n:], k[taken:]
			continue
		case '\\':
			g = g[1:]
		}
		if k == "" || k[0] != g[0] {
			return false
		}
		g, k = g[1:], k[1:]
	}
	return k == ""
}

// directories returns what follows a segment of stars, if a glob of paths begins with
// one that is not the end of a longer segment; "" is all below a directory.
func (m *matcher) directories(g string) (rest string, ok bool) {
	if m.mode != pattern.Path {
		return "", false
	}
	for strings.HasPrefix(g, "/**") {
		rest = strings.TrimLeft(g[3:], "*")
		if rest != "" && rest[0] != '/' {
			return "", false
		}
		next := strings.TrimPrefix(rest, "/**")
		if next == rest {
			return rest, true
		}
		if next = strings.TrimLeft(next, "*"); next != "" && next[0] != '/' {
			return rest, true
		}
		g = rest // a/**/**/b is a/**/b
	}
	return "", false
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
