// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"path"
	"strings"
	"time"

	"github.com/actplane/actplane/feedback"
	"github.com/actplane/actplane/policy/ir"
)

// maxObject bounds what is asked about, in bytes: the kernel's PATH_MAX.
const maxObject = 4096

// Question is an operation that did not happen, by a process in the state that it is in.
type Question struct {
	Op     ir.Op
	Object string
	Args   []string // of an exec, with the name that it is called by
	// Labels, Cleared and Lineage are the process's, Gates the open ones: bits.
	Labels, Cleared, Lineage, Gates uint64
}

// Verdict is what a policy says to it.
type Verdict struct {
	Effect        ir.Effect
	Rule, Because string
	Clause, Pos   string
	RuleAdded     bool // what decides was added at run time
}

// Check implements feedback.Scope.
func (i *inside) Check(ctx context.Context, peer feedback.Process, req feedback.CheckRequest) (feedback.Checked, error) {
	e, r := i.engine, i.scope.now()
	if e.config.Decide == nil || r.State != enforcing || r.Slot == nil {
		return feedback.Checked{}, turnedDown(http.StatusConflict, "the container's policy is not in force")
	}
	q, err := questionOf(req)
	if err != nil {
		return feedback.Checked{}, turnedDown(http.StatusBadRequest, "%v", err)
	}
	process, err := e.ancestor(*r.Slot, peer, req.Depth)
	if err != nil {
		return feedback.Checked{}, err
	}
	q.Labels, q.Cleared, q.Lineage = process.Labels, process.Cleared, process.Lineage
	if q.Gates, err = e.config.Kernel.Gates(*r.Slot); err != nil {
		return feedback.Checked{}, fmt.Errorf("read gates: %w", err)
	}
	v, err := e.decide(ctx, i.scope, q)
	var refusal *feedback.Refusal
	if errors.As(err, &refusal) || ctx.Err() != nil {
		return feedback.Checked{}, cmp.Or(ctx.Err(), err)
	}
	if err != nil {
		return feedback.Checked{}, turnedDown(http.StatusBadRequest, "it cannot be decided: %v", err)
	}
	return feedback.NewChecked(req, feedback.Item{
		Effect: checkedEffect(v.Effect), Operation: req.Operation, Object: req.Object, Args: q.Args,
		Rule: v.Rule, Because: v.Because, Clause: v.Clause, ClausePosition: v.Pos, RuleAdded: v.RuleAdded,
	}), nil
}

// decide asks the model, which takes its time: one question at a time, and of one container
// not all the time.
func (e *Engine) decide(ctx context.Context, s *scope, q Question) (Verdict, error) {
	leave, err := s.checking.enter(ctx)
	if err != nil {
		return Verdict{}, err
	}
	defer leave()
	if err := s.checking.rest(ctx); err != nil {
		return Verdict{}, err
	}
	e.checking.Lock()
	defer e.checking.Unlock()
	defer s.checking.worked(time.Now())
	return e.config.Decide(s.rules(), q)
}

func checkedEffect(e ir.Effect) feedback.Effect {
	if e == ir.Allow {
		return feedback.Allow
	}
	return effect(e)
}

// questionOf reads what is asked; its errors are sentences.
func questionOf(req feedback.CheckRequest) (Question, error) {
	q := Question{Op: ir.NumOps, Object: req.Object}
	for op := range ir.NumOps {
		if op.String() == req.Operation {
			q.Op = op
		}
	}
	switch {
	case q.Op == ir.NumOps:
		return q, fmt.Errorf("operation is one of exec, open, read, write, append, unlink, connect, bind, send, recv")
	case len(req.Object) > maxObject || strings.ContainsRune(req.Object, 0):
		return q, fmt.Errorf("object is no path or address")
	case q.Op >= ir.Connect:
		_, err := netip.ParseAddrPort(req.Object)
		if socket, unix := strings.CutPrefix(req.Object, "unix:"); err != nil && (!unix || socket == "") {
			return q, fmt.Errorf("object is ADDRESS:PORT, [ADDRESS]:PORT, unix:/PATH or unix:@NAME")
		}
	case !path.IsAbs(req.Object) || path.Clean(req.Object) != req.Object:
		return q, fmt.Errorf("object is an absolute path without . and .., its links resolved")
	case q.Op == ir.Exec:
		q.Args = append([]string{path.Base(req.Object)}, req.Args...)
		return q, nil
	}
	if len(req.Args) > 0 {
		return q, fmt.Errorf("only exec has args")
	}
	return q, nil
}
