// SPDX-License-Identifier: Apache-2.0

package top

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/actplane/actplane/console"
	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/internal/plain"
)

// lockedMsg is what became of a lock.
type lockedMsg struct {
	scope  *api.Scope
	unlock bool
	lock   *api.Lock
	err    error
}

// openLock begins to lock the scope under the cursor, or to unlock it.
func (m *model) openLock(unlock bool) tea.Cmd {
	if m.page != scopesPage {
		m.notice = "Scopes are locked and unlocked on page 3."
		return nil
	}
	e, ok := m.chosen()
	if !ok {
		return nil
	}
	s := m.view.Scope(e.key)
	title := plain.Word(console.ScopeTitle(s.Id, s.Name))
	switch {
	case m.view.Problem != "":
		m.notice = "Nothing can be locked while the engine is away."
		return nil
	case unlock && s.Lock == nil:
		m.notice = title + " is not locked."
		return nil
	case !unlock && s.Lock != nil:
		m.notice = title + " is locked already; U unlocks it."
		return nil
	}
	what := []console.Field{{Key: "lock", Text: "everything that its programs do is refused from then on, but to exit, over restarts of the engine and of the container, until somebody unlocks it"}}
	question := "Lock " + title + "?"
	if unlock {
		what[0] = console.Field{Key: "unlock", Text: "its programs go on under their policy from where they were"}
		question = "Unlock " + title + "?"
	}
	m.sheet = &sheet{title: question, fields: append(what, e.fields()...), scope: s, unlock: unlock}
	if unlock {
		return nil
	}
	return m.ask("", maxBecause)
}

func (m *model) sendLock(s *sheet) tea.Cmd {
	by, because := m.options.Answers(), strings.TrimSpace(m.input.Value())
	return func() tea.Msg {
		msg := lockedMsg{scope: s.scope, unlock: s.unlock}
		if s.unlock {
			msg.lock, msg.err = m.source.Unlock(m.ctx, &api.UnlockRequest{Scope: s.scope.Id, By: by})
		} else {
			msg.lock, msg.err = m.source.Lockdown(m.ctx, &api.LockdownRequest{Scope: s.scope.Id, Because: because, By: by})
		}
		return msg
	}
}

func (m *model) locked(msg lockedMsg) {
	if m.sheet != nil && m.sheet.scope != nil && m.sheet.scope.Id == msg.scope.Id {
		m.sheet = nil
	}
	m.view = m.source.View()
	if msg.err != nil {
		m.notice = plain.Word(console.ScopeTitle(msg.scope.Id, msg.scope.Name)) + ": " + plain.Text(msg.err.Error())
		return
	}
	m.notice = console.LockText(msg.lock, msg.unlock)
}
