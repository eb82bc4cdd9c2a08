// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/actplane/actplane/policy/ir"
)

// request is an open request for approval, section 9.
type request struct {
	key string
	// Of `ask hold`: who is stopped, what it does when it goes on, and until when a
	// person can answer.
	subject *Process
	again   []string
	hold    time.Duration
	until   time.Duration
}

// answer is what a person said: a grant "is counted or timed", and "a denial is
// remembered the same way".
type answer struct {
	denied  bool
	because string
	count   int           // how often a grant can be used, beside the time
	until   time.Duration // when the grant or the denial is over; 0 is never, but for counted grants
	timed   bool          // until means something
}

// DefaultGrant is how long a grant holds: "10 minutes unless said".
const DefaultGrant = 10 * time.Minute

// ScopeLifetime is the duration of an answer that holds as long as the scope.
const ScopeLifetime time.Duration = 0

func (a *answer) holds(now time.Duration) bool {
	return a != nil && (a.timed && (a.until == ScopeLifetime || now < a.until) || a.count > 0)
}

// use counts one use of a grant, unless its time is what it goes by.
func (a *answer) use(now time.Duration) {
	if !a.timed || a.until != ScopeLifetime && now >= a.until {
		a.count--
	}
}

// asked decides an ask by the answer that it has had: a grant lifts it, after a
// denial "the same operation is then a block with the person's reason".
func (s *Scope) asked(r *ruling, p *Process, e *event, hold time.Duration) {
	r.ask = &request{key: askKey(r.Rule, p, e), hold: hold}
	switch a := s.answers[r.ask.key]; {
	case !a.holds(s.now):
	case a.denied:
		r.Effect, r.ask = ir.Block, nil
		r.Why += "; a person denied this"
		if a.because != "" {
			r.Because = a.because
		}
	default:
		r.Effect, r.answer, r.ask = ir.Allow, a, nil
	}
}

// askKey is all that a grant names and binds: "rule, operation, object and argv,
// and the object's inode and modified mark, the working directory's inode, the
// uid and, for exec, the environment". An interpreter is the object of an exec
// with the script as an argument, which the rest of the operation binds.
func askKey(rule string, p *Process, e *event) string {
	object, environment := "", ""
	if e.peer != nil {
		object = e.peer.key
	} else if e.file != nil {
		object = fmt.Sprintf("%s inode %d modified %t to %q", e.path, e.file.number, e.file.modified, e.to)
	}
	if e.op == ir.Exec {
		for _, name := range slices.Sorted(maps.Keys(p.env)) {
			environment += fmt.Sprintf(" %q=%q", name, p.env[name])
		}
	}
	return fmt.Sprintf("%q %s %q %q in %q as %q%s", rule, e.op, object, e.argv, p.dir, p.user, environment)
}

// ask notes a request; an operation that is tried again makes no second one. With
// hold "the process is stopped before the operation happens".
func (s *Scope) ask(r *request, p *Process, again []string) {
	if r.hold > 0 {
		r.subject, r.again, r.until = p, again, s.now+r.hold
		p.held = r
	} else if slices.ContainsFunc(s.requests, func(x *request) bool { return x.key == r.key && x.hold == 0 }) {
		return
	}
	s.requests = append(s.requests, r)
}

// close takes a request back.
func (s *Scope) close(r *request) {
	s.requests = slices.DeleteFunc(s.requests, func(x *request) bool { return x == r })
	if r.subject != nil {
		r.subject.held = nil
	}
}

// ApproveOnce answers the oldest open request for one operation.
func (s *Scope) ApproveOnce() error {
	return s.reply(func(a *answer) { a.count++ })
}

// Approve answers the oldest open request for all such operations, for a time or
// the scope's life.
func (s *Scope) Approve(during time.Duration) error {
	return s.reply(func(a *answer) { a.extend(s.now, during) })
}

func (a *answer) extend(now, during time.Duration) {
	until := now + during
	if during == ScopeLifetime || a.timed && a.until == ScopeLifetime {
		until = ScopeLifetime
	} else if a.timed {
		until = max(until, a.until)
	}
	a.timed, a.until = true, until
}

// reply adds to the grant of the oldest open request.
func (s *Scope) reply(add func(*answer)) error {
	r, err := s.oldest()
	if err != nil {
		return err
	}
	a := s.answers[r.key]
	if a == nil || a.denied {
		a = &answer{}
		s.answers[r.key] = a
	}
	add(a)
	s.goOn(r)
	s.answered(r.key)
	return nil
}

// goOn lets a process that was held try again, and it is decided afresh: "granted,
// it succeeds and never knew".
func (s *Scope) goOn(r *request) {
	if r.subject != nil {
		_, _ = s.Do(r.again) // what has become senseless meanwhile fails
	}
}

// answered closes what else is open for the same operation, as far as the answer
// goes.
func (s *Scope) answered(key string) {
	for _, r := range slices.Clone(s.requests) {
		a := s.answers[key]
		if r.key != key || !a.holds(s.now) {
			continue
		}
		s.close(r)
		if !a.denied {
			s.goOn(r)
		}
	}
}

// Deny answers the oldest open request, for a time or the scope's life, with a
// reason or "".
func (s *Scope) Deny(during time.Duration, because string) error {
	r, err := s.oldest()
	if err != nil {
		return err
	}
	a := &answer{denied: true, because: because}
	a.extend(s.now, during)
	s.answers[r.key] = a
	s.answered(r.key)
	return nil
}

func (s *Scope) oldest() (*request, error) {
	if len(s.requests) == 0 {
		return nil, stepErrorf("no request is open")
	}
	r := s.requests[0]
	s.close(r)
	return r, nil
}

// Wait lets time pass. A held operation that nobody answers in time "fails with
// EPERM".
func (s *Scope) Wait(d time.Duration) {
	s.now += d
	for _, r := range slices.Clone(s.requests) {
		if r.subject != nil && s.now >= r.until {
			s.close(r)
		}
	}
}
