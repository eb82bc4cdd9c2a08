// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/actplane/actplane/policy/ir"
)

// Failure is a step that went otherwise than its case says.
type Failure struct {
	Step int      // index in Case.Steps; what follows it was not acted out
	Got  Decision // unless there is an Err
	Err  error    // the step makes no sense where it stands
	// Notes say which clause decided and on what, and why those that were expected
	// to did not.
	Notes []string
}

// Run acts out a case on a program, and returns the first step that fails, nil if
// none does. A verdict without a rule is satisfied by any rule. Relative paths are below
// the program's workspace.
func Run(p *ir.Program, c *Case) *Failure {
	s := New(p)
	c = c.under(p.Workspace)
	for i, step := range c.Steps {
		d, err := s.Do(step.Words)
		switch {
		case err != nil:
			return &Failure{Step: i, Err: err}
		case !step.satisfied(d):
			return &Failure{Step: i, Got: d, Notes: account(p, c, i, d)}
		}
	}
	return nil
}

func (s *Step) satisfied(d Decision) bool {
	return d.Effect == ir.Allow && s.Verdict == "ok" || d.Effect.String() == s.Verdict && (s.Rule == "" || s.Rule == d.Rule)
}

// account acts out a case up to a step that failed, keeps what led there, and says
// why the decision on it is what it is.
func account(p *ir.Program, c *Case, failed int, got Decision) (notes []string) {
	s := New(p)
	h := newHistory(s, c.Steps)
	for i := range failed {
		_, _ = s.Do(c.Steps[i].Words) // it did before
		h.note(i)
	}
	step := &c.Steps[failed]
	if got.Why != "" {
		notes = append(notes, got.Why)
	}
	if !needsVerdict(step.Words) {
		return notes
	}
	subject := s.Process(step.Words[0])
	o, err := s.operation(subject, step.Words[1], step.Words[2:])
	if err != nil {
		return notes
	}
	if got.Clause != nil {
		notes = append(notes, h.led(got.Clause, o)...)
	}
	if text := s.doubt(step.Words); text != "" {
		notes = append(notes, text)
	}
	if text := s.movedUnknown(o); text != "" {
		notes = append(notes, text)
	}
	if step.Verdict != "ok" {
		notes = append(notes, h.missed(step.Rule, got, o)...)
		if note := shellNote(step.Words); note != "" {
			notes = append(notes, note)
		}
	}
	return unique(notes)
}

// missed says of the clauses that were expected to decide why they did not: those
// of a rule or, without one, all about the operation.
func (h *history) missed(rule string, got Decision, o *operation) (notes []string) {
	const most = 4
	found, n := false, 0
	for i := range h.scope.program.Clauses {
		c := &h.scope.program.Clauses[i]
		if name := h.scope.program.Rules[c.Rule].Name; c == got.Clause || rule != "" && name != rule {
			continue
		}
		found = true
		_, miss := h.scope.nearest(c, o)
		switch {
		case miss == nil:
			notes = append(notes, fmt.Sprintf("%s: `%s` matches too: the strictest decides, and of these the first", c.Pos, c.Text))
		case n < most && (rule != "" || miss.Part != Operation):
			n++
			notes = append(notes, fmt.Sprintf("%s: `%s` does not match: %s", c.Pos, c.Text, miss.Text))
			notes = append(notes, h.led(c, o)...)
		}
	}
	if !found && rule != "" && got.Rule != rule {
		notes = append(notes, fmt.Sprintf("the policy has no rule %q", rule))
	}
	return notes
}

// nearest finds the one of an operation's events for which a clause comes closest to
// matching, and the first condition that is not met; that is nil when it matches.
func (s *Scope) nearest(c *ir.Clause, o *operation) (near *event, miss *Condition) {
	for _, e := range o.events {
		why := s.mismatch(c, o.subject, e, s.wouldHold(o.subject, e))
		if why == nil {
			return e, nil
		}
		if miss == nil || why.Part > miss.Part {
			near, miss = e, why
		}
	}
	return near, miss
}

// movedUnknown says, of a rename of a name that the trace has not used before and that is
// decided otherwise since it counts as a directory's, that it does; "" of others.
func (s *Scope) movedUnknown(o *operation) string {
	alone := *o
	alone.events = slices.DeleteFunc(slices.Clone(o.events), func(e *event) bool { return e.moved != "" })
	if len(alone.events) == len(o.events) {
		return ""
	}
	with, _ := s.decide(o)
	if without, _ := s.decide(&alone); with.Effect == without.Effect {
		return ""
	}
	names := o.names[:1]
	if o.exchange {
		names = o.names
	}
	for _, name := range names {
		if n := s.files.look(name).node; n == nil || n.uses()+n.inside == 0 {
			return name + " was not used before, so that moving it counts as moving a directory: if it is a file, read it first"
		}
	}
	return ""
}

// shellNote says, of a step in which a shell is given commands, that what the shell
// runs is not in it; "" of others. Which programs those are only a shell can say.
func shellNote(words []string) string {
	if words[1] != "exec" || !slices.Contains([]string{"sh", "bash", "dash", "ash", "zsh", "ksh", "busybox"}, path.Base(words[2])) {
		return ""
	}
	for _, w := range words[3:] {
		if strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--") && strings.Contains(w, "c") {
			return fmt.Sprintf("what a shell runs is a step of its own, and decided then: write it as one, such as `%s exec PROGRAM ARG…`", words[0])
		}
	}
	return ""
}

func unique(list []string) (out []string) {
	for _, text := range list {
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}
