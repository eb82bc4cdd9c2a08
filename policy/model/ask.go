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
	closed  bool
}

// requests are those that are open, in their order, and those for the same operation.
type requests struct {
	list []*request    // with some that were closed
	due  time.Duration // no held one is over before
	same map[string]*alike
}

// alike are requests for one operation.
type alike struct {
	list    []*request // with some that were closed
	retried int        // open ones of processes that don't wait
}

func (q *requests) add(r *request) {
	if q.same == nil {
		q.same = map[string]*alike{}
	}
	if q.same[r.key] == nil {
		q.same[r.key] = &alike{}
	}
	same := q.same[r.key]
	q.list, same.list = append(q.list, r), append(same.list, r)
	if r.hold == 0 {
		same.retried++
	} else if q.due == 0 || r.until < q.due {
		q.due = r.until
	}
}

// retried tells whether one is open for an operation that a process tries again.
func (q *requests) retried(key string) bool { return q.same[key] != nil && q.same[key].retried > 0 }

func (q *requests) remove(r *request) {
	if r.closed {
		return
	}
	if r.closed = true; r.hold == 0 {
		q.same[r.key].retried--
	}
}

// oldest returns the one that was opened first, nil if none is open.
func (q *requests) oldest() *request {
	q.list = open(q.list)
	if len(q.list) == 0 {
		return nil
	}
	return q.list[0]
}

// open leaves out what was closed before the first that is open.
func open(list []*request) []*request {
	for len(list) > 0 && list[0].closed {
		list = list[1:]
	}
	return list
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
	op := e.op
	if op == ir.Send {
		op = r.op() // one answer is for connecting and for what is sent then
	}
	use := useKey(r.Rule, op, e)
	if _, granted := p.granted[use]; granted && e.used {
		r.Effect = ir.Allow
		return
	}
	r.ask = &request{key: askKey(use, p, e), hold: hold}
	switch a := s.answers[r.ask.key]; {
	case !a.holds(s.now):
	case a.denied:
		r.Effect, r.ask = ir.Block, nil
		r.denied = true
		if a.because != "" {
			r.Because = a.because
		}
	default:
		r.Effect, r.grant, r.ask = ir.Allow, &grant{a, r.ask.key, use, e.op}, nil
	}
}

// grant is an answer that lifts an ask, by its key, and what it opens: a process that
// reads or writes through a descriptor needs no other answer for that.
type grant struct {
	*answer
	key, use string
	op       ir.Op
}

// take uses up the grants of an operation that proceeds.
func (s *Scope) take(p *Process, grants []*grant) {
	var used []*answer
	if p.granted == nil && len(grants) > 0 {
		p.granted = map[string]string{}
	}
	for _, g := range grants {
		if !slices.Contains(used, g.answer) {
			used = append(used, g.answer)
			g.answer.use(s.now)
		}
		if g.op != ir.Exec {
			p.granted[g.use] = g.key
		}
	}
}

// askKey is all that a grant names and binds: "rule, operation, object and argv,
// and the object's inode and modified mark, the working directory's inode, the
// uid and, for exec, the environment", and the program as it is. An interpreter is the object of an exec
// with the script as an argument, which the rest of the operation binds. Of a rename or
// link it is both names, so that one answer is for all that it is.
func askKey(use string, p *Process, e *event) string {
	state, environment := "", ""
	if e.file != nil && e.beside == "" {
		state = fmt.Sprintf(" modified %t unclear %t", e.file.modified, e.file.unclear)
	}
	if e.op == ir.Exec {
		environment = fmt.Sprintf(" with %x", p.env.sum)
	}
	if e.op == ir.Exec && !e.mapped {
		state += fmt.Sprintf(" written %d", e.file.writes)
	}
	return fmt.Sprintf("%s%s %q in %q as %q%s", use, state, e.argv, p.dir, p.user, environment)
}

// useKey is the part of it that a descriptor has, too.
func useKey(rule string, op ir.Op, e *event) string {
	object := ""
	if e.peer != nil {
		object = e.peer.key
	} else if e.beside != "" {
		object = e.beside
	} else if e.file != nil {
		object = fmt.Sprintf("%s inode %d", e.path, e.file.number)
	}
	return fmt.Sprintf("%q %s %q", rule, op, object)
}

// ask notes a request; an operation that is tried again makes no second one. With
// hold "the process is stopped before the operation happens".
func (s *Scope) ask(r *request, p *Process, again []string) {
	if r.hold > 0 {
		r.subject, r.again, r.until = p, again, s.now+r.hold
		p.held = r
	} else if s.requests.retried(r.key) {
		return
	}
	s.requests.add(r)
}

// close takes a request back.
func (s *Scope) close(r *request) {
	s.requests.remove(r)
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
	same := s.requests.same[key]
	same.list = open(same.list)
	for _, r := range same.list { // without what is asked anew meanwhile
		a := s.answers[key]
		if !a.holds(s.now) {
			return
		}
		if r.closed {
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
	for _, p := range s.processes {
		maps.DeleteFunc(p.granted, func(_, key string) bool { return key == r.key })
	}
	s.answered(r.key)
	return nil
}

func (s *Scope) oldest() (*request, error) {
	r := s.requests.oldest()
	if r == nil {
		return nil, stepErrorf("no request is open")
	}
	s.close(r)
	return r, nil
}

// Wait lets time pass. A held operation that nobody answers in time "fails with
// EPERM".
func (s *Scope) Wait(d time.Duration) {
	if s.now += d; s.requests.due == 0 || s.now < s.requests.due {
		return
	}
	s.requests.due = 0
	for _, r := range s.requests.list {
		switch {
		case r.closed || r.hold == 0:
		case s.now >= r.until:
			s.close(r)
		case s.requests.due == 0 || r.until < s.requests.due:
			s.requests.due = r.until
		}
	}
	s.requests.list = slices.DeleteFunc(s.requests.list, func(r *request) bool { return r.closed })
}
