// SPDX-License-Identifier: Apache-2.0

package compare

// answer is a state and arguments in which some predicates match and others don't.
type answer struct {
	state state
	argv  []string
	told  bool // both decide the same, and say something else
}

// maxSteps bounds the search for one answer.
const maxSteps = 1 << 14

// solve finds an answer in which all of yes match and none of no. complete is false
// where the search was given up.
func (s *sequences) solve(yes, no []predicate) (out answer, found, complete bool) {
	base := state{}
	var wanted, others []int
	for _, p := range yes {
		for _, l := range p.literals {
			if v, ok := base[l.atom]; ok && v != l.want {
				return out, false, true
			}
			base[l.atom] = l.want
		}
		if p.tokens >= 0 {
			wanted = append(wanted, p.tokens)
		}
	}
	for _, p := range no {
		if p.tokens >= 0 {
			others = append(others, p.tokens)
		}
	}
	all, complete := s.argvs(wanted, others)
	for _, a := range all {
		var rest []predicate
		for _, p := range no {
			if p.tokens < 0 || a.matched[p.tokens] {
				rest = append(rest, p)
			}
		}
		steps := maxSteps
		if st, ok := refute(base, rest, &steps, s.work); ok {
			return answer{state: st, argv: a.argv}, true, true
		}
		complete = complete && steps > 0 && !s.work.spent()
	}
	return out, false, complete
}

// refute extends a state so that no predicate matches. What is not in a state may be
// either way; in the answer it is false.
func refute(s state, no []predicate, steps *int, work *budget) (state, bool) {
	if *steps--; *steps <= 0 || !work.spend(8+4*len(s)) {
		return nil, false
	}
	for i, p := range no {
		if !work.spend(2 + 2*len(p.literals)) {
			return nil, false
		}
		open, refuted := p.open(s)
		if refuted {
			continue
		}
		for _, l := range open {
			next := state{l.atom: !l.want}
			for atom, v := range s {
				next[atom] = v
			}
			if out, ok := refute(next, no[i+1:], steps, work); ok {
				return out, true
			}
		}
		return nil, false
	}
	return s, true
}

// open lists the literals of a predicate that a state leaves open, those first that are
// refuted by what is so in the beginning; refuted tells that one of the others is false.
func (p *predicate) open(s state) (open []literal, refuted bool) {
	var later []literal
	for _, l := range p.literals {
		switch v, ok := s[l.atom]; {
		case ok && v != l.want:
			return nil, true
		case ok:
		case l.want:
			open = append(open, l)
		default:
			later = append(later, l)
		}
	}
	return append(open, later...), false
}
