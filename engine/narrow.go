// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/engine/state"
	"github.com/actplane/actplane/feedback"
	"github.com/actplane/actplane/internal/proc"
	"github.com/actplane/actplane/policy"
	"github.com/actplane/actplane/policy/diag"
	"github.com/actplane/actplane/policy/ir"
)

// Bounds of what a container can add to its policy.
const (
	maxAdded       = 16          // different documents
	addedPause     = time.Second // between two of them
	maxDiagnostics = 50          // that are told
)

// addition tells how a layer came that was added at run time.
type addition struct {
	Process bool // it holds for processes that carry Label; else for the container
	Label   uint64
	PID     int // who added it first
	Comm    string
	Time    time.Time
}

// next is a policy that is being put into force.
type next struct {
	Program json.RawMessage
	Layer   layer
}

// Narrow implements feedback.Scope.
func (i *inside) Narrow(ctx context.Context, peer feedback.Process, req feedback.NarrowRequest) (feedback.Narrowed, error) {
	return i.engine.narrow(ctx, i.scope, peer, req)
}

// turnedDown is an error that the container is told.
func turnedDown(code int, format string, args ...any) error {
	return &feedback.Refusal{Status: code, Sentence: fmt.Sprintf(format, args...)}
}

// narrow adds rules to a scope's policy. They can only refuse more: what the policy says
// stays as it is, and they are a layer inside of it. Who asks waits for others of its scope
// and for the compiler, and nobody waits for that who stops or locks the scope, or answers
// its requests.
func (e *Engine) narrow(ctx context.Context, s *scope, peer feedback.Process, req feedback.NarrowRequest) (feedback.Narrowed, error) {
	if e.config.NoNarrowing {
		return feedback.Narrowed{}, turnedDown(http.StatusForbidden, "this host does not let containers add rules to their policy (narrowing: refuse, in /etc/actplane/config.yaml)")
	}
	leave, err := s.adding.enter(ctx)
	if err != nil {
		return feedback.Narrowed{}, err
	}
	defer leave()
	answer, err := e.recall(s, peer, req)
	if err != nil || answer.Known {
		return answer, err
	}
	if err := s.adding.rest(ctx); err != nil {
		return feedback.Narrowed{}, err
	}
	made, err := e.compileAdded(ctx, s, req)
	if err != nil {
		return feedback.Narrowed{}, err
	}
	return e.add(s, peer, req, made)
}

// slotOf is where a scope's policy is in force, of which the id is locked.
func (e *Engine) slotOf(s *scope) (kernel.Slot, error) {
	r := s.now()
	if e.scope(s.id) != s || r.State != enforcing || r.Slot == nil {
		return kernel.Slot{}, turnedDown(http.StatusConflict, "the container's policy is not in force, so that nothing can be added to it")
	}
	return *r.Slot, nil
}

// recall looks whether rules were added before, which are given to one process more then,
// and else whether others can be added now.
func (e *Engine) recall(s *scope, peer feedback.Process, req feedback.NarrowRequest) (feedback.Narrowed, error) {
	defer e.ids.lock(s.id)()
	slot, err := e.slotOf(s)
	if err != nil {
		return feedback.Narrowed{}, err
	}
	by, err := e.addedFor(slot, peer, req)
	if err != nil {
		return feedback.Narrowed{}, err
	}
	count, now := 0, e.config.now()
	for _, l := range s.now().Layers {
		if l.Added == nil {
			continue
		}
		if l.Added.Process == by.Process && string(l.Text) == req.Policy {
			return e.known(s, slot, l, by)
		}
		count++
		if now.Sub(l.Added.Time) < addedPause {
			err = turnedDown(http.StatusTooManyRequests, "rules were added less than a second ago; try again in a second")
		}
	}
	switch {
	case err != nil:
		return feedback.Narrowed{}, err
	case count >= maxAdded:
		return feedback.Narrowed{}, turnedDown(http.StatusConflict, "%d different documents of rules were added to this container's policy already, which is the limit", count)
	}
	return feedback.Narrowed{}, nil
}

// addedFor finds the process for which rules are added.
func (e *Engine) addedFor(slot kernel.Slot, peer feedback.Process, req feedback.NarrowRequest) (addition, error) {
	by := addition{Process: req.For == feedback.ForProcess, PID: peer.PID, Time: e.config.now()}
	if by.Process {
		process, err := e.ancestor(slot, peer, req.Depth)
		if err != nil {
			return by, err
		}
		by.PID = process.PID
	}
	by.Comm = commOf(by.PID)
	return by, nil
}

// living is a process and its pid on the host.
type living struct {
	kernel.Process
	PID int
}

// ancestor finds the process that is so many above one, or that one.
func (e *Engine) ancestor(slot kernel.Slot, peer feedback.Process, depth int) (living, error) {
	gone := turnedDown(http.StatusConflict, "the process that is meant has ended, or is no process of this container")
	pid, wanted := peer.PID, kernel.ProcessID(peer.ID)
	if depth > 0 {
		wanted = kernel.ProcessID(peer.Ancestors[depth-1])
	}
	for range depth {
		parent, err := e.config.host.Parent(pid)
		if err != nil {
			return living{}, gone
		}
		pid = parent
	}
	process, found, err := e.config.Kernel.Process(pid)
	if err != nil {
		return living{}, err
	}
	if !found || process.ID != wanted || process.Slot != slot || process.Setup {
		return living{}, gone
	}
	return living{process, pid}, nil
}

// known gives rules that were added before to one process more.
func (e *Engine) known(s *scope, slot kernel.Slot, l layer, by addition) (feedback.Narrowed, error) {
	answer := feedback.Narrowed{PolicyLayer: l.told(), Known: true}
	if by.Process {
		if err := e.config.Kernel.Confine(slot, by.PID, l.Added.Label); err != nil {
			return answer, fmt.Errorf("add rules for a process: %w", err)
		}
		e.tellAdded(s, l, by)
	}
	return answer, nil
}

// made is a policy with what is to be added to it. Its image is to be released.
type made struct {
	before   *ir.Program
	program  *ir.Program
	text     []byte
	image    *image
	warnings diag.List
}

// compileAdded makes the policy that a scope is to have. Its lock for adding is held, so that
// what it has does not change meanwhile, and not that of its id.
func (e *Engine) compileAdded(ctx context.Context, s *scope, req feedback.NarrowRequest) (made, error) {
	e.narrowing.Lock() // one at a time: a policy takes time and memory to compile
	defer e.narrowing.Unlock()
	if err := ctx.Err(); err != nil {
		return made{}, err
	}
	defer s.adding.worked(time.Now())
	out := made{before: s.rules()}
	extended, err := policy.Extend(out.before, policy.Addition{Name: addedName(s), Text: []byte(req.Policy), Confine: req.For == feedback.ForProcess})
	if err != nil {
		return made{}, wrong(err)
	}
	out.program, out.warnings = extended.Program, extended.Warnings
	if out.text, err = json.Marshal(out.program); err != nil {
		return made{}, fmt.Errorf("encode policy: %w", err)
	}
	if out.image, err = e.images.acquire(out.text); err != nil {
		return made{}, turnedDown(http.StatusUnprocessableEntity, "the policy with these rules is too large: %v", err)
	}
	return out, nil
}

// addedName is that of the next layer that is added to a scope.
func addedName(s *scope) string {
	count := 1
	for _, l := range s.now().Layers {
		if l.Added != nil {
			count++
		}
	}
	return "added-" + strconv.Itoa(count)
}

// add puts a new layer into force.
func (e *Engine) add(s *scope, peer feedback.Process, req feedback.NarrowRequest, m made) (feedback.Narrowed, error) {
	defer e.ids.lock(s.id)()
	slot, err := e.slotOf(s)
	if err == nil && s.rules() != m.before {
		err = turnedDown(http.StatusConflict, "the container's policy has changed meanwhile; try again")
	}
	var by addition
	if err == nil {
		by, err = e.addedFor(slot, peer, req) // as of now: a pid can be another's since
	}
	if err != nil {
		e.images.release(m.image)
		return feedback.Narrowed{}, err
	}
	if by.Process {
		by.Label = 1 << (len(m.program.Labels) - 1)
	}
	l := layer{Name: addedName(s), Text: []byte(req.Policy), Added: &by}
	if err := s.change(func(r *record) { r.Next = &next{Program: m.text, Layer: l} }); err != nil {
		e.images.release(m.image)
		return feedback.Narrowed{}, err
	}
	// The record is saved before and after: a daemon that is started in between does it again.
	if err := e.swap(s, m.image); err != nil {
		return feedback.Narrowed{}, err
	}
	if by.Process {
		if err := e.config.Kernel.Confine(slot, by.PID, by.Label); err != nil {
			return feedback.Narrowed{}, fmt.Errorf("add rules for a process: %w", err)
		}
	}
	e.tellAdded(s, l, by)
	return feedback.Narrowed{PolicyLayer: l.told(), Warnings: diagnostics(m.warnings), Notes: notes(m.before, m.program)}, nil
}

// swap brings what the record says comes next into the kernel, and makes it the present.
// It keeps the image, or releases it.
func (e *Engine) swap(s *scope, img *image) error {
	(&inside{engine: e, scope: s}).settle() // what is on its way has the numbers of the present
	e.tellLost(s)
	r := s.now()
	err := e.config.Kernel.Swap(*r.Slot, img.tables)
	if err != nil {
		e.images.release(img)
		return errors.Join(fmt.Errorf("add rules: %w", err), s.change(func(r *record) { r.Next = nil }))
	}
	kept, marks := kernel.Keeps(img.tables)
	s.mu.Lock()
	old := s.image
	s.former, s.program, s.image = s.present(), img.program, img
	s.mu.Unlock()
	e.images.release(old)
	return s.change(func(r *record) {
		r.Program, r.Layers, r.Next = r.Next.Program, append(slices.Clip(r.Layers), r.Next.Layer), nil
		r.Clauses, r.Defaults, r.Protects = img.clauseNumbers(), img.defaultNumbers(), img.protectNumbers()
		r.Kept, r.Marks = state.Names(state.Labels(img.program), kept), marks
	})
}

// finishSwap ends what an earlier daemon had begun. Nobody was told that it holds.
func (e *Engine) finishSwap(s *scope) error {
	r := s.now()
	if r.Next == nil || r.Slot == nil {
		return nil
	}
	img, err := e.images.acquire(r.Next.Program)
	if err != nil {
		return err
	}
	return e.swap(s, img)
}

// addAgain puts what was added for the whole container into a policy that is not in force
// yet: the container is started again.
func (e *Engine) addAgain(s *scope, saved *state.Saved) error {
	if saved == nil {
		return nil
	}
	for i, a := range saved.Added {
		l := layer{Name: "added-" + strconv.Itoa(i+1), Text: a.Text, Added: &addition{Comm: a.Comm, Time: a.Time}}
		extended, err := policy.Extend(s.rules(), policy.Addition{Name: l.Name, Text: l.Text})
		if err != nil {
			return fmt.Errorf("rules that were added to the policy while the container ran do not fit the policy that it has now (%s); run \"actplane state reset %s\" to let it start without them: %w",
				l.Name, shortID(s.id), err)
		}
		text, err := json.Marshal(extended.Program)
		if err != nil {
			return fmt.Errorf("encode policy: %w", err)
		}
		img, err := e.images.acquire(text)
		if err != nil {
			return err
		}
		s.mu.Lock()
		old := s.image
		s.program, s.image = img.program, img
		s.mu.Unlock()
		e.images.release(old)
		if err := s.change(func(r *record) {
			r.Program, r.Layers = text, append(slices.Clip(r.Layers), l)
		}); err != nil {
			return err
		}
	}
	return nil
}

// keptAdditions are the layers that the next start of the container is to have.
func (r *record) keptAdditions() (kept []state.Addition) {
	for _, l := range r.Layers {
		if l.Added != nil && !l.Added.Process {
			kept = append(kept, state.Addition{Text: l.Text, Comm: l.Added.Comm, Time: l.Added.Time})
		}
	}
	return kept
}

// told is a layer as the container is told of it.
func (l *layer) told() feedback.PolicyLayer {
	out := feedback.PolicyLayer{Name: l.Name, SHA256: policy.Sum(l.Text)}
	if l.Added != nil {
		out.For = l.Added.forWhom()
	}
	return out
}

func (a *addition) forWhom() string {
	if a.Process {
		return feedback.ForProcess
	}
	return feedback.ForContainer
}

// tellAdded puts it into the record and the log.
func (e *Engine) tellAdded(s *scope, l layer, by addition) {
	sum := policy.Sum(l.Text)
	e.log.WithFields(s.fields()).WithField("layer", l.Name).WithField("sha256", sum).WithField("for", by.forWhom()).
		WithField("pid", by.PID).WithField("comm", by.Comm).Info("rules added from inside")
	item := feedback.Item{
		Time: e.config.now(), Effect: feedback.Notify, Operation: "rules for the " + by.forWhom(), Object: l.Name + " sha256:" + sum,
		Outcome: feedback.Added, Reason: by.forWhom(), Process: feedback.Process{PID: by.PID, Comm: by.Comm},
	}
	if process, found, err := e.config.Kernel.Process(by.PID); err == nil && found {
		item.Process = feedbackProcess(process, by.PID, by.Comm)
	}
	e.tell(s, item)
}

// wrong tells what is wrong with rules.
func wrong(err error) error {
	var list diag.List
	if !errors.As(err, &list) {
		return err
	}
	return &feedback.Refusal{
		Status:      http.StatusUnprocessableEntity,
		Sentence:    "the rules are not added: " + list.First().Message,
		Diagnostics: diagnostics(list),
	}
}

func diagnostics(list diag.List) (out []feedback.Diagnostic) {
	for _, d := range list {
		if len(out) == maxDiagnostics {
			break
		}
		out = append(out, feedback.Diagnostic{
			Line: d.Line, Col: d.Col, Severity: d.Severity.String(), Code: string(d.Code), Message: d.Message, Hint: d.Hint, Source: d.Source,
		})
	}
	return out
}

// notes tell what rules cannot know of what was before them.
func notes(before, now *ir.Program) (out []string) {
	var names []string
	for _, l := range now.Labels[len(before.Labels):] {
		if !l.Confines {
			names = append(names, l.Name)
		}
	}
	if len(names) > 0 {
		out = append(out, "who has read or run what gives "+strings.Join(names, ", ")+" before now does not carry it")
	}
	if len(now.Gates) > len(before.Gates) {
		out = append(out, "what an `after` condition waits for counts from now on")
	}
	if len(now.Lineages) > len(before.Lineages) {
		out = append(out, "what `lineage-includes` names counts where it is run from now on")
	}
	added := now.Clauses[len(before.Clauses):]
	if slices.ContainsFunc(added, func(c ir.Clause) bool { return c.Unless.Modified || c.Unless.NotModified }) {
		out = append(out, "where the policy did not ask before, files that were changed before now count as not modified")
	}
	if slices.ContainsFunc(added, func(c ir.Clause) bool { return c.Op == ir.Write || c.Op == ir.Append || c.Op == ir.Read }) {
		out = append(out, "a file that is mapped into memory already stays mapped")
	}
	return out
}

// commOf is what a process calls itself.
func commOf(pid int) string {
	text, err := os.ReadFile(filepath.Join(proc.Directory, strconv.Itoa(pid), "comm"))
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(text), "\n")
}
