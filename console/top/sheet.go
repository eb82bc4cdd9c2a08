// SPDX-License-Identifier: Apache-2.0

package top

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/actplane/actplane/console"
	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/internal/plain"
)

const (
	grantTime  = 10 * time.Minute
	maxBecause = 1000 // characters of a reason
)

// sheet lies over the lists and shows one thing to its end.
type sheet struct {
	title  string
	fields []console.Field
	first  int  // the first of its lines that is shown
	read   bool // its end has been on the screen

	// Of one that answers: the request as it was when the key was pressed, and what is to
	// be sent.
	request *api.Request
	answer  *api.AnswerRequest
	denies  bool
	revokes bool // the answer is taken back
	sent    bool

	// Of one that locks a scope, or unlocks it: the scope as it was when the key was pressed.
	scope  *api.Scope
	unlock bool
}

// asks tells whether the sheet sends something.
func (s *sheet) asks() bool { return s.answer != nil || s.scope != nil }

// reasons tells whether a reason is typed into the sheet, and Enter sends it.
func (s *sheet) reasons() bool { return s.denies || s.scope != nil && !s.unlock }

// verb is what Enter does on a sheet with a reason.
func (s *sheet) verb() string {
	if s.scope != nil {
		return "locks"
	}
	return "denies"
}

// unread tells whether more of the sheet has to be seen before it is sent. What lets nothing
// through need not be read to its end.
func (s *sheet) unread() bool { return !s.read && !s.reasons() && !s.revokes }

func helpSheet() *sheet {
	return &sheet{title: "Keys", fields: []console.Field{
		{Key: "1 2 3 4 5", Text: "requests, events, scopes, rules, grants; Tab: the next"},
		{Key: "↑ ↓", Text: "the line before, the next; also k and j, PgUp and PgDn, g for the first and G for the last"},
		{Key: "Enter", Text: "all of the line"},
		{Key: "a  A", Text: "approve the request under the cursor for one operation, or all such operations for 10 minutes: it is shown whole, then y sends it"},
		{Key: "d", Text: "deny it as long as the container lives, also when it was approved; a reason is asked for, which the agent gets to read"},
		{Key: "r", Text: "take an answer back: the operation asks again"},
		{Key: "L  U", Text: "lock the scope under the cursor, with a reason and Enter: everything that it does is refused from then on; unlock it, with y"},
		{Key: "/", Text: "show only lines that contain a text; Esc shows all again"},
		{Key: "q", Text: "leave; what waits goes on waiting"},
		{Key: "", Text: "An answer is for the very same operation only: the rule, what is done to what, the arguments, the file as it is now, " +
			"the working directory, the user and, of a program that runs, its environment. What programs in a container chose is shown with escapes, " +
			"and in quotes where it is not one plain word."},
	}}
}

func (m *model) openDetails() {
	if e, ok := m.chosen(); ok {
		m.sheet = &sheet{title: strings.TrimSpace(e.line().words()), fields: e.fields()}
	}
}

// openAnswer begins an answer to the request under the cursor, which is kept as it is now.
func (m *model) openAnswer(key string) tea.Cmd {
	if m.page != requestsPage && (m.page != grantsPage || key != "r" && key != "d") {
		m.notice = "Requests are answered on page 1."
		return nil
	}
	e, ok := m.chosen()
	if !ok {
		return nil
	}
	r := m.view.Request(e.key)
	if r == nil {
		return nil
	}
	if m.view.Problem != "" {
		m.notice = "Nothing can be answered while the engine is away."
		return nil
	}
	if key == "r" && !console.InForce(r) {
		m.notice = plain.Text(r.Id) + " has no answer that holds."
		return nil
	}
	answer := &api.AnswerRequest{Id: r.Id}
	title := "Approve " + plain.Text(r.Id)
	switch key {
	case "a":
		answer.Count = 1
		title += " once?"
	case "A":
		answer.ForMs = grantTime.Milliseconds()
		title += " for 10 minutes?"
	case "r":
		title = "Take the answer to " + plain.Text(r.Id) + " back?"
	case "d":
		answer.Denied, answer.ScopeLifetime = true, true
		title = "Deny " + plain.Text(r.Id) + " for the container's life?"
	}
	m.sheet = &sheet{title: title, fields: m.requestFields(r), request: r, answer: answer, denies: answer.Denied, revokes: key == "r"}
	if answer.Denied {
		return m.ask("", maxBecause)
	}
	return nil
}

// stale tells whether a request or scope is no more what the sheet shows.
func (m *model) stale() bool {
	if s := m.sheet.scope; s != nil {
		return !console.SameLock(s, m.view.Scope(s.Id))
	}
	shown, now := m.sheet.request, m.view.Request(m.sheet.request.Id)
	return now == nil || now.State != shown.State || now.Answered.GetTimeUnixMs() != shown.Answered.GetTimeUnixMs() ||
		now.Answered.GetOver() != shown.Answered.GetOver()
}

func (m *model) sheetKey(msg tea.KeyPressMsg) tea.Cmd {
	s := m.sheet
	switch key := msg.String(); {
	case key == "esc", key == "q" && !s.reasons():
		m.sheet = nil
	case key == "up", key == "k" && !s.reasons():
		s.first--
	case key == "down", key == "j" && !s.reasons():
		s.first++
	case key == "pgup":
		s.first -= m.sheetHeight()
	case key == "pgdown", key == "space" && !s.reasons():
		s.first += m.sheetHeight()
	case !s.asks() && key == "enter":
		m.sheet = nil
	case s.asks() && !s.reasons() && key == "y", s.reasons() && key == "enter":
		return m.sendSheet()
	case s.reasons() && !s.sent:
		return m.typed(msg)
	}
	return nil
}

// sendSheet sends what the sheet says, if it still shows what is and all of it was seen.
func (m *model) sendSheet() tea.Cmd {
	s := m.sheet
	if s.sent || m.stale() || m.view.Problem != "" || s.unread() {
		return nil
	}
	s.sent = true
	if s.scope != nil {
		return m.sendLock(s)
	}
	if s.denies {
		s.answer.Because = strings.TrimSpace(m.input.Value())
	}
	s.answer.By = m.options.Answers()
	return m.send(s)
}

func (m *model) answered(msg answeredMsg) {
	if m.sheet != nil && m.sheet.request != nil && m.sheet.request.Id == msg.id {
		m.sheet = nil
	}
	if msg.err != nil {
		m.notice = fmt.Sprintf("%s: %v", msg.id, msg.err)
		return
	}
	// The cursor stays where it is, on what waits next.
	for _, p := range []page{requestsPage, grantsPage} {
		if at := &m.places[p]; at.key == msg.id {
			at.key = ""
		}
	}
	m.notice = fmt.Sprintf("%s is %s.", msg.id, msg.request.State)
	m.view = m.source.View()
}

// sheetHint is what the sheet's keys do now.
func (m *model) sheetHint() (hint string, r role) {
	s := m.sheet
	id := ""
	switch {
	case s.request != nil:
		id = plain.Text(s.request.Id)
	case s.scope != nil:
		id = plain.Word(console.ScopeTitle(s.scope.Id, s.scope.Name))
	}
	switch {
	case !s.asks() && !s.read:
		return "↓ read on · Esc back", body
	case !s.asks():
		return "Esc back", body
	case s.sent:
		return "sending what is to become of " + id + " …", body
	case m.view.Problem != "":
		return "The engine is away: nothing can be answered. Esc back", bad
	case m.stale():
		return id + " has changed meanwhile: nothing was sent. Esc back", bad
	case s.reasons():
		return "Enter " + s.verb() + " " + id + " · Esc back", strong
	case s.revokes:
		return "y takes it back: " + id + " asks again · Esc back", strong
	case s.unlock && !s.read:
		return "↓ read on, then unlock " + id + " · Esc back", asking
	case s.unlock:
		return "y unlocks " + id + " · Esc back", strong
	case !s.read:
		return "↓ read on, then approve " + id + " · Esc back", asking
	}
	return "y approves " + id + " · Esc back", strong
}
