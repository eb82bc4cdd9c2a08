// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/console/consoletest"
	"github.com/actplane/actplane/engine/api"
)

// topScreen is actplane top on a real terminal.
type topScreen struct {
	t      *testing.T
	term   *terminal
	screen *vt.Emulator
	read   int
	code   chan int
}

func startTop(t *testing.T, engine *consoletest.Engine, columns, lines uint16) *topScreen {
	t.Helper()
	s := &topScreen{t: t, term: newTerminal(t), screen: vt.NewEmulator(int(columns), int(lines)), code: make(chan int, 1)}
	s.resize(columns, lines)
	t.Setenv("TERM", "xterm-256color")
	go func() {
		s.code <- run([]string{"actplane", "top", "--run-dir", engine.Dir}, s.term.slave, s.term.slave, s.term.slave)
	}()
	// What the page asks the terminal, the emulator answers.
	go func() {
		buffer := make([]byte, 256)
		for {
			n, err := s.screen.Read(buffer)
			if err != nil {
				return
			}
			if _, err := s.term.master.Write(buffer[:n]); err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { s.screen.Close() })
	return s
}

func (s *topScreen) resize(columns, lines uint16) {
	s.t.Helper()
	if err := unix.IoctlSetWinsize(int(s.term.master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: lines, Col: columns}); err != nil {
		s.t.Fatal(err)
	}
	s.screen.Resize(int(columns), int(lines))
	// It is not this process's own terminal, so that the kernel does not tell it.
	if err := unix.Kill(os.Getpid(), unix.SIGWINCH); err != nil {
		s.t.Fatal(err)
	}
}

func (s *topScreen) press(keys string) {
	s.t.Helper()
	if _, err := s.term.master.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// await waits until all texts are on the screen.
func (s *topScreen) await(want ...string) {
	s.t.Helper()
	s.until(fmt.Sprintf("%q", want), func(shown string) bool {
		return !slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(shown, w) })
	})
}

// awaitGone waits until a text is no more on the screen.
func (s *topScreen) awaitGone(text string) {
	s.t.Helper()
	s.until(fmt.Sprintf("the screen without %q", text), func(shown string) bool { return !strings.Contains(shown, text) })
}

func (s *topScreen) until(what string, is func(shown string) bool) {
	s.t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		text := s.term.text()
		s.screen.WriteString(text[s.read:])
		s.read = len(text)
		if is(s.screen.String()) {
			return
		}
	}
	s.t.Fatalf("not %s, but\n%s", what, s.screen)
}

// TestTop uses the page as a person does: on a terminal, by keys alone.
func TestTop(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	engine := consoletest.Start(t)
	engine.Tell()
	s := startTop(t, engine, 80, 24)
	s.await("2 waiting", "> k3m9p web-agent", "argv      git push origin main")
	s.press("j")
	s.await("> b7q2x docs-bot")
	s.press("A")
	s.await("Approve b7q2x for 10 minutes?", "y approves b7q2x")
	s.press("y")
	s.await("b7q2x is granted.", "1 waiting")
	s.resize(40, 20)
	s.await("[1 Req (1)]")
	s.press("2")
	s.await("[2 Evt]", "12×")
	s.press("1dNot today\r")
	s.await("k3m9p is denied.", "none waiting")
	engine.Stop()
	s.await("! the engine has stopped")
	engine.Resume()
	s.awaitGone("! the engine")
	s.press("q")
	select {
	case code := <-s.code:
		if code != 0 {
			t.Errorf("status %d", code)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it does not end")
	}
	answers := engine.Answers()
	if len(answers) != 2 || answers[0].Id != "b7q2x" || answers[0].ForMs != 600_000 || answers[0].By.GetVia() != "top" ||
		answers[1].Id != "k3m9p" || !answers[1].Denied || answers[1].Because != "Not today" {
		t.Errorf("%v", answers)
	}
	if raw := s.term.text(); strings.Contains(raw, "\x1b[31m") || strings.Contains(raw, "\x1b[35m") {
		t.Errorf("NO_COLOR=1 has colours: %q", raw)
	}
}

// Without a terminal there is no page.
func TestTopNeedsTerminal(t *testing.T) {
	var out, errs strings.Builder
	if code := run([]string{"actplane", "top"}, strings.NewReader("q"), &out, &errs); code != exitUsage || !strings.Contains(errs.String(), "needs a terminal") {
		t.Errorf("status %d: %s", code, &errs)
	}
}

// A name from inside a container is on the terminal as text, not as what the terminal does.
func TestTopHostile(t *testing.T) {
	engine := consoletest.Start(t)
	engine.Ask(&api.Request{Id: "zzzzz", Scope: "s", ScopeName: "a\x1b[2J", State: "open", Operation: "exec", Object: []byte("/w/\x1b]0;owned\a\x1b[5;5H"),
		Args: [][]byte{[]byte("\x9b2J\r\n"), []byte("\u202e")}, Comm: []byte("\x1bc"), OpenedUnixMs: time.Now().UnixMilli()})
	s := startTop(t, engine, 80, 24)
	s.await(`\x1b]0;owned\x07\x1b[5;5H`, `\x1bc`, `\u202e`)
	s.press("q")
	<-s.code
	for _, never := range []string{"\x1b]0;owned", "\x1b[5;5H\"", "\x9b2J", "\u202e"} {
		if strings.Contains(s.term.text(), never) {
			t.Errorf("the terminal got %q", never)
		}
	}
}

// TestTopPicture draws docs/images/top.svg from the screen of the real program, if
// -update asks for it, and else looks that it is there.
func TestTopPicture(t *testing.T) {
	path, err := filepath.Abs("../../docs/images/top.svg")
	if err != nil {
		t.Fatal(err)
	}
	if !*update {
		if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), "k3m9p") {
			t.Errorf("%v; -update draws it", err)
		}
		return
	}
	t.Setenv("COLORTERM", "")
	engine := consoletest.Start(t)
	engine.TellAt(time.Now())
	s := startTop(t, engine, 80, 24)
	s.await("2 waiting", "argv      git push origin main")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(drawScreen(s.screen)), 0o644); err != nil {
		t.Fatal(err)
	}
	s.press("q")
	<-s.code
	fmt.Println(s.screen.String())
}
