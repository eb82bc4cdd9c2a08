// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/feedback"
)

// requestState is where a request is in its life; the words are the API's.
type requestState string

const (
	requestOpen      requestState = "open"
	requestGranted   requestState = "granted"
	requestDenied    requestState = "denied"
	requestTimedOut  requestState = "timed-out"
	requestWithdrawn requestState = "withdrawn"
	requestRevoked   requestState = "revoked"
)

// request is an operation that a person is asked about, or was.
type request struct {
	ID    string
	State requestState
	// Key names the operation in the kernel, and Process who is held there; 0: nobody.
	Key     kernel.AskKey
	Process kernel.ProcessID
	UID     uint32
	Mapped  bool
	// Item is the operation; its Time is when it was asked about, its Until when it is
	// refused if it is held.
	Item   feedback.Item
	Answer *answer `json:",omitempty"`
	// Subject is what else is known of who asks, and Layer the document that does.
	Subject subject `json:",omitzero"`
	Layer   string  `json:",omitempty"`
	// Consulted is how far the approvers are with it, Warnings what they warned of.
	Consulted consulted `json:",omitempty"`
	Warnings  []warning `json:",omitempty"`

	version uint64 // of the table of all scopes, when it was changed last
	told    bool   // its event is out, and those of its answer may follow
}

// answer is what a person or an approver said.
type answer struct {
	Denied   bool
	Count    uint32    // of a grant, or:
	Until    time.Time // zero with Lifetime; of a counted grant it may be its end, too
	Lifetime bool
	Because  string
	By       operator
	Time     time.Time
	Used     uint64
	// Over is why it holds no longer, OverTime since when, and OverBy who revoked it.
	Over     over      `json:",omitempty"`
	OverTime time.Time `json:",omitzero"`
	OverBy   operator  `json:",omitzero"`
}

// over is why an answer holds no longer; the words are the API's.
type over string

const (
	usedUp  over = "used up"
	expired over = "expired"
	revoked over = "revoked"
)

// operator is who answers, as the client tells.
type operator struct {
	UID  uint32
	Name string
	Via  string
	// Login is who had logged in, if that is another.
	Login string `json:",omitempty"`
}

func (o operator) String() string {
	if o.Via == viaApprover {
		return "approver " + o.Name
	}
	text := fmt.Sprintf("uid %d", o.UID)
	if o.Name != "" {
		text = o.Name + " (" + text + ")"
	}
	if o.Via != "" {
		text += " by " + o.Via
	}
	if o.Login != "" {
		text += ", logged in as " + o.Login
	}
	return text
}

// sign tells in an item who answered.
func (o operator) sign(item *feedback.Item) {
	item.By = o.String()
	if o.Via == viaApprover {
		item.Approver = o.Name
	}
}

// inForce tells whether an answer still says something, as far as time goes.
func (a *answer) inForce(now time.Time) bool {
	return a != nil && a.Over == "" && (a.Lifetime || a.Count > 0 && a.Until.IsZero() || now.Before(a.Until))
}

// asks is what the tables of all scopes have in common.
type asks struct {
	mu      sync.Mutex
	version uint64        // guarded by mu
	changed chan struct{} // guarded by mu; closed at the next change
}

// touch gives a request that is being changed its version. Its table is locked.
func (a *asks) touch(r *request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version++
	r.version = a.version
	if a.changed != nil {
		close(a.changed)
		a.changed = nil
	}
}

// wait returns a channel that is closed when a request has changed since the call.
func (a *asks) wait() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.changed == nil {
		a.changed = make(chan struct{})
	}
	return a.changed
}

// Names of requests are typed by people: without letters and digits that look alike,
// and without vowels, so that none is a word. Not one after the other, so that a slip
// does not hit the next.
const (
	requestLetters = "bcdfghjkmnpqrstvwxz23456789"
	requestLength  = 5
)

// newRequestID finds a name that no request has of which anybody knows.
func (e *Engine) newRequestID() string {
	used := map[string]bool{}
	for _, s := range e.all() {
		for _, r := range s.requests.list() {
			used[r.ID] = true
		}
	}
	for {
		var bytes [requestLength]byte
		_, _ = rand.Read(bytes[:]) // never fails
		for i, b := range bytes {
			bytes[i] = requestLetters[int(b)%len(requestLetters)]
		}
		if id := string(bytes[:]); !used[id] {
			return id
		}
	}
}

// unasked is why nobody can be asked.
func unasked(what kernel.Asked) string {
	switch what {
	case kernel.NoRoom:
		return "too many requests are open"
	case kernel.Unnamed:
		return "what it is about cannot be told exactly"
	case kernel.CannotHold:
		return "this process or system call cannot be stopped and made again"
	case kernel.Written:
		return "somebody has the program open to write to it, or mapped; it can be asked about when that is over"
	case kernel.SharedDirectory:
		return "the process shares its working directory with another one, which could change it meanwhile (CLONE_FS)"
	}
	return "the engine has no word for why"
}

// noteAsk keeps the table by what the kernel reports of an ask, and completes the item.
// A program can try again as often as it likes: that changes nothing which is saved.
func (e *Engine) noteAsk(s *scope, rec kernel.Record, item *feedback.Item) {
	switch rec.Asked {
	case kernel.Opened, kernel.StillOpen, kernel.Held:
		e.noteOpened(s, rec, item)
	case kernel.TimedOut:
		item.Outcome = feedback.TimedOut
		e.noteTimedOut(s, rec, item)
	case kernel.Denied:
		item.Outcome = feedback.Denied
		e.noteAnswered(s, rec, item)
	case kernel.Granted:
		item.Outcome = feedback.Used
		e.noteAnswered(s, rec, item)
	default:
		item.Effect, item.Outcome, item.Reason = feedback.Ask, feedback.Unasked, unasked(rec.Asked)
	}
}

func (e *Engine) noteTimedOut(s *scope, rec kernel.Record, item *feedback.Item) {
	var closed *request
	e.changeRequests(s, func() {
		if r := s.requests.open(rec.Ask, rec.Process.ID); r != nil {
			r.State, item.Request = requestTimedOut, r.ID
			e.asks.touch(r)
			copied := *r
			closed = &copied
		}
	})
	if closed != nil {
		e.tellClosed(s, *closed)
	}
}

// saveRequests saves the tables that have changed.
func (e *Engine) saveRequests() {
	for _, s := range e.live() {
		if err := s.requests.keepSaved(); err != nil {
			e.log.WithFields(s.fields()).WithError(err).Warn("requests will not survive a restart")
		}
	}
}

func (e *Engine) changeRequests(s *scope, edit func()) {
	if err := s.requests.change(e.config.now(), edit); err != nil {
		e.log.WithFields(s.fields()).WithError(err).Warn("request will not survive a restart")
	}
}

// noteOpened finds the request that an ask is about, or makes it.
func (e *Engine) noteOpened(s *scope, rec kernel.Record, item *feedback.Item) {
	process := kernel.ProcessID(0)
	item.Effect = feedback.Ask
	switch rec.Asked {
	case kernel.Held:
		numbers := s.numbers(rec)
		process, item.Outcome = rec.Process.ID, feedback.Held
		item.Until = rec.Time.Add(numbers.hold(rec))
	case kernel.StillOpen:
		item.Outcome = feedback.StillOpen
	default:
		item.Outcome = feedback.Opened
	}
	if r := s.requests.find(func() *request { return s.requests.asking(rec, process) }); r != nil {
		item.Request = r.ID
		return
	}
	r := &request{ID: e.newRequestID(), State: requestOpen, Key: rec.Ask, Process: process, UID: rec.UID, Mapped: rec.Mapped, Item: *item}
	r.Item.Outcome = ""
	r.Subject, r.Layer = e.subjectOf(s, rec), s.layerOf(rec)
	r.Consulted = e.consult(s, r)
	item.Request = r.ID
	opened := *r
	e.changeRequests(s, func() {
		s.requests.all = append(s.requests.all, r)
		e.asks.touch(r)
	})
	e.tellRequest(s, opened)
}

// noteAnswered counts an operation that has met an answer.
func (e *Engine) noteAnswered(s *scope, rec kernel.Record, item *feedback.Item) {
	r := s.requests.find(func() *request {
		r := s.requests.answered(rec.Ask, rec.Asked == kernel.Denied)
		if r != nil {
			counted := *r.Answer
			counted.Used++
			r.Answer = &counted
		}
		return r
	})
	if r == nil {
		return
	}
	item.Request, item.Reason, item.Until = r.ID, r.Answer.Because, r.Answer.Until
	r.Answer.By.sign(item)
	if rec.Asked == kernel.Granted && item.Operation == "exec" {
		// An interpreter is what the kernel sees then.
		item.Object, item.Args, item.ArgsCut = r.Item.Object, r.Item.Args, r.Item.ArgsCut
	}
}

// layerOf names the document that asks.
func (s *scope) layerOf(rec kernel.Record) string {
	n, layer := s.numbers(rec), -1
	if d, ok := n.defaultOf(rec.Default); ok {
		layer = d.Layer
	} else if rule, _, ok := n.clause(rec.Clause); ok {
		layer = rule.Layer
	}
	if layer < 0 || layer >= len(n.program.Layers) {
		return ""
	}
	return n.program.Layers[layer].Name
}
