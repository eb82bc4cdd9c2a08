// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bytes"
	"net/http"
	"time"

	"github.com/actplane/actplane/console"
	"github.com/actplane/actplane/feedback"
	"github.com/actplane/actplane/internal/plain"
)

// maxShownRows is how many rows a page gets; the console keeps more.
const maxShownRows = 500

// stream sends what there is and then what changes, as server-sent events. Who reads too
// slowly gets the last state of everything, and who does not read at all is hung up on.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	sent := &sent{rows: map[uint64]*console.Row{}}
	alive := time.NewTicker(s.limits.alive)
	defer alive.Stop()
	for {
		changed := s.options.Source.Changed()
		piece, err := s.next(sent)
		if err != nil || !s.push(w, control, piece) {
			return
		}
		if !s.wait(r, changed, func() bool { return s.push(w, control, []byte(": alive\n\n")) }, alive.C) {
			return
		}
	}
}

// wait waits for a change, and not less than the pace; false if the page has gone.
func (s *Server) wait(r *http.Request, changed <-chan struct{}, sign func() bool, alive <-chan time.Time) bool {
	pace := time.After(s.limits.pace)
	for pace != nil || changed != nil {
		select {
		case <-r.Context().Done():
			return false
		case <-pace:
			pace = nil
		case <-changed:
			changed = nil
		case <-alive:
			if !sign() {
				return false
			}
		}
	}
	return true
}

func (s *Server) push(w http.ResponseWriter, control *http.ResponseController, piece []byte) bool {
	if len(piece) == 0 {
		return true
	}
	if control.SetWriteDeadline(time.Now().Add(s.limits.send)) != nil {
		return false
	}
	if _, err := w.Write(piece); err != nil {
		return false
	}
	return control.Flush() == nil
}

// sent is what one page has.
type sent struct {
	any                                     bool
	status, requests, grants, scopes, rules []byte
	rows                                    map[uint64]*console.Row
}

// next is the next event of a stream, empty if there is nothing new.
func (s *Server) next(have *sent) ([]byte, error) {
	v := s.options.Source.View()
	out := update{Now: time.Now().UnixMilli()}
	status := statusPart{Problem: plain.Text(v.Problem)}
	if v.Engine != nil {
		status.Engine = plain.Text("engine " + v.Engine.Version + " · kernel " + v.Engine.Kernel + " · " + v.Engine.Tier)
	}
	requests, scopes, rules := each(v.Requests, s.requestOf), each(v.Scopes, scopeOf), each(v.Rules, ruleOf)
	grants := s.grantsOf(v)
	fresh := false
	for _, part := range []struct {
		value any
		had   *[]byte
		set   func()
	}{
		{status, &have.status, func() { out.Status = &status }},
		{requests, &have.requests, func() { out.Requests = &requests }},
		{grants, &have.grants, func() { out.Grants = &grants }},
		{scopes, &have.scopes, func() { out.Scopes = &scopes }},
		{rules, &have.rules, func() { out.Rules = &rules }},
	} {
		text, err := feedback.EncodeJSON(part.value)
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(text, *part.had) || !have.any {
			*part.had, fresh = text, true
			part.set()
		}
	}
	out.Rows = s.freshRows(v, have)
	if !fresh && len(out.Rows) == 0 {
		return nil, nil
	}
	have.any = true
	text, err := feedback.EncodeJSON(out)
	if err != nil {
		return nil, err
	}
	return append(append([]byte("data: "), bytes.TrimSpace(text)...), "\n\n"...), nil
}

// freshRows are the rows that a page has not, or not as they are now.
func (s *Server) freshRows(v *console.View, have *sent) (fresh []rowPart) {
	rows := v.Rows[:min(len(v.Rows), maxShownRows)]
	now := make(map[uint64]*console.Row, len(rows))
	for _, row := range rows {
		now[row.ID] = row
		if have.rows[row.ID] != row {
			fresh = append(fresh, s.rowOf(row))
		}
	}
	have.rows = now
	return fresh
}

func each[T, U any](list []T, f func(T) U) []U {
	out := make([]U, len(list))
	for i, x := range list {
		out[i] = f(x)
	}
	return out
}
