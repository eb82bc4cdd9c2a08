// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/feedback"
	"github.com/actplane/actplane/policy/ir"
)

// operation is an operation as the policy language names it.
func operation(op ir.Op) string {
	names := [ir.NumOps]string{
		ir.Exec: "exec", ir.Open: "open", ir.Read: "read", ir.Write: "write", ir.Append: "append",
		ir.Unlink: "unlink", ir.Connect: "connect", ir.Bind: "bind", ir.Send: "send", ir.Recv: "recv",
	}
	if op >= ir.NumOps {
		return "unknown"
	}
	return names[op]
}

func effect(e ir.Effect) feedback.Effect {
	switch e {
	case ir.Notify:
		return feedback.Notify
	case ir.Ask:
		return feedback.Ask
	case ir.Kill:
		return feedback.Kill
	}
	return feedback.Block
}

// record takes one record of the kernel's. The kernel side calls it from one
// goroutine, so that a scope's events stay in order.
func (e *Engine) record(rec kernel.Record) {
	if rec.Probe {
		return
	}
	e.mu.Lock()
	s := e.slots[rec.Slot]
	e.mu.Unlock()
	if s == nil {
		e.log.WithField("slot", rec.Slot).Debug("record of an unknown scope")
		return
	}
	lost := e.slotStats(s).Lost
	if lost > s.events.told() {
		e.tellLost(s) // first: it was before
	}
	made := s.item(rec)
	if rec.Asked != kernel.NotAsked {
		e.noteAsk(s, rec, &made)
	}
	e.note(s, rec, made)
	item, err := s.events.add(made, lost)
	if err != nil {
		e.log.WithFields(s.fields()).WithError(err).Warn("event will not survive a restart")
	}
	e.hub.publish(s, item)
	e.noteTold(s, item.Request)
	e.tellDenial(s, item)
}

// gained takes one record of how a label came to where it is; as record.
func (e *Engine) gained(g kernel.Gain) {
	e.mu.Lock()
	s := e.slots[g.Slot]
	e.mu.Unlock()
	if s == nil {
		return
	}
	if err := s.provenance.add(g); err != nil {
		e.log.WithFields(s.fields()).WithError(err).Warn("how a label or gate came about will not survive a restart")
	}
}

// item puts the policy's words to a record.
func (s *scope) item(rec kernel.Record) feedback.Item {
	n := s.numbers(rec)
	item := feedback.Item{
		Time:      rec.Time,
		Effect:    effect(rec.Effect),
		Operation: operation(rec.Op),
		Object:    rec.Object,
		Args:      rec.Args,
		ArgsCut:   rec.ArgsCut,
		Because:   rec.Reason,
		Parents:   parents(rec.Parents),
		Process:   feedbackProcess(rec.Process, rec.PID, rec.Comm),
	}
	if d, ok := n.defaultOf(rec.Default); ok {
		item.Clause, item.ClausePosition, item.RuleAdded = d.Text, d.Pos, n.program.AddedAt(d.Layer)
		item.Because = "no allow clause of the policy matches, and without one `" + d.Text + "` holds"
	}
	if p, ok := n.protected(rec.Clause); ok {
		item.Clause, item.ClausePosition, item.RuleAdded = "protect "+p.Text, p.Pos, n.program.AddedAt(p.Layer)
		item.Labels = n.labelNames(rec.Process.Labels & tested(p.If))
		item.Origins = s.origins(rec, rec.Process.Labels&tested(p.If))
		item.Because = "what `protect` lists can be read, and not changed, moved or removed, under any of its names"
	}
	if source, ok := n.fileSource(rec.Label); ok {
		item.Clause, item.ClausePosition, item.RuleAdded = source.Text, source.Pos, n.program.AddedAt(n.program.Labels[source.Label].Layer)
		item.Because = "`" + source.Text + "` would not name the same files any more: a directory that a file source names keeps its name"
	}
	if rule, clause, ok := n.clause(rec.Clause); ok {
		item.Rule, item.Because = rule.Name, rule.Because
		item.Clause, item.ClausePosition, item.RuleAdded = clause.Text, clause.Pos, n.program.AddedAt(rule.Layer)
		item.Labels = n.labelNames(rec.Process.Labels & tested(clause.If))
		item.Origins = append(s.origins(rec, rec.Process.Labels&tested(clause.If)), s.gateOrigins(rec, clause)...)
	}
	item.Also, item.AlsoCut = n.otherRules(rec.Matches, item.Rule), rec.MatchesCut
	return item
}

// otherRules names the rules of clauses but for the one that decides.
func (n *numbers) otherRules(clauses []int, deciding string) (names []string) {
	for _, number := range clauses {
		rule, _, ok := n.clause(number)
		if ok && rule.Name != deciding && !slices.Contains(names, rule.Name) {
			names = append(names, rule.Name)
		}
	}
	return names
}

// tested are the labels that a condition asks for.
func tested(terms []ir.Term) (labels uint64) {
	for _, term := range terms {
		labels |= term.All | term.None
	}
	return labels
}

func feedbackProcess(p kernel.Process, pid int, comm string) feedback.Process {
	out := feedback.Process{
		PID: pid, Comm: comm, ID: uint64(p.ID),
		AncestorsCut: p.Deep,
	}
	for _, ancestor := range p.Ancestors {
		out.Ancestors = append(out.Ancestors, uint64(ancestor))
	}
	return out
}

// text is what the protocol takes: names in a container need not be UTF-8.
func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func texts(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = text(s)
	}
	return out
}

// event is an item as the API tells it.
func (s *scope) event(item feedback.Item) *api.Event {
	event := &api.Event{
		Scope: s.id, ScopeName: s.now().Name,
		Sequence: item.Sequence, TimeUnixMs: item.Time.UnixMilli(),
		Effect: string(item.Effect), Operation: item.Operation, Object: text(item.Object), Args: texts(item.Args),
		Rule: item.Rule, Because: item.Because, Clause: item.Clause, ClausePos: item.ClausePosition,
		Pid: int64(item.Process.PID), Comm: text(item.Process.Comm),
		Labels: item.Labels, Lost: item.Lost,
		Outcome: string(item.Outcome), Request: item.Request, By: item.By, ArgsCut: item.ArgsCut,
		Unrecorded: item.Unrecorded, Also: item.Also, AlsoCut: item.AlsoCut, Chain: chain(item.Origins),
		Reason: item.Reason, Warnings: item.Warnings, RuleAdded: item.RuleAdded,
	}
	for _, p := range item.Parents {
		event.Parents = append(event.Parents, &api.Parent{Program: text(p.Program), Pid: int64(p.HostPID), PidInside: int64(p.PID)})
	}
	return event
}

func parents(list []kernel.Parent) (out []feedback.Parent) {
	for _, p := range list {
		out = append(out, feedback.Parent{Program: p.Comm, PID: p.Inside, HostPID: p.PID})
	}
	return out
}

// chain is how the labels came to the process, as the API tells it.
func chain(origins []feedback.Origin) []*api.Origin {
	var out []*api.Origin
	for _, origin := range origins {
		told := &api.Origin{Label: origin.Label, Gate: origin.Gate, Unrecorded: origin.Unrecorded, Left: uint32(origin.Left)}
		for _, step := range origin.Steps {
			next := &api.Step{
				Way: string(step.Way), Source: step.Source, Object: text(step.Object), ObjectCut: step.Cut, Program: text(step.Program),
				Process: step.Process, Pid: int64(step.HostPID), PidInside: int64(step.PID), Self: step.Self, Earlier: step.Earlier, Thing: step.Thing,
				Signal: int32(step.Signal),
			}
			if step.Status != nil {
				next.Status = proto.Int32(int32(*step.Status))
			}
			if !step.Time.IsZero() {
				next.TimeUnixMs = step.Time.UnixMilli()
			}
			told.Steps = append(told.Steps, next)
		}
		out = append(out, told)
	}
	return out
}

// subscriberBuffer is how far a reader may fall behind before it loses events.
const subscriberBuffer = 1024

// hub hands events to the API's readers. A slow one loses events and learns how
// many; nobody waits for it.
type hub struct {
	mu   sync.Mutex
	subs map[*subscriber]struct{} // guarded by mu
}

type subscriber struct {
	id     string // of a scope, or empty for all
	events chan published
	lost   uint64 // guarded by hub.mu; since the last event that it got
}

type published struct {
	scope *scope
	item  feedback.Item
}

func (h *hub) subscribe(id string) (*subscriber, func()) {
	sub := &subscriber{id: id, events: make(chan published, subscriberBuffer)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.subs == nil {
		h.subs = map[*subscriber]struct{}{}
	}
	h.subs[sub] = struct{}{}
	return sub, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.subs, sub)
	}
}

func (h *hub) publish(s *scope, item feedback.Item) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for sub := range h.subs {
		if sub.id != "" && sub.id != s.id {
			continue
		}
		told := item
		told.Lost += sub.lost
		select {
		case sub.events <- published{s, told}:
			sub.lost = 0
		default:
			sub.lost = told.Lost + 1
		}
	}
}

// stream sends what is kept, if asked for, and then what happens, if asked for.
func (e *Engine) stream(ctx context.Context, req *api.EventsRequest, send func(*api.Event) error) error {
	scopes, id, err := e.find(req.Scope)
	if err != nil {
		return err
	}
	sub, done := e.hub.subscribe(id) // before looking back: nothing falls in between
	defer done()
	sent := map[*scope]uint64{}
	if req.History {
		var kept []published
		for _, s := range scopes {
			for _, item := range s.events.Items(0) {
				kept = append(kept, published{s, item})
			}
		}
		slices.SortStableFunc(kept, func(a, b published) int { return a.item.Time.Compare(b.item.Time) })
		for _, next := range kept {
			if err := send(next.scope.event(next.item)); err != nil {
				return err
			}
			sent[next.scope] = max(sent[next.scope], next.item.Sequence)
		}
	}
	for req.Follow {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case next := <-sub.events:
			if next.item.Sequence <= sent[next.scope] {
				continue
			}
			if err := send(next.scope.event(next.item)); err != nil {
				return err
			}
		}
	}
	return nil
}
