// SPDX-License-Identifier: Apache-2.0

package top

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/actplane/actplane/console"
	"github.com/actplane/actplane/console/consoletest"
	"github.com/actplane/actplane/engine/api"
)

var update = flag.Bool("update", false, "write golden screens anew")

// bench is a page that is driven without a terminal.
type bench struct {
	t       *testing.T
	engine  *consoletest.Engine
	watcher *console.Watcher
	model   *model
}

func newBench(t *testing.T, width, height int) *bench {
	engine := consoletest.Start(t)
	watcher := console.NewWatcher(engine.Connect)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { watcher.Run(ctx); close(ended) }()
	t.Cleanup(func() { cancel(); engine.Stop(); <-ended })
	m := newModel(ctx, Options{Source: watcher, Zone: time.UTC, Now: func() time.Time { return consoletest.Now },
		Answers: func() *api.Operator { return &api.Operator{Uid: 1000, Name: "ada", Via: "top"} }})
	m.Update(tea.WindowSizeMsg{Width: width, Height: height})
	b := &bench{t, engine, watcher, m}
	b.await(func(v *console.View) bool { return v.Problem == "" })
	return b
}

// await shows the page what there is as soon as that is so.
func (b *bench) await(is func(*console.View) bool) {
	b.t.Helper()
	timeout := time.After(10 * time.Second)
	for {
		changed := b.watcher.Changed()
		if v := b.watcher.View(); is(v) {
			b.model.Update(viewMsg{v, changed})
			return
		}
		select {
		case <-changed:
		case <-timeout:
			b.t.Fatalf("it never came; the screen is\n%s", b.screen())
		}
	}
}

func (b *bench) tell() {
	b.t.Helper()
	b.engine.Tell()
	b.await(func(v *console.View) bool {
		return len(v.Scopes) == 2 && len(v.Grants) == 1 && len(v.Requests) == 3 && len(v.Rows) == 6 && v.Rows[3].Count == 12
	})
}

// press presses keys, and does at once what they begin.
func (b *bench) press(keys ...string) {
	b.t.Helper()
	for _, key := range keys {
		msg := tea.KeyPressMsg{}
		switch key {
		case "enter":
			msg.Code = tea.KeyEnter
		case "esc":
			msg.Code = tea.KeyEscape
		case "up":
			msg.Code = tea.KeyUp
		case "down":
			msg.Code = tea.KeyDown
		case "tab":
			msg.Code = tea.KeyTab
		case "pgdown":
			msg.Code = tea.KeyPgDown
		default:
			msg.Code, msg.Text = []rune(key)[0], key
		}
		b.screen() // a person sees it before the key
		_, command := b.model.Update(msg)
		if command == nil {
			continue
		}
		done := make(chan tea.Msg, 1)
		go func() { done <- command() }()
		select {
		case result := <-done:
			switch result.(type) {
			case answeredMsg, lockedMsg:
				b.model.Update(result)
			}
		case <-time.After(time.Second): // a cursor that blinks
		}
	}
}

func (b *bench) screen() string {
	var lines []string
	for _, l := range strings.Split(ansi.Strip(b.model.View().Content), "\n") {
		lines = append(lines, strings.TrimRight(l, " "))
	}
	return strings.Join(lines, "\n") + "\n"
}

func (b *bench) shows(want string) {
	b.t.Helper()
	if got := b.screen(); !strings.Contains(got, want) {
		b.t.Errorf("no %q on the screen\n%s", want, got)
	}
}

func (b *bench) golden(name string) {
	b.t.Helper()
	got := b.screen()
	lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
	if len(lines) != b.model.height {
		b.t.Errorf("%s: %d lines", name, len(lines))
	}
	for _, l := range lines {
		if ansi.StringWidth(l) > b.model.width {
			b.t.Errorf("%s: too wide: %q", name, l)
		}
	}
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			b.t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		b.t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		b.t.Errorf("%s (-want +got); -update writes it anew:\n%s", name, d)
	}
}

func TestScreens(t *testing.T) {
	for size, dims := range map[string][2]int{"80x24": {80, 24}, "40x20": {40, 20}, "60x12": {60, 12}} {
		t.Run(size, func(t *testing.T) {
			b := newBench(t, dims[0], dims[1])
			b.golden("empty-" + size)
			b.tell()
			b.golden("requests-" + size)
			for _, step := range []struct {
				name string
				keys []string
			}{
				{"approve", []string{"a"}}, {"deny", []string{"esc", "d", "N", "o", "t", " ", "y", "e", "t"}},
				{"events", []string{"esc", "2", "down", "down", "down"}}, {"scopes", []string{"3"}}, {"lock", []string{"L", "H", "m"}}, {"rules", []string{"esc", "4"}}, {"grants", []string{"5"}},
				{"filter", []string{"2", "/", "g", "i", "t"}}, {"help", []string{"enter", "?"}},
			} {
				b.press(step.keys...)
				b.golden(step.name + "-" + size)
			}
		})
	}
}
