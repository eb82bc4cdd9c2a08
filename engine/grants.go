// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/feedback"
)

const (
	// answerInterval is how often answers are looked at that may be over.
	answerInterval = time.Second
	// overGrace is how long an answer that is over stays in the kernel: what an
	// operation has taken of it and does not use is given back.
	overGrace = time.Minute
	// useGrace is how long after an answer was taken back an operation may end that
	// was granted before.
	useGrace = 5 * time.Second
)

// ListGrants implements api.EngineService.
func (s *service) ListGrants(_ context.Context, req *api.ListGrantsRequest) (*api.ListGrantsResponse, error) {
	return s.engine.listGrants(req.Scope)
}

// Revoke implements api.EngineService.
func (s *service) Revoke(_ context.Context, req *api.RevokeRequest) (*api.Request, error) {
	return s.engine.revoke(req.Id, s.peer.operator(req.By))
}

func operatorOf(by *api.Operator) operator {
	if by == nil {
		return operator{}
	}
	return operator{UID: by.Uid, Name: by.Name, Via: by.Via}
}

func (o operator) api() *api.Operator {
	return &api.Operator{Uid: o.UID, Name: o.Name, Via: o.Via, Login: o.Login}
}

// listGrants lists the answers in force, with what the kernel knows of them.
func (e *Engine) listGrants(word string) (*api.ListGrantsResponse, error) {
	scopes, _, err := e.find(word)
	if err != nil {
		return nil, err
	}
	response := &api.ListGrantsResponse{}
	now := e.config.now()
	for _, s := range scopes {
		slot := s.now().Slot
		if e.scope(s.id) != s || slot == nil || !s.asks() {
			continue
		}
		known, err := e.config.Kernel.Answers(*slot)
		if err != nil {
			return nil, status.Error(codes.Internal, err.Error())
		}
		for _, r := range s.requests.list() {
			if a, there := known[r.Key]; there && !a.Over && r.Answer.inForce(now) {
				response.Grants = append(response.Grants, s.describeGrant(r, a, now))
			}
		}
	}
	slices.SortStableFunc(response.Grants, func(a, b *api.Grant) int {
		return int(a.Request.Answered.TimeUnixMs - b.Request.Answered.TimeUnixMs)
	})
	return response, nil
}

func (s *scope) describeGrant(r request, known kernel.Answer, now time.Time) *api.Grant {
	g := &api.Grant{Request: s.describeRequest(r), Used: known.Used}
	if r.Answer.Count > 0 {
		g.Left = known.Count
	}
	if !r.Answer.Until.IsZero() {
		g.LeftMs = max(1, r.Answer.Until.Sub(now).Milliseconds())
	}
	return g
}

// revoke ends an answer, in the kernel first: whatever begins when it returns asks.
func (e *Engine) revoke(id string, by operator) (*api.Request, error) {
	s, r, err := e.findRequest(id)
	if err != nil {
		return nil, err
	}
	defer e.ids.lock(s.id)()
	slot, err := e.liveSlot(s, id)
	if err != nil {
		return nil, err
	}
	now := e.config.now()
	current := s.requests.find(func() *request { return s.requests.named(id) })
	if current == nil || !current.Answer.inForce(now) {
		return nil, status.Errorf(codes.FailedPrecondition, "request %q has no answer in force; \"actplane grants\" lists those that have", id)
	}
	if err := e.dropAnswer(slot, current.Key); err != nil {
		return nil, status.Errorf(codes.Internal, "revoke the answer to %q: %v", id, err)
	}
	e.changeRequests(s, func() {
		for _, other := range s.requests.all {
			// The kernel has one answer for all who ask the same.
			if other.Key != current.Key || !other.Answer.inForce(now) {
				continue
			}
			ended := *other.Answer
			ended.Over, ended.OverTime, ended.OverBy = revoked, now, by
			other.Answer, other.State = &ended, requestRevoked
			e.asks.touch(other)
			if other.ID == id {
				r = *other
			}
		}
	})
	e.tellOver(s, r)
	e.keepAsks() // who is held and was to go on asks again
	return s.describeRequest(r), nil
}

// dropAnswer ends an answer in the kernel, and what it opened; now and, for operations
// that were on their way, a little later once more.
func (e *Engine) dropAnswer(slot kernel.Slot, key kernel.AskKey) error {
	if err := e.config.Kernel.DropAnswer(slot, key); err != nil {
		return err
	}
	return e.endUses(slot, key)
}

// endUses ends the use of what an answer has opened.
func (e *Engine) endUses(slot kernel.Slot, key kernel.AskKey) error {
	e.ending.add(endingUse{slot, key, e.config.now().Add(useGrace)})
	return e.config.Kernel.EndUses(slot, key)
}

// keepAnswers ends the answers that are over, and tells of it.
func (e *Engine) keepAnswers() {
	now := e.config.now()
	for _, ask := range e.ending.list(now) {
		if err := e.config.Kernel.EndUses(ask.slot, ask.key); err != nil {
			e.log.WithError(err).Warn("end the use of an answer")
		}
	}
	if now.Sub(e.answersKept) < answerInterval {
		return
	}
	e.answersKept = now
	for _, s := range e.live() {
		if s.asks() && s.now().State == enforcing && s.requests.mayEnd() {
			e.keepAnswersOf(s, now)
		}
	}
}

func (e *Engine) keepAnswersOf(s *scope, now time.Time) {
	defer e.ids.lock(s.id)()
	slot := s.now().Slot
	if e.scope(s.id) != s || slot == nil {
		return
	}
	known, err := e.config.Kernel.Answers(*slot)
	if err != nil {
		e.log.WithError(err).Warn("look after answers")
		return
	}
	var over []request
	for _, r := range s.requests.list() {
		a, there := known[r.Key]
		if r.Answer == nil || r.Answer.Over != "" || r.Answer.inForce(now) && !(there && a.Over) {
			continue
		}
		over = append(over, r)
	}
	for _, r := range over {
		e.endAnswer(s, r.ID, now)
	}
	s.requests.settle(e.forgetAnswers(s, *slot, known, now))
}

// endAnswer notes that an answer is over by itself.
func (e *Engine) endAnswer(s *scope, id string, now time.Time) {
	var ended *request
	e.changeRequests(s, func() {
		r := s.requests.named(id)
		if r == nil || r.Answer == nil || r.Answer.Over != "" {
			return
		}
		a := *r.Answer
		a.Over, a.OverTime = usedUp, now
		if !a.Until.IsZero() && !now.Before(a.Until) {
			a.Over = expired
		}
		r.Answer = &a
		e.asks.touch(r)
		ended = new(request)
		*ended = *r
	})
	if ended != nil {
		e.tellOver(s, *ended)
	}
}

// forgetAnswers drops from the kernel what is over, so that it does not fill up, and tells
// whether something is kept a little longer.
func (e *Engine) forgetAnswers(s *scope, slot kernel.Slot, known map[kernel.AskKey]kernel.Answer, now time.Time) (kept bool) {
	needed := map[kernel.AskKey]bool{}
	for _, r := range s.requests.list() {
		if r.Answer != nil && (r.Answer.Over == "" || now.Sub(r.Answer.OverTime) < overGrace) {
			needed[r.Key] = true
		}
	}
	for key, a := range known {
		if !a.Over {
			continue
		}
		if needed[key] {
			kept = true
			continue
		}
		if err := e.config.Kernel.DropAnswer(slot, key); err != nil {
			e.log.WithError(err).Warn("forget an answer that is over")
			kept = true
		}
	}
	return kept
}

// tellOver puts the end of an answer into the record, where the agent finds it too.
func (e *Engine) tellOver(s *scope, r request) {
	a := r.Answer
	item := r.Item
	item.Time, item.Effect, item.Request, item.Until = a.OverTime, feedback.Ask, r.ID, time.Time{}
	item.WasDenied = a.Denied
	switch a.Over {
	case revoked:
		item.Outcome, item.By = feedback.Revoked, a.OverBy.String()
		e.tellClosed(s, r)
	case expired:
		item.Outcome = feedback.Expired
	default:
		item.Outcome = feedback.UsedUp
	}
	e.log.WithFields(s.fields()).WithField("request", r.ID).WithField("rule", item.Rule).WithField("by", item.By).
		WithField("used", a.Used).Info("answer " + string(a.Over))
	e.tell(s, item)
}

// endingUses are the answers that were taken back lately.
type endingUses struct {
	mu   sync.Mutex
	asks []endingUse // guarded by mu
}

type endingUse struct {
	slot  kernel.Slot
	key   kernel.AskKey
	until time.Time
}

func (u *endingUses) add(ask endingUse) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.asks = append(u.asks, ask)
}

// list lists those for which it is not over yet.
func (u *endingUses) list(now time.Time) []endingUse {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.asks = slices.DeleteFunc(u.asks, func(ask endingUse) bool { return now.After(ask.until) })
	return slices.Clone(u.asks)
}
