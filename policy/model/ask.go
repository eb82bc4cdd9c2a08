// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"

	"github.com/actplane/actplane/policy/ir"
)

// request is an open request for approval, section 9.
type request struct {
	key string
	// held is the operation that waits, of `ask hold`: granted, it goes on by itself.
	held *operation
	hold bool
}

// answer is what a person said: "A grant names rule, operation, object and argv,
// and binds the object's inode and modified mark". A denial is remembered the same
// way.
type answer struct {
	denied bool
	count  int  // how often a grant can be used
	timed  bool // until its time is up, however often; the model has no clock
}

// asked decides an ask by the answer that it has had: a grant lifts it, after a
// denial "the same operation is then a block".
func (s *Scope) asked(r *ruling, e *event, hold bool) {
	r.ask = &request{key: askKey(r.Rule, e), hold: hold}
	switch a := s.answers[r.ask.key]; {
	case a == nil || !a.denied && !a.timed && a.count == 0:
	case a.denied:
		r.Effect, r.answer, r.ask = ir.Block, a, nil
		r.Why += "; a person denied this"
	default:
		r.Effect, r.answer, r.ask = ir.Allow, a, nil
	}
}

func askKey(rule string, e *event) string {
	object := ""
	if e.peer != nil {
		object = e.peer.key
	} else if e.file != nil {
		object = fmt.Sprintf("%s inode %d modified %t", e.path, e.file.number, e.file.modified)
	}
	return fmt.Sprintf("%q %s %q %q", rule, e.op, object, e.argv)
}

// open notes a request; an operation that is tried again makes no second one.
func (s *Scope) open(r *request, o *operation) {
	if r.hold {
		r.held = o
		s.requests = append(s.requests, r)
	} else if !slices.ContainsFunc(s.requests, func(x *request) bool { return x.key == r.key }) {
		s.requests = append(s.requests, r)
	}
}

// Approve answers the oldest open request. once grants one operation, otherwise
// all until the time is up. An operation that was held goes on.
func (s *Scope) Approve(once bool) error {
	r, err := s.oldest()
	if err != nil {
		return err
	}
	a := s.answers[r.key]
	if a == nil || a.denied {
		a = &answer{}
		s.answers[r.key] = a
	}
	if once {
		a.count++
	} else {
		a.timed = true
	}
	if r.held != nil && !r.held.subject.ended {
		s.perform(r.held)
	}
	return nil
}

// Deny answers the oldest open request.
func (s *Scope) Deny() error {
	r, err := s.oldest()
	if err == nil {
		s.answers[r.key] = &answer{denied: true}
	}
	return err
}

func (s *Scope) oldest() (*request, error) {
	if len(s.requests) == 0 {
		return nil, stepErrorf("no request is open")
	}
	r := s.requests[0]
	s.requests = s.requests[1:]
	return r, nil
}
