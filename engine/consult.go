// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"sync"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/engine/approver"
	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/feedback"
)

// viaApprover is how an answer came that a program on the host gave.
const viaApprover = "approver"

// How many requests the approvers are asked about at a time, of one scope and of all: a
// container that asks much delays its own requests.
const (
	maxConsultedOfScope = 2
	maxConsulted        = 16
)

// consulted is how far the approvers are with a request. It is kept with the request, so
// that nothing else has to be remembered of those that wait for their turn.
type consulted string

const (
	notConsulted consulted = ""        // no approver is asked about it
	toConsult    consulted = "pending" // they are to be asked, or are being asked
	wasConsulted consulted = "done"    // they have left it to a person, or answered
)

func (c consulted) busy() bool { return c == toConsult }

// approvers are asked before people are; *approver.Chain are.
type approvers interface {
	Asks(rule, operation, container string) bool
	Ask(context.Context, *api.RequestDocument) (approver.Verdict, error)
}

// consult tells whether approvers are to be asked about a request.
func (e *Engine) consult(s *scope, r *request) consulted {
	if e.config.Approvers == nil || !e.config.Approvers.Asks(r.Item.Rule, r.Item.Operation, s.now().Name) {
		return notConsulted
	}
	return toConsult
}

// consultAnew finds out who is asked about the requests of an earlier daemon, whose
// configuration may have been another.
func (e *Engine) consultAnew(s *scope) {
	for _, r := range s.requests.all { // nobody else has the table yet
		if r.State == requestOpen && r.Consulted.busy() {
			r.Consulted = e.consult(s, r)
			e.tellRequest(s, *r)
		}
	}
}

// noteTold lets the approvers be asked about a request whose event is out: its answer's
// comes behind.
func (e *Engine) noteTold(s *scope, id string) {
	if id == "" || e.config.Approvers == nil {
		return
	}
	s.requests.find(func() *request {
		r := s.requests.named(id)
		if r != nil && !r.told {
			r.told = true
			e.asks.touch(r)
		}
		return nil
	})
}

// consulting is what the approvers are asked about at this moment.
type consulting struct {
	mu      sync.Mutex
	running map[string]string // request to scope; guarded by mu
}

// begin takes a place for a request; false: there is none, or it has one.
func (c *consulting) begin(request, scope string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running == nil {
		c.running = map[string]string{}
	}
	own := 0
	for _, s := range c.running {
		if s == scope {
			own++
		}
	}
	if _, twice := c.running[request]; twice || own >= maxConsultedOfScope || len(c.running) >= maxConsulted {
		return false
	}
	c.running[request] = scope
	return true
}

func (c *consulting) end(request string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.running, request)
}

// consultLoop asks the approvers about what is to be asked, as long as the daemon lives;
// what its predecessor did not hear to the end is asked about anew.
func (e *Engine) consultLoop(ctx context.Context) error {
	if e.config.Approvers == nil {
		return nil
	}
	var calls sync.WaitGroup
	defer calls.Wait()
	ended := make(chan struct{}, 1)
	for {
		changed := e.asks.wait()
		for _, s := range e.live() {
			for _, r := range s.requests.list() {
				if !r.toConsult() || !e.consulting.begin(r.ID, s.id) {
					continue
				}
				// A call that was running when the requests were listed may have ended.
				if now := s.requests.find(func() *request { return s.requests.named(r.ID) }); now == nil || !now.toConsult() {
					e.consulting.end(r.ID)
					continue
				}
				calls.Go(func() {
					e.ask(ctx, s, r)
					e.consulting.end(r.ID)
					select {
					case ended <- struct{}{}:
					default:
					}
				})
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-ended:
		}
	}
}

// toConsult tells whether the approvers are to be asked about a request.
func (r *request) toConsult() bool {
	return r.State == requestOpen && r.Consulted.busy() && r.told
}

// ask asks the approvers about one request, and does what they say.
func (e *Engine) ask(ctx context.Context, s *scope, r request) {
	document := s.describeRequest(r).Document()
	verdict, err := e.config.Approvers.Ask(ctx, &document)
	if err != nil {
		return // the daemon ends; the next one asks
	}
	defer e.ids.lock(s.id)()
	r, open := e.noteVerdict(s, r.ID, verdict)
	if !open {
		return // a person was faster, or nobody waits any more
	}
	if verdict.Decision != approver.Pass {
		a, said := e.answerOfApprovers(verdict)
		if _, err := e.putAnswer(s, r, a, said); err != nil {
			e.log.WithFields(s.fields()).WithField("request", r.ID).WithError(err).Warn("an approver's answer cannot be put into force; a person can answer")
			e.tellRequest(s, r)
		}
		return
	}
	e.tellRequest(s, r)
	if len(verdict.Warnings) > 0 {
		item := r.Item
		item.Time, item.Effect, item.Outcome, item.Request = e.config.now(), feedback.Ask, feedback.Warned, r.ID
		item.Warnings = warningTexts(r.Warnings)
		e.tell(s, item)
	}
}

// noteVerdict keeps of a request that the approvers were asked, and what they warned of.
func (e *Engine) noteVerdict(s *scope, id string, verdict approver.Verdict) (noted request, open bool) {
	e.changeRequests(s, func() {
		r := s.requests.named(id)
		if r == nil || r.State != requestOpen {
			return
		}
		r.Consulted, r.Warnings = wasConsulted, nil
		for _, w := range verdict.Warnings {
			r.Warnings = append(r.Warnings, warning(w))
		}
		e.asks.touch(r)
		noted, open = *r, true
	})
	return noted, open
}

// answerOfApprovers is a verdict as an answer.
func (e *Engine) answerOfApprovers(v approver.Verdict) (*answer, kernel.Answer) {
	now := e.config.now()
	a := &answer{
		Denied: v.Decision == approver.Deny, Because: v.Because, Time: now, Until: now.Add(v.For),
		By: operator{Name: v.By, Via: viaApprover},
	}
	if v.Once && !a.Denied {
		a.Count = 1
	}
	return a, kernel.Answer{Denied: a.Denied, Count: a.Count, Timed: a.Count == 0, For: v.For}
}

// warning is what an approver wants whoever decides to know.
type warning struct{ Approver, Text string }

func (w warning) String() string { return "approver " + w.Approver + ": " + w.Text }

func warningTexts(warnings []warning) (texts []string) {
	for _, w := range warnings {
		texts = append(texts, w.String())
	}
	return texts
}
