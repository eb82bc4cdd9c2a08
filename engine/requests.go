// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/feedback"
	"github.com/actplane/actplane/internal/atomicfile"
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

// maxPast is how many requests of a scope are kept whose answer is over.
const maxPast = 100

// requests is the table of one scope: what is open, what has an answer in force, and the
// latest of the others. It lies in a file as well, from which the next daemon goes on.
type requests struct {
	path string

	mu    sync.Mutex
	all   []*request // oldest first; guarded by mu
	saved time.Time  // when it was saved last; guarded by mu
	dirty bool       // it has changed since; guarded by mu
	// settled: no answer can end by itself, and none that has ended is in the kernel;
	// guarded by mu.
	settled bool
}

func newRequests(dir string) *requests {
	return &requests{path: filepath.Join(dir, "requests.json")}
}

// loadRequests takes over the table of an earlier daemon.
func loadRequests(dir string) (*requests, error) {
	t := newRequests(dir)
	text, err := os.ReadFile(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &t.all)
	}
	if err != nil {
		return nil, fmt.Errorf("load requests: %w", err)
	}
	for _, r := range t.all {
		r.told = true
	}
	return t, nil
}

// change edits the table and saves it; where it changes often, keepSaved does that a
// little later, since whoever records waits for it. What a killed daemon has not saved
// asks anew.
func (t *requests) change(now time.Time, edit func()) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	edit()
	t.drop(now)
	t.settled = false
	if t.dirty = true; time.Since(t.saved) < askInterval {
		return nil
	}
	return t.save()
}

// keepSaved saves the table if it has changed since.
func (t *requests) keepSaved() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.dirty {
		return nil
	}
	return t.save()
}

// save is for who holds mu.
func (t *requests) save() error {
	t.dirty, t.saved = false, time.Now()
	text, err := json.Marshal(t.all)
	if err == nil {
		err = atomicfile.Write(t.path, text, atomicfile.Options{Mode: 0o600})
	}
	if err != nil {
		return fmt.Errorf("save requests: %w", err)
	}
	return nil
}

// drop forgets the oldest of what is over. mu is held.
func (t *requests) drop(now time.Time) {
	past := func(r *request) bool { return r.State != requestOpen && !r.Answer.inForce(now) }
	excess := -maxPast
	for _, r := range t.all {
		if past(r) {
			excess++
		}
	}
	t.all = slices.DeleteFunc(t.all, func(r *request) bool {
		if excess <= 0 || !past(r) {
			return false
		}
		excess--
		return true
	})
}

// list copies the table.
func (t *requests) list() []request {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]request, 0, len(t.all))
	for _, r := range t.all {
		out = append(out, *r)
	}
	return out
}

// open finds the open request for an operation of a process. mu is held.
func (t *requests) open(key kernel.AskKey, process kernel.ProcessID) *request {
	return t.last(func(r *request) bool { return r.State == requestOpen && r.Key == key && r.Process == process })
}

// asking finds the request that a record is about: the open one, or one that was answered
// while the record was on its way. mu is held.
func (t *requests) asking(rec kernel.Record, process kernel.ProcessID) *request {
	if r := t.open(rec.Ask, process); r != nil || process != 0 {
		return r
	}
	return t.last(func(r *request) bool {
		a := r.Answer
		return r.Key == rec.Ask && a != nil && a.Over == "" &&
			(rec.Time.Before(a.Time) || rec.Asked == kernel.StillOpen && rec.Time.Equal(a.Time))
	})
}

// answered finds the request whose answer an operation has met. mu is held.
func (t *requests) answered(key kernel.AskKey, denied bool) *request {
	return t.last(func(r *request) bool { return r.Key == key && r.Answer != nil && r.Answer.Denied == denied })
}

// named finds a request by its name. mu is held.
func (t *requests) named(id string) *request {
	return t.last(func(r *request) bool { return r.ID == id })
}

// find copies what a search finds, nil for nothing.
func (t *requests) find(search func() *request) *request {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := search()
	if r == nil {
		return nil
	}
	found := *r
	return &found
}

func (t *requests) last(is func(*request) bool) *request {
	for _, r := range slices.Backward(t.all) {
		if is(r) {
			return r
		}
	}
	return nil
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
