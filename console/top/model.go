// SPDX-License-Identifier: Apache-2.0

package top

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	"github.com/actplane/actplane/console"
	"github.com/actplane/actplane/internal/plain"
)

// page is one of the lists.
type page int

const (
	requestsPage page = iota
	eventsPage
	scopesPage
	rulesPage
	grantsPage
	pages
)

// entry is a line of a list. Its key stays the same when lists change their order. What it
// shows is made when it is shown: lists are long, and screens are not.
type entry struct {
	key    string
	line   func() line
	fields func() []console.Field
}

// place is where the cursor is in a list. Of events none chosen is the newest.
type place struct {
	key   string
	index int // where key was last
	first int // the first line that is shown
}

// model is what is on the screen.
type model struct {
	ctx     context.Context
	source  Source
	options Options

	width, height int
	view          *console.View
	page          page
	places        [pages]place
	sheet         *sheet // lies over the lists; nil for none
	filter        string
	filtering     bool
	input         textinput.Model
	notice        string // what the last key did
}

func newModel(ctx context.Context, options Options) *model {
	if options.Now == nil {
		options.Now = time.Now
	}
	options.Zone = cmp.Or(options.Zone, time.Local)
	input := textinput.New()
	input.Prompt = ""
	input.SetVirtualCursor(false)
	input.KeyMap.Paste.SetEnabled(false) // it would run programs to ask for the clipboard
	m := &model{ctx: ctx, source: options.Source, options: options, input: input, width: 80, height: 24}
	m.view = options.Source.View()
	return m
}

// Init implements tea.Model.
func (m *model) Init() tea.Cmd {
	return tea.Batch(func() tea.Msg { return m.picture() }, tick())
}

// Update implements tea.Model.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case viewMsg:
		m.view = msg.view
		return m, m.next(msg.changed)
	case tickMsg:
		return m, tick()
	case answeredMsg:
		m.answered(msg)
	case lockedMsg:
		m.locked(msg)
	case tea.PasteMsg:
		// What is pasted is text, and no keys: nothing is answered by it.
		if m.filtering || m.sheet != nil && m.sheet.reasons() {
			return m, m.typed(tea.PasteMsg{Content: plain.Text(msg.Content)})
		}
	case tea.KeyPressMsg:
		return m, m.key(msg)
	}
	return m, nil
}

// typed gives a message to the line that is being typed.
func (m *model) typed(msg tea.Msg) (command tea.Cmd) {
	m.input, command = m.input.Update(msg)
	if m.filtering {
		m.filter = m.input.Value()
	}
	return command
}

// ask begins a line of text.
func (m *model) ask(value string, limit int) tea.Cmd {
	m.input.Reset()
	m.input.CharLimit = limit
	m.input.SetValue(value)
	return m.input.Focus()
}

func (m *model) key(msg tea.KeyPressMsg) tea.Cmd {
	if msg.String() == "ctrl+c" {
		return tea.Quit
	}
	switch {
	case m.sheet != nil:
		return m.sheetKey(msg)
	case m.filtering:
		switch msg.String() {
		case "esc":
			m.filter, m.filtering = "", false
		case "enter":
			m.filtering = false
		default:
			return m.typed(msg)
		}
		return nil
	}
	m.notice = ""
	return m.listKey(msg.String())
}

func (m *model) listKey(key string) tea.Cmd {
	switch key {
	case "q":
		return tea.Quit
	case "1", "2", "3", "4", "5":
		m.page = page(key[0] - '1')
	case "tab", "right":
		m.page = (m.page + 1) % pages
	case "shift+tab", "left":
		m.page = (m.page + pages - 1) % pages
	case "up", "k":
		m.move(-1)
	case "down", "j":
		m.move(1)
	case "pgup":
		m.move(-m.listHeight())
	case "pgdown", "space":
		m.move(m.listHeight())
	case "home", "g":
		m.places[m.page] = place{}
	case "end", "G":
		m.move(1 << 20)
	case "enter":
		m.openDetails()
	case "a", "A", "d", "r":
		return m.openAnswer(key)
	case "L", "U":
		return m.openLock(key == "U")
	case "/":
		m.filtering = true
		return m.ask(m.filter, 200)
	case "esc":
		m.filter = ""
	case "?":
		m.sheet = helpSheet()
	}
	return nil
}

// entries are the lines of the page, without those that the filter leaves out.
func (m *model) entries() []entry {
	var all []entry
	switch m.page {
	case requestsPage:
		all = m.requestEntries()
	case eventsPage:
		all = m.eventEntries()
	case scopesPage:
		all = m.scopeEntries()
	case rulesPage:
		all = m.ruleEntries()
	case grantsPage:
		all = m.grantEntries()
	}
	word := strings.ToLower(m.filter)
	if word == "" {
		return all
	}
	return slices.DeleteFunc(all, func(e entry) bool {
		if strings.Contains(strings.ToLower(e.line().words()), word) {
			return false
		}
		return !slices.ContainsFunc(e.fields(), func(f console.Field) bool { return strings.Contains(strings.ToLower(f.Text), word) })
	})
}

// cursor finds the line of the cursor: that of its key, or, when that has gone, what is at
// its place now.
func (m *model) cursor(entries []entry) int {
	at := &m.places[m.page]
	if at.key == "" {
		at.index = 0
	} else if i := slices.IndexFunc(entries, func(e entry) bool { return e.key == at.key }); i >= 0 {
		at.index = i
	} else {
		at.index = max(0, min(at.index, len(entries)-1))
	}
	return at.index
}

func (m *model) move(by int) {
	entries := m.entries()
	if len(entries) == 0 {
		return
	}
	i := max(0, min(m.cursor(entries)+by, len(entries)-1))
	m.places[m.page].key, m.places[m.page].index = entries[i].key, i
}

// chosen is the entry under the cursor.
func (m *model) chosen() (entry, bool) {
	entries := m.entries()
	if len(entries) == 0 {
		return entry{}, false
	}
	return entries[m.cursor(entries)], true
}
