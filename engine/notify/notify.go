// SPDX-License-Identifier: Apache-2.0

// Package notify tells people of requests and denials: by programs and webhooks of the
// host's configuration.
//
// Nothing waits for it. Tell puts an event into a bounded queue, or counts it as dropped;
// a worker for each target sends what is there, several events in one message where they
// come faster than it may send. What cannot be delivered after some attempts is counted,
// too, and Problems says so.
package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/internal/approval"
	"github.com/actplane/actplane/internal/hostcall"
)

const (
	maxQueue = 256 // events of one target
	maxBatch = 20  // in one message
	// Messages of one target: so many at once, and then one in so long.
	burst    = 5
	interval = 3 * time.Second
)

// Event is something that people are told of.
type Event struct {
	Kind string // one of approval's Event…
	Type string // more exactly, such as "request.opened"
	Time time.Time
	// One of these.
	Request *api.RequestDocument
	Denial  *Denial
}

// Denial is an operation that was refused. As in RequestDocument, what programs in the
// container chose is raw text.
type Denial struct {
	Scope     string   `json:"scope"`
	Name      string   `json:"name"`
	Sequence  uint64   `json:"sequence"`
	Effect    string   `json:"effect"`
	Operation string   `json:"operation"`
	Object    string   `json:"object"`
	Args      []string `json:"args"`
	ArgsCut   bool     `json:"args_cut"`
	Rule      string   `json:"rule"`
	Because   string   `json:"because"`
	RuleAdded bool     `json:"rule_added"`
	Clause    string   `json:"clause"`
	Position  string   `json:"position"`
	Labels    []string `json:"labels"`
	PID       int      `json:"pid"`
	Comm      string   `json:"comm"`
	Outcome   string   `json:"outcome"` // of what asked
	RequestID string   `json:"request"`
}

// Notifier tells all targets. Its methods may be called concurrently; a nil one does
// nothing.
type Notifier struct {
	peer    hostcall.Peer // looks at who answers at a URL or socket of this host, if not nil
	log     *logrus.Entry
	pause   func(context.Context, time.Duration) bool // false: the context has ended
	changed chan struct{}                             // told when the targets are others

	mu      sync.Mutex
	targets []*target // guarded by mu; never changed itself
}

// target is one of them.
type target struct {
	approval.Notification
	caller *hostcall.Caller
	secret []byte // nil: messages are not signed
	log    *logrus.Entry
	now    func() time.Time
	wake   chan struct{}

	mu    sync.Mutex
	queue []Event // guarded by mu
	count counters
}

// counters are guarded by target.mu.
type counters struct {
	leftOut uint64 // since the last message
	dropped uint64 // in all: there was no room
	failed  uint64 // in all: they could not be delivered
	last    string // why
}

// New makes a notifier of notifications that were checked. Without any it tells nobody.
func New(notifications []approval.Notification, peer hostcall.Peer, log *logrus.Entry) (*Notifier, error) {
	n := &Notifier{peer: peer, log: log, pause: pause, changed: make(chan struct{}, 1)}
	return n, n.Replace(notifications)
}

// Replace puts other notifications, which were checked, in the place of those that there
// are. One that stays the same keeps its queue; what waits for another is dropped. After
// an error all is as it was.
func (n *Notifier) Replace(notifications []approval.Notification) error {
	old, targets := n.now(), make([]*target, 0, len(notifications))
	for _, one := range notifications {
		t, err := n.target(one)
		if err != nil {
			return fmt.Errorf("notification %q: %w", one.Name, err)
		}
		if i := slices.IndexFunc(old, t.same); i >= 0 {
			t = old[i]
		}
		targets = append(targets, t)
	}
	n.mu.Lock()
	n.targets = targets
	n.mu.Unlock()
	select {
	case n.changed <- struct{}{}:
	default:
	}
	return nil
}

func (n *Notifier) target(one approval.Notification) (*target, error) {
	caller, err := hostcall.New(one.Target, n.peer)
	if err != nil {
		return nil, err
	}
	t := &target{Notification: one, caller: caller, log: n.log, now: time.Now, wake: make(chan struct{}, 1)}
	if one.SecretFile != "" {
		t.secret, err = approval.ReadSecret(one.SecretFile)
	}
	return t, err
}

// same tells whether a target is of the same notification, with the same secret.
func (t *target) same(other *target) bool {
	return reflect.DeepEqual(t.Notification, other.Notification) && bytes.Equal(t.secret, other.secret)
}

// now are the targets that there are; a nil notifier has none.
func (n *Notifier) now() []*target {
	if n == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.targets
}

// Wants tells whether somebody is told of a kind of event.
func (n *Notifier) Wants(kind string) bool {
	return slices.ContainsFunc(n.now(), func(t *target) bool { return slices.Contains(t.Events, kind) })
}

// Tell notes an event for those who want it, and returns at once.
func (n *Notifier) Tell(e Event) {
	for _, t := range n.now() {
		if slices.Contains(t.Events, e.Kind) {
			t.add(e)
		}
	}
}

func (t *target) add(e Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.queue) >= maxQueue {
		t.count.dropped++
		t.count.leftOut++
		return
	}
	t.queue = append(t.queue, e)
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

func (t *target) waiting() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.queue) > 0
}

// take takes the events of the next message, and how many were dropped before it.
func (t *target) take() (events []Event, leftOut uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	size := min(len(t.queue), maxBatch)
	events, t.queue = slices.Clone(t.queue[:size]), slices.Clone(t.queue[size:])
	leftOut, t.count.leftOut = t.count.leftOut, 0
	return events, leftOut
}

// Problems tells of each target what has not reached it since the start.
func (n *Notifier) Problems() (problems []string) {
	for _, t := range n.now() {
		t.mu.Lock()
		c := t.count
		t.mu.Unlock()
		if c.failed > 0 {
			problems = append(problems, fmt.Sprintf("notification %q: %d events could not be delivered since the engine was started; the last time: %s", t.Name, c.failed, c.last))
		}
		if c.dropped > 0 {
			problems = append(problems, fmt.Sprintf("notification %q: %d events were dropped since the engine was started: more came than could be delivered", t.Name, c.dropped))
		}
	}
	return problems
}

// Run delivers until the context ends. What is queued then is lost.
func (n *Notifier) Run(ctx context.Context) {
	if n == nil {
		return
	}
	var workers sync.WaitGroup
	defer workers.Wait()
	running := map[*target]context.CancelFunc{}
	for {
		targets := n.now()
		for t, stop := range running {
			if !slices.Contains(targets, t) {
				stop()
				delete(running, t)
			}
		}
		for _, t := range targets {
			if running[t] == nil {
				own, stop := context.WithCancel(ctx)
				running[t] = stop
				workers.Go(func() { t.work(own, n.pause) })
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-n.changed:
		}
	}
}

// work sends what is in the queue, at its pace.
func (t *target) work(ctx context.Context, pause func(context.Context, time.Duration) bool) {
	allowance, since := burst, t.now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.wake:
		}
		for t.waiting() {
			if gained := int(t.now().Sub(since) / interval); gained > 0 {
				allowance, since = min(burst, allowance+gained), since.Add(time.Duration(gained)*interval)
			}
			if allowance == 0 {
				if !pause(ctx, interval-t.now().Sub(since)) {
					return
				}
				continue
			}
			events, leftOut := t.take()
			allowance--
			t.deliver(ctx, newMessage(&t.Notification, events, leftOut, t.now()), pause)
			if ctx.Err() != nil {
				return
			}
		}
	}
}

// attempts are the times between attempts to deliver a message.
var attempts = [...]time.Duration{time.Second, 5 * time.Second, 25 * time.Second, 2 * time.Minute}

// deliver sends a message, again and again for some time.
func (t *target) deliver(ctx context.Context, m message, pause func(context.Context, time.Duration) bool) {
	for i := 0; ; i++ {
		err := t.send(ctx, m)
		if err == nil || ctx.Err() != nil {
			return
		}
		if i == len(attempts) || final(err) {
			t.fail(m, err)
			return
		}
		if !pause(ctx, attempts[i]) {
			return
		}
	}
}

// final tells whether trying again is of no use: the receiver has understood, and says no.
func final(err error) bool {
	var status hostcall.StatusError
	if !errors.As(err, &status) {
		return false
	}
	switch int(status) {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return status < 500
}

func (t *target) fail(m message, err error) {
	t.log.WithField("notification", t.Name).WithField("events", m.events).WithError(err).Warn("a notification could not be delivered")
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count.failed += uint64(m.events)
	t.count.last = err.Error()
}

func (t *target) send(ctx context.Context, m message) error {
	body, headers, err := m.encode(t.secret, t.now())
	if err != nil {
		return err
	}
	_, err = t.caller.Call(ctx, body, headers)
	return err
}

// pause waits; false: the context has ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
