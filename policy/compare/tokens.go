// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"maps"
	"slices"
	"strings"

	"github.com/actplane/actplane/policy/dfa"
	"github.com/actplane/actplane/policy/model"
	"github.com/actplane/actplane/policy/pattern"
)

// sequences are the argv tokens of the clauses and gates of both policies: each distinct sequence
// has a number, and each distinct glob. words are arguments, one for each set of globs
// that some argument matches all of, and no other.
type sequences struct {
	list   [][]int // of globs
	number map[string]int
	globs  map[string]int
	words  []argument
	byGlob [][]int             // words by glob
	last   [2]map[int][]string // by the position of its last token: a sequence of each policy
	work   *budget
	// narrow: there are more words than can be tried, so that of those that a sequence
	// goes on with only a few are, those first that match least.
	narrow bool
}

// argument is an example, and the globs that it matches.
type argument struct {
	text  string
	globs map[int]bool
}

func newSequences(work *budget) *sequences {
	return &sequences{number: map[string]int{}, globs: map[string]int{}, work: work}
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

// find looks for words for all sequences of two policies, half of the work for the walk.
func (s *sequences) find(sides [2]Policy, limit int, work *budget) (complete bool) {
	var at [2]map[int]int // the glob of each position
	for side, p := range sides {
		at[side] = map[int]int{}
		s.last[side], _ = dfa.ArgSequences(p.Program) // of a program that was compiled
		for end, args := range s.last[side] {
			for i, glob := range s.list[s.sequence(args)] {
				at[side][end-len(args)+1+i] = glob
			}
		}
	}
	half := &budget{work.left / 2}
	work.left -= half.left
	w, complete := walk([2]*dfa.Image{sides[0].Image, sides[1].Image}, dfa.Token, tokens{readable()}, "/", limit, half)
	s.byGlob = make([][]int, len(s.globs))
	for _, p := range w.places {
		if !work.spend(64 + 16*(len(at[0])+len(at[1]))) {
			complete = false
			break
		}
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
		s.add(word)
	}
	if work.left += half.left; !complete {
		s.plain()
		s.sort()
	}
	return complete
}

func (s *sequences) add(word argument) {
	for glob := range word.globs {
		s.byGlob[glob] = append(s.byGlob[glob], len(s.words))
	}
	s.words = append(s.words, word)
}

// sort puts those words first that match least, where not all can be tried.
func (s *sequences) sort() {
	s.narrow = true
	slices.SortStableFunc(s.words, func(x, y argument) int { return len(x.globs) - len(y.globs) })
	clear(s.byGlob)
	for i, word := range s.words {
		for glob := range word.globs {
			s.byGlob[glob] = append(s.byGlob[glob], i)
		}
	}
}

// plain adds a word for each glob that has none, the plainest that it matches.
func (s *sequences) plain() {
	globs := slices.Sorted(maps.Keys(s.globs))
	for _, glob := range globs {
		word := argument{text: plainest(glob), globs: map[int]bool{}}
		if len(s.byGlob[s.globs[glob]]) > 0 {
			continue
		}
		for _, other := range globs {
			if !s.work.spend(64 + 4*len(other)*len(word.text)) {
				return
			}
			if model.Match(other, word.text, pattern.Token) {
				word.globs[s.globs[other]] = true
			}
		}
		if word.globs[s.globs[glob]] {
			s.add(word)
		}
	}
}

// implies tells whether all arguments that have some tokens have others, too. False is
// also the answer where not all words are known.
func (s *sequences) implies(more, less []string) bool {
	for _, token := range less {
		i := slices.IndexFunc(more, func(x string) bool { return x == token || s.narrower(x, token) })
		if i < 0 {
			return false
		}
		more = more[i+1:]
	}
	return true
}

// narrower tells whether all words that a glob matches another matches as well.
func (s *sequences) narrower(glob, than string) bool {
	i, ok := s.globs[glob]
	j, known := s.globs[than]
	if !ok || !known || s.narrow || !s.work.spend(len(s.byGlob[i])) {
		return false
	}
	return !slices.ContainsFunc(s.byGlob[i], func(word int) bool { return !s.words[word].globs[j] })
}

// arguments is one argv that has some sequences and as little else as can be.
type arguments struct {
	argv    []string     // without argv[0]
	matched map[int]bool // of the sequences that were asked about
}

// maxArgvs and maxQueue bound the search for argvs of one question.
const (
	maxArgvs = 1 << 12
	maxQueue = 1 << 16
	// maxNarrow is how many words are tried where there are too many.
	maxNarrow = 6
)

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
		if i > maxArgvs || len(queue) > maxQueue || !s.work.spend(8+2*len(all)) {
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
		words := s.useful(all[:len(wanted)], p.at)
		if s.narrow {
			words = words[:min(len(words), maxNarrow)]
		}
		for _, word := range words {
			if !s.work.spend(8 + 2*len(all)) {
				return out, false
			}
			next := progress{at: s.advance(all, p.at, &s.words[word]), argv: append(slices.Clip(p.argv), s.words[word].text)}
			if key := positions(next.at); !seen[key] {
				seen[key] = true
				queue = append(queue, next)
			}
		}
	}
	return out, !s.narrow
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
			out = append(out, s.byGlob[s.list[seq][at[i]]]...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
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
