// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"strings"

	"github.com/actplane/actplane/policy/ir"
)

// Failure is a step that went otherwise than its case says.
type Failure struct {
	Step Step
	Got  string // the verdict, "" if the step makes no sense
	// Notes say which rule decided and why, or why the rule that was expected did
	// not.
	Notes []string
}

// Run acts out a case on a program, and returns the first step that fails, nil if
// none does. A verdict without a rule is satisfied by any rule.
func Run(p *ir.Program, c *Case) *Failure {
	s := New(p)
	for _, step := range c.Steps {
		before := s.explain(step)
		d, err := s.Do(step.Words)
		if err != nil {
			return &Failure{Step: step, Notes: []string{err.Error()}}
		}
		if d.Effect == ir.Allow && step.Verdict == "ok" || d.Effect.String() == step.Verdict && (step.Rule == "" || step.Rule == d.Rule) {
			continue
		}
		f := &Failure{Step: step, Got: d.String()}
		if d.Why != "" {
			f.Notes = append(f.Notes, d.Why)
		}
		f.Notes = append(f.Notes, before...)
		return f
	}
	return nil
}

// explain says of a rule that a step expects why its clauses don't match; without
// a rule, of all clauses about the operation. The state is that before the step.
func (s *Scope) explain(step Step) []string {
	if step.Verdict == "ok" || len(step.Words) < 3 || objects(step.Words[1]) != len(step.Words)-2 && !strings.HasPrefix(step.Words[1], "exec") {
		return nil
	}
	p := s.Process(step.Words[0])
	if p.ended || step.Words[1] == "fork" || step.Words[1] == "exit" || step.Words[1] == "killed" || strings.HasPrefix(step.Words[1], "pipe") {
		return nil
	}
	o, err := s.operation(p, step.Words[1], step.Words[2:])
	if err != nil {
		return nil
	}
	const most = 8
	var out []string
	found := false
	for i := range s.program.Clauses {
		c := &s.program.Clauses[i]
		if step.Rule != "" && s.program.Rules[c.Rule].Name != step.Rule {
			continue
		}
		found = true
		why := s.nearest(c, o)
		if len(out) < most && why != "" && (step.Rule != "" || !strings.HasPrefix(why, "it is about ")) {
			out = append(out, fmt.Sprintf("%s: `%s` does not match: %s", c.Pos, c.Text, why))
		}
	}
	if !found && step.Rule != "" {
		out = append(out, fmt.Sprintf("the policy has no rule %q", step.Rule))
	}
	return out
}

// nearest says why a clause matches none of an operation's events, for the event
// that it is about.
func (s *Scope) nearest(c *ir.Clause, o *operation) string {
	best := ""
	for _, e := range o.events {
		why := s.mismatch(c, o.subject, e, s.wouldHold(o.subject, e))
		if why == "" {
			return ""
		}
		if best == "" || strings.HasPrefix(best, "it is about ") {
			best = why
		}
	}
	return best
}
