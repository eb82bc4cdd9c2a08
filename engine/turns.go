// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// What the daemon works on for a container for longer than fastWork is followed by a rest of
// restFactor times as long, in which it does no more of it for the same one: containers choose
// what is to be compiled and decided, and it is the host's time. Who comes in a rest that ends
// within maxRest waits.
const (
	fastWork   = 20 * time.Millisecond
	restFactor = 9
	maxRest    = time.Second
)

// turns are taken by one process of a scope after the other.
type turns struct {
	mu     sync.Mutex
	rested time.Time // guarded by mu
}

// enter waits for a turn, which ends with leave.
func (t *turns) enter(ctx context.Context) (leave func(), err error) {
	t.mu.Lock()
	if err := ctx.Err(); err != nil { // who asked has gone
		t.mu.Unlock()
		return nil, err
	}
	return t.mu.Unlock, nil
}

// rest waits, in a turn, for the rest after the last work, or refuses.
func (t *turns) rest(ctx context.Context) error {
	left := time.Until(t.rested)
	if left > maxRest {
		return turnedDown(http.StatusTooManyRequests, "what was asked before took long; try again in %s", left.Round(time.Second/10))
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// worked notes, in a turn, since when the daemon has worked.
func (t *turns) worked(since time.Time) {
	if took := time.Since(since); took > fastWork {
		t.rested = time.Now().Add(restFactor * took)
	}
}
