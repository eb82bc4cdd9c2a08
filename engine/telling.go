// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"github.com/actplane/actplane/engine/notify"
	"github.com/actplane/actplane/feedback"
	"github.com/actplane/actplane/internal/approval"
)

// notifier tells people; *notify.Notifier is one. Nothing waits for it.
type notifier interface {
	Wants(kind string) bool
	Tell(notify.Event)
	Run(context.Context)
	Problems() []string
}

// noNotifier tells nobody.
type noNotifier struct{}

func (noNotifier) Wants(string) bool   { return false }
func (noNotifier) Tell(notify.Event)   {}
func (noNotifier) Run(context.Context) {}
func (noNotifier) Problems() []string  { return nil }

// tellRequest tells people of a request that waits for one of them. One that the
// approvers are asked about waits for these first.
func (e *Engine) tellRequest(s *scope, r request) {
	if r.State == requestOpen && !r.Consulted.busy() {
		e.notifyOf(s, r, approval.EventRequest, "request.opened")
	}
}

// notifyOf tells people of a request.
func (e *Engine) notifyOf(s *scope, r request, kind, what string) {
	if !e.config.Notifications.Wants(kind) {
		return
	}
	document := s.describeRequest(r).Document()
	e.config.Notifications.Tell(notify.Event{Kind: kind, Type: what, Time: e.config.now(), Request: &document})
}

// tellClosed tells people that a request has its answer, or needs none any more.
func (e *Engine) tellClosed(s *scope, r request) {
	e.notifyOf(s, r, approval.EventAnswer, "request."+string(r.State))
}

// tellDenial tells people of an operation that was refused.
func (e *Engine) tellDenial(s *scope, item feedback.Item) {
	if !refused(item) || !e.config.Notifications.Wants(approval.EventDenial) {
		return
	}
	e.config.Notifications.Tell(notify.Event{Kind: approval.EventDenial, Type: "operation.denied", Time: item.Time, Denial: &notify.Denial{
		Scope: s.id, Name: s.now().Name, Sequence: item.Sequence, Effect: string(item.Effect),
		Operation: item.Operation, Object: item.Object, Args: item.Args, ArgsCut: item.ArgsCut,
		Rule: item.Rule, Because: item.Because, Clause: item.Clause, Position: item.ClausePosition, RuleAdded: item.RuleAdded,
		Labels: item.Labels, PID: item.Process.PID, Comm: item.Process.Comm, Outcome: string(item.Outcome), RequestID: item.Request,
	}})
}

// refused tells whether an item is of an operation that is refused for good: not of one
// that has just asked.
func refused(item feedback.Item) bool {
	switch item.Outcome {
	case "":
		return item.Effect == feedback.Block || item.Effect == feedback.Kill
	case feedback.Denied, feedback.TimedOut, feedback.Unasked:
		return true
	}
	return false
}
