// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/internal/daemon"
)

const (
	listInterval  = time.Second
	retryInterval = time.Second
	answerTimeout = 10 * time.Second
)

// View is a picture of the engine at one time. Nothing in it changes any more.
type View struct {
	// Problem is why the rest is not up to date, in a sentence; empty if it is.
	Problem  string
	Engine   *api.StatusResponse // nil before the first answer
	Scopes   []*api.Scope        // those that live first, in the engine's order
	Requests []*api.Request      // what is open first, oldest first; then the others, newest first
	Grants   []*api.Grant        // the answers that hold, newest first
	// GrantsProblem is why Grants are not known; empty if they are.
	GrantsProblem string
	Rows          []*Row       // newest first, at most maxRows
	Rules         []*RuleCount // by scope, the busiest first
}

// Open is how many requests wait for an answer.
func (v *View) Open() (n int) {
	for _, r := range v.Requests {
		if r.State == requestOpen {
			n++
		}
	}
	return n
}

// Request finds a request by its id; nil if there is none.
func (v *View) Request(id string) *api.Request {
	for _, r := range v.Requests {
		if r.Id == id {
			return r
		}
	}
	for _, g := range v.Grants { // one that was answered long ago
		if g.Request.GetId() == id {
			return g.Request
		}
	}
	return nil
}

// Scope finds a scope by its id; nil if there is none.
func (v *View) Scope(id string) *api.Scope {
	for _, s := range v.Scopes {
		if s.Id == id {
			return s
		}
	}
	return nil
}

// Connect reaches the daemon.
type Connect func(context.Context) (*daemon.Client, error)

// Watcher keeps a picture of the engine, over restarts of the daemon. Its memory is
// bounded, whatever containers do.
type Watcher struct {
	connect Connect

	mu      sync.Mutex
	history history             // guarded by mu
	client  *daemon.Client      // guarded by mu; nil while there is none
	problem string              // guarded by mu
	status  *api.StatusResponse // guarded by mu; of the last daemon
	changed chan struct{}       // guarded by mu; closed at the next change
}

// NewWatcher makes a watcher, which [Watcher.Run] lets watch.
func NewWatcher(connect Connect) *Watcher {
	return &Watcher{connect: connect, history: newHistory(), problem: "not connected to the engine yet"}
}

// Run watches until the context ends.
func (w *Watcher) Run(ctx context.Context) {
	for ctx.Err() == nil {
		client, err := w.connect(ctx)
		if err == nil {
			err = w.watch(ctx, client)
			client.Close()
			w.change(func() { w.client = nil })
			err = fmt.Errorf("the engine has stopped (%s); waiting for it to come back, what runs stays under policy", daemon.Reason(err))
		}
		w.change(func() { w.problem = err.Error() })
		select {
		case <-ctx.Done():
		case <-time.After(retryInterval):
		}
	}
}

// watch follows one daemon as long as it answers.
func (w *Watcher) watch(ctx context.Context, client *daemon.Client) error {
	if err := w.takeRequests(ctx, client); err != nil {
		return err
	}
	if err := w.takeScopes(ctx, client); err != nil {
		return err
	}
	w.takeGrants(ctx, client)
	w.change(func() { w.client, w.status, w.problem = client, client.Status, "" })
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return w.followEvents(ctx, client) })
	group.Go(func() error { return w.followRequests(ctx, client) })
	group.Go(func() error {
		ticker := time.NewTicker(listInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-ticker.C:
			}
			if err := w.takeScopes(ctx, client); err != nil {
				return err
			}
			w.takeGrants(ctx, client)
		}
	})
	return group.Wait()
}

// takeRequests replaces all requests: those of an earlier daemon may be gone.
func (w *Watcher) takeRequests(ctx context.Context, client *daemon.Client) error {
	stream, err := client.Requests(ctx, &api.RequestsRequest{All: true})
	if err != nil {
		return err
	}
	all := map[string]*api.Request{}
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		all[r.Id] = r
	}
	w.change(func() { w.history.requests = all })
	return nil
}

func (w *Watcher) takeScopes(ctx context.Context, client *daemon.Client) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	response, err := client.List(ctx, &api.ListRequest{})
	if err != nil {
		return err
	}
	w.change(func() { w.history.setScopes(response.Scopes) })
	return nil
}

// takeGrants takes the answers that hold. An engine that does not tell them has told all
// else.
func (w *Watcher) takeGrants(ctx context.Context, client *daemon.Client) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	response, err := client.ListGrants(ctx, &api.ListGrantsRequest{})
	w.change(func() {
		w.history.grants, w.history.grantsProblem = response.GetGrants(), ""
		if err != nil {
			w.history.grantsProblem = "the engine does not tell which answers hold: " + daemon.Reason(err)
		}
	})
}

func (w *Watcher) followEvents(ctx context.Context, client *daemon.Client) error {
	stream, err := client.Events(ctx, &api.EventsRequest{Follow: true, History: true})
	if err != nil {
		return err
	}
	for {
		e, err := stream.Recv()
		if err != nil {
			return err
		}
		w.change(func() { w.history.addEvent(e) })
	}
}

func (w *Watcher) followRequests(ctx context.Context, client *daemon.Client) error {
	stream, err := client.Requests(ctx, &api.RequestsRequest{Follow: true, All: true})
	if err != nil {
		return err
	}
	for {
		r, err := stream.Recv()
		if err != nil {
			return err
		}
		w.change(func() { w.history.setRequest(r) })
	}
}

func (w *Watcher) change(edit func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	edit()
	if w.changed != nil {
		close(w.changed)
		w.changed = nil
	}
}

// Changed returns a channel that is closed when something has changed since the call.
func (w *Watcher) Changed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.changed == nil {
		w.changed = make(chan struct{})
	}
	return w.changed
}

// View is the picture now.
func (w *Watcher) View() *View {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := w.history.view()
	v.Problem, v.Engine = w.problem, w.status
	return v
}

// Scopes lists the scopes as they are at this moment; while the engine is away, as they
// were last. The error says that neither is known.
func (w *Watcher) Scopes(ctx context.Context) ([]*api.Scope, error) {
	w.mu.Lock()
	client, status := w.client, w.status
	w.mu.Unlock()
	if client != nil {
		if err := w.takeScopes(ctx, client); err == nil {
			return w.View().Scopes, nil
		}
	}
	if status == nil {
		return nil, errors.New("the engine has not told yet what is under policy")
	}
	return w.View().Scopes, nil
}

// Graph is how an event came about: what the engine knows, or else what the event tells.
func (w *Watcher) Graph(ctx context.Context, e *api.Event, zone *time.Location) Graph {
	client := w.current()
	if client == nil || len(e.Labels)+len(e.Chain) == 0 {
		return EventGraph(e)
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	p, err := client.Provenance(ctx, &api.ProvenanceRequest{Scope: e.Scope, Sequence: e.Sequence})
	if err != nil || p.Event == nil { // it may no longer be kept
		return EventGraph(e)
	}
	return ProvenanceGraph(p, zone)
}

func (w *Watcher) current() *daemon.Client {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.client
}

// Answer answers a request. The error is a sentence for people.
func (w *Watcher) Answer(ctx context.Context, answer *api.AnswerRequest) (*api.Request, error) {
	return w.ask(ctx, func(ctx context.Context, client *daemon.Client) (*api.Request, error) {
		return client.Answer(ctx, answer)
	})
}

// Revoke takes an answer back, so that the operation asks again. The error is a sentence
// for people.
func (w *Watcher) Revoke(ctx context.Context, revoke *api.RevokeRequest) (*api.Request, error) {
	return w.ask(ctx, func(ctx context.Context, client *daemon.Client) (*api.Request, error) {
		return client.Revoke(ctx, revoke)
	})
}

func (w *Watcher) ask(ctx context.Context, call func(context.Context, *daemon.Client) (*api.Request, error)) (*api.Request, error) {
	client := w.current()
	if client == nil {
		return nil, errors.New("nothing was answered: the engine is not there")
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	r, err := call(ctx, client)
	if err != nil {
		return nil, errors.New(daemon.Reason(err))
	}
	w.change(func() { w.history.setRequest(r) })
	w.takeGrants(ctx, client)
	return r, nil
}

// Lockdown locks one scope, which it gives back as it is then.
func (w *Watcher) Lockdown(ctx context.Context, lock *api.LockdownRequest) (*api.Lock, error) {
	return w.changeLock(ctx, lock.Scope, func(ctx context.Context, client *daemon.Client) ([]*api.Lock, error) {
		response, err := client.Lockdown(ctx, lock)
		return response.GetLocks(), err
	})
}

// Unlock ends the lock of one scope, which it gives back as it was.
func (w *Watcher) Unlock(ctx context.Context, unlock *api.UnlockRequest) (*api.Lock, error) {
	return w.changeLock(ctx, unlock.Scope, func(ctx context.Context, client *daemon.Client) ([]*api.Lock, error) {
		response, err := client.Unlock(ctx, unlock)
		return response.GetLocks(), err
	})
}

func (w *Watcher) changeLock(ctx context.Context, id string, call func(context.Context, *daemon.Client) ([]*api.Lock, error)) (*api.Lock, error) {
	client := w.current()
	if client == nil {
		return nil, errors.New("nothing was changed: the engine is not there")
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	locks, err := call(ctx, client)
	if err != nil {
		return nil, errors.New(daemon.Reason(err))
	}
	if err := w.takeScopes(ctx, client); err != nil {
		return nil, errors.New(daemon.Reason(err))
	}
	for _, lock := range locks {
		if lock.Id == id {
			return lock, nil
		}
	}
	return nil, errors.New("it was not locked any more")
}

// InForce tells whether a request has an answer that holds.
func InForce(r *api.Request) bool {
	return r.GetAnswered() != nil && r.Answered.Over == "" && (r.State == "granted" || r.State == "denied")
}
