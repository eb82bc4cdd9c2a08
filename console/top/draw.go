// SPDX-License-Identifier: Apache-2.0

package top

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/actplane/actplane/console"
	"github.com/actplane/actplane/internal/plain"
)

const (
	headLines = 4 // title, pages, problem or nothing, columns
	footLines = 1
	keyWidth  = 10 // of a field's name
	minWidth  = 20
	minHeight = 6
)

// View implements tea.Model.
func (m *model) View() tea.View {
	lines, cursor := m.screen()
	shown := make([]string, len(lines))
	for i, l := range lines {
		shown[i] = l.render(m.width)
	}
	view := tea.NewView(strings.Join(shown, "\n"))
	view.AltScreen = true
	view.Cursor = cursor
	return view
}

// screen is the whole screen, line by line, and where something is being typed.
func (m *model) screen() ([]line, *tea.Cursor) {
	if m.width < minWidth || m.height < minHeight {
		return []line{lineOf(span{body, "too small"})}, nil
	}
	lines := m.title()
	if m.sheet != nil {
		lines = append(lines, m.drawSheet()...)
	} else {
		lines = append(lines, m.drawPage()...)
	}
	for len(lines) < m.height-footLines {
		lines = append(lines, line{})
	}
	foot, cursor := m.foot()
	return append(lines[:m.height-footLines], foot), cursor
}

func (m *model) title() []line {
	left := []span{{strong, "actplane"}, {body, fmt.Sprintf("  %s  ", count(m.living(), "scope"))}}
	open := m.view.Open()
	if open > 0 {
		left = append(left, span{asking, fmt.Sprintf("%d waiting", open)})
	} else {
		left = append(left, span{body, "none waiting"})
	}
	right := m.options.Now().In(m.options.Zone).Format(time.TimeOnly)
	if s := m.view.Engine; s != nil && m.wide() {
		right = plain.Text(s.Kernel) + " " + plain.Text(s.Tier) + "  " + right
	}
	gap := m.width - ansi.StringWidth(lineOf(left...).words()) - ansi.StringWidth(right)
	if gap > 0 {
		left = append(left, span{body, strings.Repeat(" ", gap)}, span{faint, right})
	}
	var tabs []span
	for p := range pages {
		if p == m.page {
			tabs = append(tabs, span{strong, "[" + m.tab(p) + "]"})
		} else {
			tabs = append(tabs, span{body, " " + m.tab(p) + " "})
		}
	}
	state := line{}
	if m.view.Problem != "" {
		state = lineOf(text(bad, "! "+m.view.Problem))
	}
	return []line{lineOf(left...), lineOf(tabs...), state}
}

func (m *model) living() (n int) {
	for _, s := range m.view.Scopes {
		if s.State != "closed" {
			n++
		}
	}
	return n
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// listHeight is how many lines of a list are shown; below it are the fields of the one
// under the cursor, where there is room for them.
func (m *model) listHeight() int {
	room := m.height - headLines - footLines
	if room < 12 {
		return max(room, 1)
	}
	return room * 2 / 5
}

func (m *model) drawPage() []line {
	entries := m.entries()
	lines := []line{lineOf(span{faint, "  " + m.head()})}
	if len(entries) == 0 {
		return append(lines, lineOf(text(body, "  "+m.nothing())))
	}
	at, height := m.cursor(entries), m.listHeight()
	first := &m.places[m.page].first
	*first = max(0, min(*first, at, len(entries)-height), at-height+1)
	for i := *first; i < min(*first+height, len(entries)); i++ {
		l := entries[i].line()
		mark := "  "
		if l.selected = i == at; l.selected {
			mark = "> "
		}
		l.spans = append([]span{{strong, mark}}, l.spans...)
		lines = append(lines, l)
	}
	room := m.height - headLines - footLines - height
	if room <= 0 {
		return lines
	}
	for len(lines) < height+1 {
		lines = append(lines, line{})
	}
	rule := fmt.Sprintf("── %d of %d ", at+1, len(entries))
	lines = append(lines, lineOf(span{faint, rule + strings.Repeat("─", max(0, m.width-ansi.StringWidth(rule)))}))
	details := m.drawFields(entries[at].fields())
	if len(details) > room-1 {
		details = append(details[:room-2], lineOf(span{faint, "Enter shows all of it"}))
	}
	return append(lines, details...)
}

// drawFields sets fields below one another: in two columns, or, where there is little
// room, each behind its name.
func (m *model) drawFields(fields []console.Field) (lines []line) {
	if m.width < 50 {
		for _, f := range fields {
			lines = append(lines, m.drawNarrow(f)...)
		}
		return lines
	}
	for _, f := range fields {
		key := plain.Text(f.Key)
		for _, part := range wrap(plain.Text(f.Text), m.width-keyWidth) {
			lines = append(lines, lineOf(span{faint, pad(key, keyWidth)}, span{fieldRole(f), part}))
			key = ""
		}
	}
	return lines
}

// fieldRole has what must not be overlooked stand out.
func fieldRole(f console.Field) role {
	if f.Key == "warning" {
		return bad
	}
	return body
}

func (m *model) drawNarrow(f console.Field) (lines []line) {
	key := plain.Text(f.Key)
	if key != "" {
		key += ": "
	}
	for i, part := range wrap(key+plain.Text(f.Text), m.width-2) {
		switch {
		case i > 0:
			lines = append(lines, lineOf(span{fieldRole(f), "  " + part}))
		case strings.HasPrefix(part, key):
			lines = append(lines, lineOf(span{faint, key}, span{fieldRole(f), part[len(key):]}))
		default:
			lines = append(lines, lineOf(span{body, part}))
		}
	}
	return lines
}

// sheetHeight is how many lines of a sheet's fields are shown.
func (m *model) sheetHeight() int {
	return max(1, m.height-headLines-footLines-1)
}

func (m *model) drawSheet() []line {
	s := m.sheet
	details, height := m.drawFields(s.fields), m.sheetHeight()
	s.first = max(0, min(s.first, len(details)-height))
	end := min(s.first+height, len(details))
	if end == len(details) {
		s.read = true
	}
	lines := []line{lineOf(text(strong, s.title)), {}}
	return append(lines, details[s.first:end]...)
}

// foot is the last line: what is being typed, what the last key did, or what keys there are.
func (m *model) foot() (line, *tea.Cursor) {
	switch {
	case m.sheet != nil && m.sheet.reasons() && !m.sheet.sent && !m.stale():
		return m.typing("reason: ", "  Enter "+m.sheet.verb()+" · Esc back")
	case m.sheet != nil:
		hint, r := m.sheetHint()
		return lineOf(text(r, hint)), nil
	case m.filtering:
		return m.typing("/", "  Enter keeps · Esc ends")
	case m.notice != "":
		return lineOf(text(strong, m.notice)), nil
	}
	keys := "? help  / filter  q quit"
	switch m.page {
	case requestsPage:
		keys = "a approve once  A for 10 min  d deny  " + keys
		if !m.wide() {
			keys = "a approve  A 10 min  d deny  ? help"
		}
	case scopesPage:
		keys = "L lock  U unlock  " + keys
	case grantsPage:
		keys = "r take back  d deny  " + keys
	}
	if m.page != requestsPage && !m.wide() {
		keys, _, _ = strings.Cut(keys, "  / ")
	}
	if m.filter != "" {
		keys = "only " + plain.Word(m.filter) + ": Esc shows all  " + keys
	}
	return lineOf(text(faint, keys)), nil
}

// typing is the line that is typed in, its end if it is long.
func (m *model) typing(prompt, hint string) (line, *tea.Cursor) {
	value := []rune(m.input.Value())
	before, after := string(value[:m.input.Position()]), string(value[m.input.Position():])
	room := max(1, m.width-ansi.StringWidth(prompt)-1)
	for ansi.StringWidth(before) > room {
		before = before[len(string([]rune(before)[:1])):]
	}
	l := lineOf(span{strong, prompt}, text(body, before+after))
	x := ansi.StringWidth(prompt + before)
	if after == "" && ansi.StringWidth(l.words()+hint) <= m.width {
		l.spans = append(l.spans, span{faint, hint})
	}
	return l, tea.NewCursor(min(x, m.width-1), m.height-1)
}
