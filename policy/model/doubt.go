// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/actplane/actplane/policy/ir"
)

// Doubt is a step that a trace leaves open: it names a host, of whose addresses nothing
// is known, and the policy goes by addresses.
type Doubt struct {
	Step int // index in Case.Steps
	Text string
}

// Doubts acts out the steps of a case, up to one that fails, and returns those that are
// decided in a way in which they are perhaps not decided where the addresses are known.
func Doubts(p *ir.Program, c *Case) (out []Doubt) {
	s := New(p)
	c = c.under(p.Workspace)
	for i := range c.Steps {
		step := &c.Steps[i]
		text := s.doubt(step.Words)
		d, err := s.Do(step.Words)
		if err != nil || !step.satisfied(d) {
			break
		}
		if text != "" {
			out = append(out, Doubt{i, text})
		}
	}
	return out
}

// doubt says of a step that names a host what its address would decide, "" of others.
func (s *Scope) doubt(words []string) string {
	if !needsVerdict(words) {
		return ""
	}
	switch words[1] {
	case "connect", "send", "recv", "bind":
	default:
		return ""
	}
	p := s.Process(words[0])
	o, err := s.operation(p, words[1], words[2:])
	if err != nil || len(o.events) == 0 || o.events[0].peer == nil || o.events[0].peer.host == "" {
		return ""
	}
	return s.unknownAddress(o)
}

// unknownAddress names the statement that would decide an operation on a host, or give
// a label by it, if it had an address that the statement names.
func (s *Scope) unknownAddress(o *operation) string {
	e := o.events[0]
	const say = "nothing is known of the addresses of %s: %s; where that is meant, write an address"
	got, _ := s.decide(o)
	for i := range s.program.Clauses {
		c := &s.program.Clauses[i]
		lifts := c.Effect == ir.Allow && got.Default != nil && s.lifts(i, *got.Default)
		if (c.Effect > got.Effect || lifts) && e.addressOf(c.Pattern) && s.otherwise(c, o.subject, e) {
			return fmt.Sprintf(say, e.peer.host, fmt.Sprintf("`%s` (%s) does not match", c.Text, c.Pos))
		}
	}
	if got.Clause != nil {
		for _, t := range got.Clause.Unless.Targets {
			if e.addressOf(t.Pattern) {
				return fmt.Sprintf(say, e.peer.host, fmt.Sprintf("`%s` does not excuse it", t))
			}
		}
	}
	for _, src := range s.program.Sources {
		if e.op != ir.Bind && src.Pattern.Kind == ir.Endpoint && e.addressOf(src.Pattern) {
			return fmt.Sprintf(say, e.peer.host, fmt.Sprintf("`%s` (%s) does not give its label", src.Text, src.Pos))
		}
	}
	return ""
}

// otherwise tells whether all of a clause's conditions are met but for its object.
func (s *Scope) otherwise(c *ir.Clause, p *Process, e *event) bool {
	unmet := 0
	for x := range s.conditions(c, p, e, s.wouldHold(p, e)) {
		if !x.Met && x.Part != Object {
			unmet++
		}
	}
	return unmet == 0
}

// addressOf tells whether a pattern is about addresses that a host can have, and about
// the event's port. These sets no host is looked up for.
func (e *event) addressOf(p ir.Pattern) bool {
	if p.Any || p.Host || strings.HasPrefix(p.Text, "unix:") {
		return false
	}
	host, ports := cutPorts(p.Text)
	return !slices.Contains([]string{"*", "@loopback", "@linklocal", "@metadata"}, host) && portIn(ports, e.peer.port)
}
