// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/feedback"
	"github.com/actplane/actplane/policy/ir"
)

const (
	// askInterval is how often the daemon looks after who is held: what was killed
	// withdraws its request, and what was woken before it had stopped is woken again.
	askInterval = 200 * time.Millisecond
	// askGrace is how long the kernel may know of a request and we not, or the reverse:
	// its record is on the way.
	askGrace = 5 * time.Second
	// returnGrace is how long a daemon reads what was reported while there was none.
	returnGrace = 500 * time.Millisecond
)

// keepAsksLoop looks after requests as long as the daemon lives.
func (e *Engine) keepAsksLoop(ctx context.Context) error {
	ticker := time.NewTicker(askInterval)
	defer ticker.Stop()
	for {
		if e.anyAsks() {
			e.keepAsks()
			e.keepAnswers()
			e.saveRequests()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (e *Engine) anyAsks() bool {
	for _, s := range e.live() {
		if s.asks() {
			return true
		}
	}
	return false
}

// asks tells whether the scope's policy can ask.
func (s *scope) asks() bool {
	program := s.rules()
	for i := range program.Clauses {
		if program.Clauses[i].Effect == ir.Ask {
			return true
		}
	}
	for _, d := range program.Defaults {
		if d.Effect == ir.Ask {
			return true
		}
	}
	return false
}

// requestName is a request as the kernel knows it.
type requestName struct {
	slot    kernel.Slot
	key     kernel.AskKey
	process kernel.ProcessID
}

// keepAsks compares what the kernel has of requests with what we know: it wakes who has
// an answer or has waited too long, and withdraws the requests of who is gone.
func (e *Engine) keepAsks() {
	e.keeping.Lock()
	defer e.keeping.Unlock()
	open, err := e.config.Kernel.Requests()
	if err != nil {
		e.log.WithError(err).Warn("look after requests")
		return
	}
	there := map[requestName]bool{}
	answers := map[kernel.Slot]map[kernel.AskKey]kernel.Answer{}
	for _, r := range open {
		e.mu.Lock()
		s := e.slots[r.Slot]
		e.mu.Unlock()
		if answers[r.Slot] == nil {
			if answers[r.Slot], err = e.config.Kernel.Answers(r.Slot); err != nil {
				e.log.WithError(err).Warn("look after requests")
				return
			}
		}
		answer, answered := answers[r.Slot][r.Key]
		if e.keepAsk(s, r, answered && !answer.Over) {
			there[requestName{r.Slot, r.Key, r.Process}] = true
		}
	}
	for _, s := range e.live() {
		e.withdrawGone(s, there)
	}
}

// keepAsk looks after one request of the kernel's, and tells whether it is still open.
func (e *Engine) keepAsk(s *scope, r kernel.Request, answered bool) bool {
	now := e.config.now()
	late := now.Sub(r.Since) > askGrace && now.Sub(e.since) > returnGrace
	known := s != nil && s.knows(r)
	if r.Process == 0 {
		if known || !late {
			return true
		}
		// Its record was lost: the next try opens another.
		return !e.closeAsk(r)
	}
	stopped, err := e.config.host.Stopped(r.PID, uint64(r.Started/(time.Second/clockTicks)))
	if errors.Is(err, fs.ErrNotExist) {
		return !e.closeAsk(r)
	}
	over := now.After(r.Until)
	switch {
	case err != nil:
		e.log.WithError(err).Warn("look after a process that is held")
	case !known && late:
		// Nobody could answer. It asks anew.
		e.closeAsk(r)
		e.wake(r, stopped)
		return false
	case answered || over:
		e.wake(r, stopped)
		if over && !stopped && now.Sub(r.Until) > askGrace { // it does something else now
			return !e.closeAsk(r)
		}
	case stopped:
		s.reopen(e, r)
	}
	return true
}

// clockTicks is USER_HZ, in which the kernel tells when a process was started.
const clockTicks = 100

func (e *Engine) closeAsk(r kernel.Request) bool {
	if err := e.config.Kernel.CloseRequest(r.Slot, r.Key, r.Process); err != nil {
		e.log.WithError(err).Warn("close a request")
		return false
	}
	return true
}

func (e *Engine) wake(r kernel.Request, stopped bool) {
	if !stopped {
		return
	}
	err := e.config.host.Continue(r.PID, uint64(r.Started/(time.Second/clockTicks)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		e.log.WithError(err).Warn("wake a process that is held")
	}
}

// knows tells whether a request of the kernel's is in the table.
func (s *scope) knows(r kernel.Request) bool {
	s.requests.mu.Lock()
	defer s.requests.mu.Unlock()
	return s.requests.last(func(x *request) bool { return x.Key == r.Key && x.Process == r.Process }) != nil
}

// reopen: the grant that this process was to have is over: another operation has used it
// up, its time was short, or it was taken back.
func (s *scope) reopen(e *Engine, r kernel.Request) {
	if x := s.requests.find(func() *request { return s.reopened(e, r) }); x != nil {
		e.tellRequest(s, *x)
	}
}

// reopened is the request, if it is open again. The table's mu is held.
func (s *scope) reopened(e *Engine, r kernel.Request) *request {
	x := s.requests.last(func(x *request) bool { return x.Key == r.Key && x.Process == r.Process })
	if x == nil || x.Answer == nil || x.State != requestGranted && x.State != requestRevoked {
		return nil
	}
	if a := x.Answer; a.Over == "" && (a.Count == 0 || a.Used < uint64(a.Count)) {
		return nil
	}
	x.State, x.Answer = requestOpen, nil
	x.Consulted = e.consult(s, x)
	e.asks.touch(x)
	return x
}

// withdrawGone withdraws the requests of processes that were held and are gone.
func (e *Engine) withdrawGone(s *scope, there map[requestName]bool) {
	slot := s.now().Slot
	if slot == nil {
		return
	}
	now := e.config.now()
	var gone []request
	for _, r := range s.requests.list() {
		if r.State == requestOpen && r.Process != 0 && !there[requestName{*slot, r.Key, r.Process}] && now.Sub(r.Item.Time) > askInterval {
			gone = append(gone, r)
		}
	}
	for _, r := range gone {
		// The record of how it ended may be on its way.
		if stopped, err := e.config.host.Stopped(r.Item.Process.PID, 0); err == nil && (stopped || now.Sub(r.Item.Time) < askGrace) {
			continue
		}
		withdrawn := false
		err := s.requests.change(now, func() {
			if x := s.requests.open(r.Key, r.Process); x != nil {
				x.State, withdrawn = requestWithdrawn, true
				e.asks.touch(x)
				r = *x
			}
		})
		if err != nil {
			e.log.WithFields(s.fields()).WithError(err).Warn("withdraw a request")
		}
		if withdrawn {
			item := r.Item
			item.Time, item.Effect, item.Outcome, item.Request, item.Until = now, feedback.Ask, feedback.Withdrawn, r.ID, time.Time{}
			e.tell(s, item)
			e.tellClosed(s, r)
		}
	}
}
