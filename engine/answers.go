// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/feedback"
)

// Bounds of what a client can say.
const (
	maxAnswerFor = 366 * 24 * time.Hour
	maxCount     = 1000
	maxBecause   = 4096
)

// Requests implements api.EngineService.
func (s *service) Requests(ctx context.Context, req *api.RequestsRequest, stream api.Engine_RequestsServer) error {
	return s.engine.streamRequests(ctx, req, stream.Send)
}

// Answer implements api.EngineService.
func (s *service) Answer(_ context.Context, req *api.AnswerRequest) (*api.Request, error) {
	return s.engine.answer(req, s.peer)
}

// streamRequests sends the requests there are, and to those who follow each that
// changes. Who falls behind gets the last state of each.
func (e *Engine) streamRequests(ctx context.Context, req *api.RequestsRequest, send func(*api.Request) error) error {
	var seen uint64
	for first := true; ; first = false {
		changed := e.asks.wait()
		scopes, _, err := e.find(req.Scope)
		if err != nil {
			return err
		}
		var news []struct {
			s *scope
			r request
		}
		for _, s := range scopes {
			for _, r := range s.requests.list() {
				if first && (req.All || r.State == requestOpen) || !first && r.version > seen {
					news = append(news, struct {
						s *scope
						r request
					}{s, r})
				}
				seen = max(seen, r.version)
			}
		}
		slices.SortFunc(news, func(a, b struct {
			s *scope
			r request
		}) int {
			return cmp.Or(cmp.Compare(a.r.version, b.r.version), a.r.Item.Time.Compare(b.r.Item.Time))
		})
		for _, n := range news {
			if err := send(n.s.describeRequest(n.r)); err != nil {
				return err
			}
		}
		if !req.Follow {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-e.serving.Done():
			return nil
		case <-changed:
		}
	}
}

// describeRequest is a request as the API tells it.
func (s *scope) describeRequest(r request) *api.Request {
	out := &api.Request{
		Id: r.ID, Scope: s.id, ScopeName: s.now().Name, State: string(r.State),
		Rule: r.Item.Rule, Because: r.Item.Because, Clause: r.Item.Clause, ClausePos: r.Item.ClausePosition,
		Operation: r.Item.Operation, Object: []byte(r.Item.Object), ArgsCut: r.Item.ArgsCut, Mapped: r.Mapped,
		Uid: r.UID, Pid: int64(r.Item.Process.PID), Comm: []byte(r.Item.Process.Comm), Labels: r.Item.Labels,
		Held: r.Process != 0, OpenedUnixMs: r.Item.Time.UnixMilli(),
		Deciding: r.State == requestOpen && r.Consulted.busy(), Cwd: []byte(r.Subject.Directory), Image: s.now().Image, Layer: r.Layer, RuleAdded: r.Item.RuleAdded,
	}
	for _, w := range r.Warnings {
		out.Warnings = append(out.Warnings, &api.Warning{Approver: w.Approver, Text: w.Text})
	}
	for _, a := range r.Subject.Ancestors {
		out.Ancestors = append(out.Ancestors, &api.Ancestor{Pid: int64(a.PID), Comm: []byte(a.Comm)})
	}
	for _, arg := range r.Item.Args {
		out.Args = append(out.Args, []byte(arg))
	}
	if !r.Item.Until.IsZero() {
		out.UntilUnixMs = r.Item.Until.UnixMilli()
	}
	if a := r.Answer; a != nil {
		out.Answered = &api.Answered{
			Denied: a.Denied, Count: a.Count, ScopeLifetime: a.Lifetime, Because: a.Because, TimeUnixMs: a.Time.UnixMilli(), Used: a.Used,
			By: a.By.api(), Over: string(a.Over),
		}
		if !a.Until.IsZero() {
			out.Answered.UntilUnixMs = a.Until.UnixMilli()
		}
		if a.Over != "" {
			out.Answered.OverUnixMs = a.OverTime.UnixMilli()
		}
		if a.Over == revoked {
			out.Answered.OverBy = a.OverBy.api()
		}
	}
	return out
}

// answerOf reads what a client says.
func (e *Engine) answerOf(req *api.AnswerRequest, from peer) (*answer, kernel.Answer, error) {
	invalid := func(format string, args ...any) (*answer, kernel.Answer, error) {
		return nil, kernel.Answer{}, status.Errorf(codes.InvalidArgument, format, args...)
	}
	a := &answer{Denied: req.Denied, Because: req.Because, Time: e.config.now(), Lifetime: req.ScopeLifetime, Count: req.Count}
	a.By = from.operator(req.By)
	during := time.Duration(req.ForMs) * time.Millisecond
	some := req.Count > 0 || req.ForMs != 0
	switch {
	case some == req.ScopeLifetime:
		return invalid("an answer is for a number of operations, for a time or for the container's life")
	case req.Denied && req.Count > 0:
		return invalid("a denial is for a time or for the container's life")
	case req.Count > maxCount:
		return invalid("%d operations; the limit is %d", req.Count, maxCount)
	case req.ForMs < 0 || during > maxAnswerFor || during/time.Millisecond != time.Duration(req.ForMs):
		return invalid("an answer is for at most %d hours", maxAnswerFor/time.Hour)
	case len(req.Because) > maxBecause || !utf8.ValidString(req.Because):
		return invalid("a reason is text of at most %d bytes", maxBecause)
	}
	if during > 0 {
		a.Until = a.Time.Add(during)
	}
	return a, kernel.Answer{Denied: a.Denied, Count: a.Count, Timed: a.Count == 0, For: during}, nil
}

// answer takes a client's answer.
func (e *Engine) answer(req *api.AnswerRequest, from peer) (*api.Request, error) {
	a, said, err := e.answerOf(req, from)
	if err != nil {
		return nil, err
	}
	s, r, err := e.findRequest(req.Id)
	if err != nil {
		return nil, err
	}
	defer e.ids.lock(s.id)()
	if r, err = e.putAnswer(s, r, a, said); err != nil {
		return nil, err
	}
	return s.describeRequest(r), nil
}

// liveSlot is the slot of a scope whose answers can be changed. Its id is locked.
func (e *Engine) liveSlot(s *scope, id string) (kernel.Slot, error) {
	slot := s.now().Slot
	if e.scope(s.id) != s || slot == nil {
		return kernel.Slot{}, status.Errorf(codes.FailedPrecondition, "request %q is of a container that is gone", id)
	}
	return *slot, nil
}

// putAnswer puts an answer into force, and wakes who waits for it. The scope's id is
// locked.
func (e *Engine) putAnswer(s *scope, r request, a *answer, said kernel.Answer) (request, error) {
	slot, err := e.liveSlot(s, r.ID)
	if err != nil {
		return r, err
	}
	if err := e.config.Kernel.SetAnswer(slot, r.Key, said); err != nil {
		return r, status.Errorf(codes.Internal, "request %q: %v", r.ID, err)
	}
	id := r.ID
	err = s.requests.change(e.config.now(), func() {
		for _, other := range s.requests.all {
			// One answer is for all who ask the same, unless it is counted.
			if other.ID != id && (other.Key != r.Key || other.State != requestOpen || a.Count > 0) {
				continue
			}
			own := *a
			other.Answer, other.State = &own, requestGranted
			if a.Denied {
				other.State = requestDenied
			}
			e.asks.touch(other)
			if other.ID == id {
				r = *other
			}
		}
	})
	if err != nil {
		e.log.WithFields(s.fields()).WithError(err).Warn("answer will not survive a restart")
	}
	if a.Denied {
		if err := e.endUses(slot, r.Key); err != nil {
			e.log.WithFields(s.fields()).WithError(err).Warn("end the use of an approval that was taken back")
		}
	}
	if err := e.config.Kernel.CloseRequest(slot, r.Key, 0); err != nil {
		e.log.WithFields(s.fields()).WithError(err).Warn("close an answered request")
	}
	e.tellAnswer(s, r)
	e.keepAsks()
	return r, nil
}

// findRequest finds a request by its name.
func (e *Engine) findRequest(id string) (*scope, request, error) {
	for _, s := range e.all() {
		for _, r := range s.requests.list() {
			if r.ID == id {
				return s, r, nil
			}
		}
	}
	return nil, request{}, status.Errorf(codes.NotFound, "no request is called %q; \"actplane requests\" lists them", id)
}

// tellAnswer puts an answer into the record, where the agent finds it too.
func (e *Engine) tellAnswer(s *scope, r request) {
	item := r.Item
	item.Time, item.Effect, item.Outcome, item.Request = r.Answer.Time, feedback.Ask, feedback.Grant, r.ID
	item.Reason, item.Until, item.Warnings = r.Answer.Because, r.Answer.Until, warningTexts(r.Warnings)
	r.Answer.By.sign(&item)
	if r.Answer.Denied {
		item.Outcome = feedback.Denial
	}
	e.log.WithFields(s.fields()).WithField("request", r.ID).WithField("rule", item.Rule).WithField("by", item.By).
		WithField("for", r.Answer.duration()).Info("request " + string(r.State))
	e.tellClosed(s, r)
	e.tell(s, item)
}

// duration is for how long an answer holds, in words.
func (a *answer) duration() string {
	if a.Lifetime {
		return "as long as the container lives"
	}
	text := ""
	switch {
	case a.Count == 1:
		text = "once"
	case a.Count > 1:
		text = fmt.Sprintf("%d times", a.Count)
	}
	if a.Until.IsZero() {
		return text
	}
	return strings.TrimSpace(text + " until " + a.Until.UTC().Format(time.RFC3339))
}

// tell adds an item of the daemon's own to a scope's record.
func (e *Engine) tell(s *scope, item feedback.Item) {
	item.Lost = 0
	added, err := s.events.add(item, e.slotStats(s).Lost)
	if err == nil {
		// The kernel has not counted it.
		err = s.change(func(r *record) { r.Base.Sequence++ })
	}
	if err != nil {
		e.log.WithFields(s.fields()).WithError(err).Warn("event will not survive a restart")
	}
	e.hub.publish(s, added)
}
