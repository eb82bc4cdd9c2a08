// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"slices"
	"strings"

	"github.com/actplane/actplane/policy/dfa"
)

// sequences are the argv tokens of the clauses of both policies: each distinct sequence
// has a number, and each distinct glob. words are arguments, one for each set of globs
// that some argument matches all of, and no other.
type sequences struct {
	list   [][]int // of globs
	number map[string]int
	globs  map[string]int
	words  []argument
	byGlob [][]int // words by glob
	work   int     // how much may still be searched
}

// argument is an example, and the globs that it matches.
type argument struct {
	text  string
	globs map[int]bool
}

func newSequences() *sequences {
	return &sequences{number: map[string]int{}, globs: map[string]int{}, work: maxWork}
}

// sequence returns the number of a sequence of token globs.
func (s *sequences) sequence(args []string) int {
	key := strings.Join(args, "\x00")
	if i, ok := s.number[key]; ok {
		return i
	}
	var globs []int
	for _, a := range args {
		if _, ok := s.globs[a]; !ok {
			s.globs[a] = len(s.globs)
		}
		globs = append(globs, s.globs[a])
	}
	s.number[key] = len(s.list)
	s.list = append(s.list, globs)
	return s.number[key]
}

// find looks for words for all sequences of two policies.
func (s *sequences) find(sides [2]Policy, limit int) (complete bool) {
	var at [2]map[int]int // the glob of each position
	for side, p := range sides {
		at[side] = map[int]int{}
		for i := range p.Image.Clauses {
			x := &p.Image.Clauses[i]
			args := p.Program.Clauses[x.Clause].Args
			if len(args) == 0 {
				continue
			}
			for j, glob := range s.list[s.sequence(args)] {
				at[side][x.Arg-len(args)+1+j] = glob
			}
		}
	}
	w, complete := walk([2]*dfa.Image{sides[0].Image, sides[1].Image}, dfa.Token, tokens{readable()}, "/", limit)
	s.byGlob = make([][]int, len(s.globs))
	for _, p := range w.places {
		word := argument{text: string(p.key), globs: map[int]bool{}}
		for side := range sides {
			for _, r := range rowsOf(sides[side].Image, p.rows[side]) {
				for position, glob := range at[side] {
					if r.Tokens != nil && r.Tokens[position/64]>>(position%64)&1 == 1 {
						word.globs[glob] = true
					}
				}
			}
		}
		for glob := range word.globs {
			s.byGlob[glob] = append(s.byGlob[glob], len(s.words))
		}
		s.words = append(s.words, word)
	}
	return complete
}

// arguments is one argv that has some sequences and as little else as can be.
type arguments struct {
	argv    []string     // without argv[0]
	matched map[int]bool // of the sequences that were asked about
}

// maxArgvs bounds the search for argvs of one question.
const maxArgvs = 1 << 12

// progress is how far the sequences have been matched by some words.
type progress struct {
	at   []int
	argv []string
}

// argvs finds the argvs that have all sequences of wanted, each word of which is needed
// for one of them: more words only match more. They differ in what they match of others.
func (s *sequences) argvs(wanted, others []int) (out []arguments, complete bool) {
	all := slices.Concat(wanted, others)
	seen := map[string]bool{}
	matched := map[string]bool{}
	queue := []progress{{at: make([]int, len(all))}}
	for i := 0; i < len(queue); i++ {
		if s.work--; i > maxArgvs || s.work <= 0 {
			return out, false
		}
		p := queue[i]
		if s.done(all[:len(wanted)], p.at) {
			a := arguments{argv: p.argv, matched: map[int]bool{}}
			key := ""
			for j, seq := range all {
				if p.at[j] == len(s.list[seq]) {
					a.matched[seq] = true
					key += "1"
				} else {
					key += "0"
				}
			}
			if !matched[key] {
				matched[key] = true
				out = append(out, a)
			}
			continue
		}
		for _, word := range s.useful(all[:len(wanted)], p.at) {
			next := progress{at: s.advance(all, p.at, &s.words[word]), argv: append(slices.Clip(p.argv), s.words[word].text)}
			if key := positions(next.at); !seen[key] {
				seen[key] = true
				queue = append(queue, next)
			}
		}
	}
	return out, true
}

func (s *sequences) done(wanted, at []int) bool {
	for i, seq := range wanted {
		if at[i] < len(s.list[seq]) {
			return false
		}
	}
	return true
}

// useful lists the words that one of the wanted sequences goes on with.
func (s *sequences) useful(wanted, at []int) (out []int) {
	for i, seq := range wanted {
		if at[i] < len(s.list[seq]) {
			for _, word := range s.byGlob[s.list[seq][at[i]]] {
				if !slices.Contains(out, word) {
					out = append(out, word)
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

func (s *sequences) advance(all, at []int, word *argument) []int {
	next := slices.Clone(at)
	for i, seq := range all {
		if at[i] < len(s.list[seq]) && word.globs[s.list[seq][at[i]]] {
			next[i]++
		}
	}
	return next
}

func positions(at []int) string {
	out := make([]byte, 0, 2*len(at))
	for _, v := range at {
		out = append(out, byte(v), byte(v>>8))
	}
	return string(out)
}
