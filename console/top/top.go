// SPDX-License-Identifier: Apache-2.0

// Package top is the terminal page of `actplane top`: what waits for an answer, what
// happens, what is under policy, and what its rules did.
//
// An answer is given in two steps. The key opens a sheet that shows one request, by its
// id, as it was under the cursor; nothing that comes meanwhile moves it. Only from there
// it is sent, and only when all of it was on the screen. Text from inside a container has
// no way to the terminal but through [line.render], which escapes it.
package top

import (
	"context"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/actplane/actplane/console"
	"github.com/actplane/actplane/engine/api"
)

// refreshInterval is the shortest time between two pictures that nobody asked for.
const refreshInterval = 200 * time.Millisecond

// Source is where the page has its picture from; [console.Watcher] is one.
type Source interface {
	View() *console.View
	Changed() <-chan struct{}
	Answer(context.Context, *api.AnswerRequest) (*api.Request, error)
	Revoke(context.Context, *api.RevokeRequest) (*api.Request, error)
	Lockdown(context.Context, *api.LockdownRequest) (*api.Lock, error)
	Unlock(context.Context, *api.UnlockRequest) (*api.Lock, error)
}

// Options say whose page it is.
type Options struct {
	Source  Source
	Answers func() *api.Operator // who answers
	Now     func() time.Time     // default time.Now
	Zone    *time.Location       // default time.Local
}

// Run shows the page on a terminal until it is left or the context ends.
func Run(ctx context.Context, options Options, in io.Reader, out io.Writer, environment []string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	program := tea.NewProgram(newModel(ctx, options), tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out),
		tea.WithEnvironment(environment))
	_, err := program.Run()
	return err
}

type (
	viewMsg struct {
		view    *console.View
		changed <-chan struct{}
	}
	tickMsg     struct{}
	answeredMsg struct {
		id      string
		request *api.Request
		err     error
	}
)

// picture is what there is now, and what is closed when it is old.
func (m *model) picture() viewMsg {
	changed := m.source.Changed() // before: nothing falls in between
	return viewMsg{m.source.View(), changed}
}

// next waits for the next picture, and not less than a moment.
func (m *model) next(changed <-chan struct{}) tea.Cmd {
	return func() tea.Msg {
		select {
		case <-m.ctx.Done():
			return nil
		case <-changed:
		}
		select {
		case <-m.ctx.Done():
			return nil
		case <-time.After(refreshInterval):
		}
		return m.picture()
	}
}

// tick lets times go on.
func tick() tea.Cmd {
	return tea.Tick(time.Second, func(time.Time) tea.Msg { return tickMsg{} })
}

func (m *model) send(s *sheet) tea.Cmd {
	answer, revoke := s.answer, s.revokes
	return func() tea.Msg {
		var r *api.Request
		var err error
		if revoke {
			r, err = m.source.Revoke(m.ctx, &api.RevokeRequest{Id: answer.Id, By: answer.By})
		} else {
			r, err = m.source.Answer(m.ctx, answer)
		}
		return answeredMsg{answer.Id, r, err}
	}
}
