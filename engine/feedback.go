// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/feedback"
)

// settleTime bounds how long a reader waits for records that the kernel has
// counted and we have not read yet.
const settleTime = 100 * time.Millisecond

// serveFeedback starts the server on the socket of a scope that has one. Clients that
// connected before have been waiting.
func (e *Engine) serveFeedback(s *scope) error {
	if s.now().NoFeedback {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		return errors.New("serve feedback: the scope has no socket")
	}
	ctx, cancel := context.WithCancel(e.serving)
	s.unserve = cancel
	listener := s.listener
	server := feedback.NewServer(&inside{engine: e, scope: s}, feedback.Options{Cursors: s.told})
	go func() {
		if err := server.Serve(ctx, listener); err != nil && ctx.Err() == nil {
			e.log.WithFields(s.fields()).WithError(err).Warn("feedback socket is not served any more")
		}
	}()
	return nil
}

// inside is a scope as its own processes see it: feedback.Scope.
type inside struct {
	engine *Engine
	scope  *scope
	// missing are records that were counted and never came; they are not
	// waited for again.
	missing atomic.Uint64
}

// Status implements feedback.Scope.
func (i *inside) Status() feedback.Status {
	r := i.scope.now()
	stats := i.engine.stats(i.scope)
	out := feedback.Status{
		ID: r.ID, Enforcing: r.State == enforcing && r.Slot != nil, Tier: string(i.engine.config.Kernel.Tier()),
		Mode: r.Mode, Since: r.Attached,
		Degraded: append(r.troubles(stats), i.engine.degraded()...), Warnings: r.Warnings,
		Denied: stats.Denied, Notified: stats.Notified, LostEvents: stats.Lost,
	}
	out.Clauses, out.ClausesLeft = i.engine.modes(i.scope, maxStatus)
	for _, document := range i.Policy() {
		out.Layers = append(out.Layers, document.PolicyLayer)
	}
	return out
}

// Policy implements feedback.Scope.
func (i *inside) Policy() []feedback.PolicyDocument {
	var documents []feedback.PolicyDocument
	for _, layer := range i.scope.now().Layers {
		documents = append(documents, feedback.PolicyDocument{PolicyLayer: layer.told(), Text: string(layer.Text)})
	}
	return documents
}

// Items implements feedback.Scope. A program that was just denied asks at once,
// perhaps before the record of it was read: so look at the kernel's counters.
func (i *inside) Items(after uint64) []feedback.Item {
	i.settle()
	return i.scope.events.Items(after)
}

func (i *inside) settle() {
	r := i.scope.now()
	if r.State != enforcing || r.Slot == nil {
		return
	}
	stats, err := i.engine.config.Kernel.Stats(*r.Slot)
	if err != nil {
		return
	}
	if stats.Lost > i.scope.events.told() {
		i.engine.tellLost(i.scope)
		r = i.scope.now()
	}
	counted := records(stats)
	if counted < r.Base.Records+i.missing.Load() {
		return
	}
	newest := r.Base.Sequence + counted - r.Base.Records - i.missing.Load()
	if newest <= i.scope.events.Last() {
		return
	}
	ctx, cancel := context.WithTimeout(i.engine.serving, settleTime)
	defer cancel()
	if err := i.scope.events.Wait(ctx, newest-1); err != nil {
		if last := i.scope.events.Last(); newest > last {
			i.missing.Add(newest - last)
		}
	}
}

// records is how many records a scope's counters say were sent.
func records(stats kernel.Stats) uint64 {
	return stats.Denied + stats.Notified - min(stats.Lost, stats.Denied+stats.Notified)
}

// Wait implements feedback.Scope.
func (i *inside) Wait(ctx context.Context, after uint64) error {
	return i.scope.events.Wait(ctx, after)
}

// Peer implements feedback.Scope.
func (i *inside) Peer(pid int) (feedback.Process, bool) {
	r := i.scope.now()
	if r.Slot == nil {
		return feedback.Process{}, false
	}
	process, found, err := i.engine.config.Kernel.Process(pid)
	if err == nil && found {
		return feedbackProcess(process, pid, ""), process.Slot == *r.Slot
	}
	// Not known, but where a process of this scope is: one of setup, perhaps.
	dir, err := i.engine.config.host.Cgroup(pid)
	if err != nil || r.Cgroup == "" || !within(dir, r.Cgroup) {
		return feedback.Process{}, false
	}
	return feedback.Process{PID: pid}, true
}
