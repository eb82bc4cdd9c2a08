// SPDX-License-Identifier: Apache-2.0

package top

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/actplane/actplane/console"
	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/internal/plain"
)

// wide tells whether there is room for columns that are nice to have.
func (m *model) wide() bool { return m.width >= 64 }

const nameWidth = 12

func (m *model) requestEntries() (out []entry) {
	for _, r := range m.view.Requests {
		out = append(out, entry{r.Id, func() line { return m.requestLine(r) }, func() []console.Field { return m.requestFields(r) }})
	}
	return out
}

func (m *model) requestLine(r *api.Request) line {
	state, look := plain.Text(r.State), body
	if r.State == "open" {
		state, look = m.waits(r), asking
	}
	return lineOf(append(m.scopeSpan(span{strong, pad(plain.Text(r.Id), 5) + " "}, r.Scope, r.ScopeName),
		span{look, pad(state, 10) + " "}, text(body, console.OperationText(r)))...)
}

// scopeSpan puts the scope behind a line's first piece, where there is room.
func (m *model) scopeSpan(first span, id, name string) []span {
	if !m.wide() {
		return []span{first}
	}
	return []span{first, text(body, pad(plain.Word(console.ScopeTitle(id, name)), nameWidth)+" ")}
}

// waits is how much time there is to answer, or for how long it has been asked.
func (m *model) waits(r *api.Request) string {
	now := m.options.Now()
	if r.Held {
		return brief(time.UnixMilli(r.UntilUnixMs).Sub(now)) + " left"
	}
	return brief(now.Sub(time.UnixMilli(r.OpenedUnixMs))) + " ago"
}

// brief is a time in one unit.
func brief(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

func (m *model) requestFields(r *api.Request) []console.Field {
	title := plain.Word(console.ScopeTitle(r.Scope, r.ScopeName))
	return append([]console.Field{
		{Key: "request", Text: plain.Text(r.Id) + " of " + title},
		{Key: "state", Text: console.RequestState(r, m.options.Now(), m.options.Zone)},
	}, console.RequestFields(r, m.options.Zone)...)
}

func (m *model) eventEntries() (out []entry) {
	for _, row := range m.view.Rows {
		out = append(out, entry{strconv.FormatUint(row.ID, 10), func() line { return m.eventLine(row) },
			func() []console.Field { return console.RowFields(row, m.options.Zone) }})
	}
	return out
}

func (m *model) eventLine(row *console.Row) line {
	e := row.Event
	at := time.UnixMilli(e.TimeUnixMs).In(m.options.Zone).Format(time.TimeOnly)
	spans := m.scopeSpan(span{faint, at + " "}, e.Scope, e.ScopeName)
	if row.Count > 1 {
		spans = append(spans, span{strong, fmt.Sprintf("%d× ", row.Count)})
	}
	return lineOf(append(spans, span{eventRole(e), console.Happened(e) + " "}, text(body, console.EventOperation(e)))...)
}

func eventRole(e *api.Event) role {
	return map[string]role{"bad": bad, "ask": asking, "good": good}[console.Kind(e)]
}

func (m *model) scopeEntries() (out []entry) {
	for _, s := range m.view.Scopes {
		out = append(out, entry{s.Id, func() line { return m.scopeLine(s) }, func() []console.Field { return console.ScopeFields(s, m.options.Now()) }})
	}
	return out
}

func (m *model) scopeLine(s *api.Scope) line {
	look := body
	switch {
	case s.State == "enforcing" && len(s.Degraded) == 0:
		look = good
	case s.State != "closed" && s.State != "staged":
		look = bad
	}
	counts := fmt.Sprintf("%7d", s.Denied)
	if m.wide() {
		counts = fmt.Sprintf("%6d %8d %8d %6d %8d", s.Processes, s.Denied, s.Notified, s.Lost, len(s.Degraded)+len(s.Warnings))
	}
	return lineOf(text(strong, pad(plain.Word(console.ScopeTitle(s.Id, s.Name)), nameWidth+4)+" "),
		span{look, pad(plain.Text(s.State), 10)}, span{body, counts})
}

func (m *model) ruleEntries() (out []entry) {
	for _, c := range m.view.Rules {
		out = append(out, entry{c.Scope + "\x00" + c.Rule, func() line { return m.ruleLine(c) }, func() []console.Field {
			return []console.Field{
				{Key: "scope", Text: plain.Word(console.ScopeTitle(c.Scope, c.ScopeName))}, {Key: "rule", Text: console.RuleTitle(c.Rule)},
				{Key: "denied", Text: strconv.FormatUint(c.Denied, 10)}, {Key: "asked", Text: strconv.FormatUint(c.Asked, 10)},
				{Key: "noticed", Text: strconv.FormatUint(c.Noticed, 10)}, {Key: "last", Text: console.Ago(m.options.Now().Sub(c.Last))},
			}
		}})
	}
	return out
}

func (m *model) ruleLine(c *console.RuleCount) line {
	var spans []span
	counts := fmt.Sprintf("%7d %7d", c.Denied, c.Asked)
	if m.wide() {
		spans = append(spans, text(body, pad(plain.Word(console.ScopeTitle(c.Scope, c.ScopeName)), nameWidth)+" "))
		counts = fmt.Sprintf("%8d %8d %8d  %s", c.Denied, c.Asked, c.Noticed, brief(m.options.Now().Sub(c.Last))+" ago")
	}
	return lineOf(append(spans, text(strong, pad(console.RuleTitle(c.Rule), m.ruleWidth())), span{body, counts})...)
}

func (m *model) grantEntries() (out []entry) {
	for _, g := range m.view.Grants {
		title := plain.Word(console.ScopeTitle(g.Request.GetScope(), g.Request.GetScopeName()))
		out = append(out, entry{g.Request.GetId(), func() line { return m.grantLine(g) }, func() []console.Field {
			request := console.Field{Key: "request", Text: plain.Text(g.Request.GetId()) + " of " + title}
			return append([]console.Field{request}, console.GrantFields(g, m.options.Zone)...)
		}})
	}
	return out
}

func (m *model) grantLine(g *api.Grant) line {
	look := good
	if g.Request.GetAnswered().GetDenied() {
		look = bad
	}
	r := g.Request
	return lineOf(append(m.scopeSpan(span{strong, pad(plain.Text(r.GetId()), 5) + " "}, r.GetScope(), r.GetScopeName()),
		span{look, pad(console.AnswerWord(g), 7) + " "}, text(body, pad(m.left(g), leftWidth)+" "+console.OperationText(r)))...)
}

const leftWidth = 9

// left is what is left of an answer, in few words.
func (m *model) left(g *api.Grant) string {
	var parts []string
	if g.Request.GetAnswered().GetCount() > 0 {
		parts = append(parts, fmt.Sprintf("%d×", g.Left))
	}
	if g.LeftMs > 0 {
		parts = append(parts, brief(time.Duration(g.LeftMs)*time.Millisecond))
	}
	if len(parts) == 0 {
		return "for good"
	}
	return strings.Join(parts, " in ")
}

func (m *model) ruleWidth() int {
	if m.wide() {
		return max(16, m.width-nameWidth-42)
	}
	return max(8, m.width-20)
}

// head is what stands above the columns of a list.
func (m *model) head() string {
	name := ""
	if m.wide() {
		name = pad("SCOPE", nameWidth) + " "
	}
	switch m.page {
	case requestsPage:
		return pad("ID", 5) + " " + name + pad("WAITS", 10) + " OPERATION"
	case eventsPage:
		return pad("TIME", 8) + " " + name + "WHAT HAPPENED"
	case scopesPage:
		if m.wide() {
			return pad("SCOPE", nameWidth+4) + " " + pad("STATE", 10) + " PROCS   DENIED  NOTICED   LOST WARNINGS"
		}
		return pad("SCOPE", nameWidth+4) + " " + pad("STATE", 10) + " DENIED"
	case grantsPage:
		return pad("ID", 5) + " " + name + pad("ANSWER", 7) + " " + pad("LEFT", leftWidth) + " OPERATION"
	}
	if m.wide() {
		return name + pad("RULE", m.ruleWidth()) + "  DENIED    ASKED  NOTICED  LAST"
	}
	return pad("RULE", m.ruleWidth()) + " DENIED   ASKED"
}

// nothing is what an empty list says.
func (m *model) nothing() string {
	if m.filter != "" {
		return "No line contains " + strconv.Quote(m.filter) + "."
	}
	if m.page == grantsPage && m.view.GrantsProblem != "" {
		return m.view.GrantsProblem
	}
	return [pages]string{"Nothing waits for an answer.", "Nothing was denied or noticed.", "Nothing is under policy.", "No rule has decided anything.",
		"No approval or denial holds."}[m.page]
}

// tab is the page's name, with how much is in it.
func (m *model) tab(p page) string {
	names := [pages]string{"Requests", "Events", "Scopes", "Rules", "Grants"}
	switch {
	case m.width < 52:
		names = [pages]string{"Req", "Evt", "Scp", "Rul", "Grt"}
	case !m.wide():
		names[requestsPage] = "Req"
	}
	name := strconv.Itoa(int(p)+1) + " " + names[p]
	if n := m.view.Open(); p == requestsPage && n > 0 {
		name += fmt.Sprintf(" (%d)", n)
	}
	return name
}
