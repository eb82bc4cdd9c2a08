// SPDX-License-Identifier: Apache-2.0

package top

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"google.golang.org/protobuf/proto"

	"github.com/actplane/actplane/console"
	"github.com/actplane/actplane/console/consoletest"
	"github.com/actplane/actplane/engine/api"
)

func request(id, object string) *api.Request {
	return &api.Request{Id: id, Scope: "s", ScopeName: "web", State: "open", Operation: "exec", Object: []byte(object), Args: [][]byte{[]byte(object)},
		Comm: []byte("sh"), OpenedUnixMs: consoletest.Now.UnixMilli(), Rule: "r"}
}

func TestAnswers(t *testing.T) {
	b := newBench(t, 80, 24)
	b.tell()
	b.press("a")
	if len(b.engine.Answers()) != 0 {
		t.Fatal("one key approves")
	}
	b.press("y")
	b.shows("k3m9p is granted.")
	b.press("A")
	b.shows("Approve b7q2x for 10 minutes?") // the cursor is on what waits next
	b.press("y", "down", "d", "N", "o", "\u009b", "enter")
	if b.engine.Revoked() != nil {
		t.Error("revoked without being asked")
	}
	b.press("g", "r")
	b.shows("back?")
	b.press("y")
	if got := b.engine.Revoked(); len(got) != 1 || got[0].By.Via != "top" {
		t.Errorf("%v\n%s", got, b.screen())
	}
	got := b.engine.Answers()
	if len(got) != 3 {
		t.Fatalf("%v", got)
	}
	if a := got[0]; a.Id != "k3m9p" || a.Count != 1 || a.ForMs != 0 || a.Denied || a.By.Name != "ada" || a.By.Via != "top" {
		t.Errorf("%v", a)
	}
	if a := got[1]; a.Id != "b7q2x" || a.Count != 0 || a.ForMs != 600_000 || a.Denied || a.ScopeLifetime {
		t.Errorf("%v", a)
	}
	if a := got[2]; !a.Denied || !a.ScopeLifetime || !strings.HasPrefix(a.Because, "No") {
		t.Errorf("%v", a)
	}
}

// What comes between a look and a key changes nothing but what is seen.
func TestStaleSelection(t *testing.T) {
	b := newBench(t, 80, 24)
	b.engine.SetScopes(&api.Scope{Id: "s", Name: "web", State: "enforcing"})
	b.engine.Ask(request("ccccc", "/bin/c"), request("ddddd", "/bin/d"))
	b.await(func(v *console.View) bool { return len(v.Requests) == 2 })
	b.press("down")
	b.shows("> ddddd")
	older := request("bbbbb", "/bin/rm")
	older.OpenedUnixMs -= 60_000 // sorts before
	b.engine.Ask(older)
	b.await(func(v *console.View) bool { return len(v.Requests) == 3 })
	b.shows("> ddddd") // the cursor is on a request, not on a line
	b.press("a")
	b.shows("Approve ddddd once?")
	b.shows("exec /bin/d")

	// It is withdrawn while the sheet is open: y sends nothing, not for another one either.
	gone := request("ddddd", "/bin/d")
	gone.State = "withdrawn"
	b.engine.Ask(gone)
	b.await(func(v *console.View) bool { return v.Request("ddddd").State == "withdrawn" })
	b.shows("ddddd has changed meanwhile: nothing was sent.")
	b.press("y", "y", "enter")
	if got := b.engine.Answers(); len(got) != 0 {
		t.Fatalf("%v", got)
	}
	// Back on the list, one more y is nothing.
	b.press("esc", "y")
	if got := b.engine.Answers(); len(got) != 0 {
		t.Fatalf("%v", got)
	}
}

// A paste is no answer, and what is pasted has no control characters.
func TestPaste(t *testing.T) {
	b := newBench(t, 80, 24)
	b.tell()
	b.model.Update(tea.PasteMsg{Content: "ay"})
	b.press("a")
	b.model.Update(tea.PasteMsg{Content: "y\r"})
	b.press("esc", "d")
	b.model.Update(tea.PasteMsg{Content: "a\x1b[2J\nb"})
	b.shows(`reason: a\x1b[2J\x0ab`)
	if got := b.engine.Answers(); len(got) != 0 {
		t.Fatalf("%v", got)
	}
}

// What is approved has been on the screen to its end.
func TestReadToTheEnd(t *testing.T) {
	b := newBench(t, 80, 24)
	long := request("ccccc", "/bin/sh")
	for i := range 200 {
		long.Args = append(long.Args, fmt.Appendf(nil, "argument-%d", i))
	}
	long.Args = append(long.Args, []byte("--and-delete-everything"))
	b.engine.Ask(long)
	b.await(func(v *console.View) bool { return len(v.Requests) == 1 })
	b.press("a", "y")
	if got := b.engine.Answers(); len(got) != 0 {
		t.Fatalf("approved unread: %v", got)
	}
	for range 20 {
		b.press("pgdown")
		if strings.Contains(b.screen(), "--and-delete-everything") {
			break
		}
	}
	b.press("pgdown", "y")
	if got := b.engine.Answers(); len(got) != 1 {
		t.Errorf("%v\n%s", got, b.screen())
	}
}

func TestRefusedAnswer(t *testing.T) {
	b := newBench(t, 80, 24)
	b.tell()
	b.engine.Refuse(errors.New("no\x1b[2J room"))
	b.press("a", "y")
	b.shows(`k3m9p: `)
	b.shows(`no\x1b[2J room`)
}

// The daemon goes and comes back; meanwhile nothing can be answered, and it says so.
func TestDaemonRestarts(t *testing.T) {
	b := newBench(t, 80, 24)
	b.tell()
	b.press("a")
	b.engine.Stop()
	b.await(func(v *console.View) bool { return v.Problem != "" })
	b.shows("! the engine has stopped")
	b.press("y")
	b.shows("The engine is away")
	b.press("esc", "a")
	b.shows("Nothing can be answered while the engine is away.")
	b.engine.Resume()
	b.await(func(v *console.View) bool { return v.Problem == "" })
	b.shows("> k3m9p")
	b.press("2")
	b.shows("12× blocked") // what is kept was told again, and counts once
	b.press("1", "a", "y")
	if got := b.engine.Answers(); len(got) != 1 {
		t.Errorf("%v", got)
	}
}

// A scope is locked by two keys, and unlocked by two; the sheet is about the scope that was
// under the cursor.
func TestLock(t *testing.T) {
	b := newBench(t, 80, 24)
	b.tell()
	b.press("L")
	b.shows("Scopes are locked and unlocked on page 3.")
	b.press("3", "U")
	b.shows("web-agent is not locked.")
	b.press("L")
	b.shows("Lock web-agent?")
	b.press("y", "e", "s")
	b.model.Update(tea.PasteMsg{Content: "\r\n\r"})
	if len(b.engine.Locked()) != 0 {
		t.Fatal("locked without Enter")
	}
	b.press("enter")
	b.shows("web-agent is locked: everything that it does is refused.")
	b.shows("web-agent        locked")
	if got := b.engine.Locked(); len(got) != 1 || !strings.HasPrefix(got[0].Scope, "4f1c09aa") || got[0].All || got[0].Freeze || !strings.HasPrefix(got[0].Because, "yes") || got[0].By.Via != "top" {
		t.Fatalf("%v", got)
	}
	b.press("L")
	b.shows("web-agent is locked already; U unlocks it.")
	b.press("U")
	b.shows("Unlock web-agent?")
	b.press("enter")
	if len(b.engine.Unlocked()) != 0 {
		t.Fatal("Enter unlocks")
	}
	b.press("y")
	b.shows("web-agent is unlocked; 7 operations were refused.")
	if got := b.engine.Unlocked(); len(got) != 1 || !strings.HasPrefix(got[0].Scope, "4f1c09aa") || got[0].All || got[0].By.Name != "ada" {
		t.Fatalf("%v", got)
	}
	b.engine.Refuse(errors.New("no\x1b[2J room"))
	b.press("L", "enter")
	b.shows(`no\x1b[2J room`)
	b.engine.Refuse(nil)

	// Somebody else locks it while the sheet is open.
	b.press("L")
	v := b.watcher.View()
	locked := proto.Clone(v.Scopes[0]).(*api.Scope)
	locked.State, locked.Lock = "locked", &api.Lock{Id: locked.Id, SinceUnixMs: 1}
	b.engine.SetScopes(locked, v.Scopes[1])
	b.await(func(v *console.View) bool { return v.Scopes[0].Lock != nil })
	b.shows("has changed meanwhile: nothing was sent.")
	b.press("enter", "y")
	if len(b.engine.Locked()) != 1 || len(b.engine.Unlocked()) != 1 {
		t.Error("sent all the same")
	}
}

// What holds is on a page of its own, and is taken back there, how long ago it was given.
func TestGrants(t *testing.T) {
	b := newBench(t, 80, 24)
	b.tell()
	b.press("5")
	b.shows("> t4d8c web-agent    granted 1h        exec /usr/bin/git push origin greetings")
	b.press("a")
	b.shows("Requests are answered on page 1.")
	b.press("r")
	b.shows("Take the answer to t4d8c back?")
	b.press("y")
	b.shows("t4d8c is revoked.")
	b.shows("No approval or denial holds.")
	if got := b.engine.Revoked(); len(got) != 1 || got[0].Id != "t4d8c" {
		t.Errorf("%v", got)
	}
}

// Whatever size the terminal has, nothing is wider or longer, and nothing panics.
func TestSizes(t *testing.T) {
	b := newBench(t, 80, 24)
	b.tell()
	for width := 0; width < 130; width += 7 {
		for height := 0; height < 40; height += 3 {
			b.model.Update(tea.WindowSizeMsg{Width: width, Height: height})
			for _, keys := range [][]string{{"1"}, {"2"}, {"3", "L"}, {"esc", "4"}, {"5", "d"}, {"esc", "?"}, {"esc", "1", "d", "x"}, {"esc", "/"}, {"esc"}} {
				b.press(keys...)
				if lines := strings.Count(b.model.View().Content, "\n") + 1; lines > max(height, 1) {
					t.Fatalf("%dx%d: %d lines", width, height, lines)
				}
			}
		}
	}
}

// looks are the page's own sequences: bold, faint, reverse and colours.
var looks = regexp.MustCompile(`^\x1b\[[0-9;]*m`)

// hostile are texts that a container may choose.
func hostile(i int) string {
	parts := []string{"\x1b[2J", "\x1b]0;title\a", "\u009b31m", "\u202egpj.exe", "\r\nrequest   zzzzz", "\x9b", "\xff\xfe", "\x00", "\x7f", "\u2028", "\U000e0041",
		"\u2066", "漢字", "é", "e\u0301\u0301\u0301", "\U0001F469\u200d\U0001F4BB", "\t", "\b\b\b", "\"quoted\"", `\x1b`, "<script>", strings.Repeat("A", 3000), "\x1bP+q\x1b\\", "\x1b[200~ay\x1b[201~"}
	return fmt.Sprintf("/w/%d%s%s%s", i, parts[i%len(parts)], parts[(i*7+3)%len(parts)], parts[(i*5+1)%len(parts)])
}

// 200 names, arguments and reasons: the terminal gets no sequence but the page's own looks.
func TestHostile(t *testing.T) {
	b := newBench(t, 80, 24)
	valid := func(i int) string { return strings.ToValidUTF8(hostile(i), "?") } // as the engine makes what it tells
	b.engine.SetScopes(&api.Scope{Id: valid(1), Name: valid(2), State: valid(3), Mode: valid(4), Layers: []string{valid(5)}, Warnings: []string{valid(6)}})
	for i := range 200 {
		text := valid(i)
		r := request(fmt.Sprintf("r%04d", i), hostile(i))
		r.Args = [][]byte{[]byte(hostile(i + 1)), []byte(hostile(i + 2))}
		r.Comm, r.Rule, r.Because, r.ScopeName, r.Labels = []byte(hostile(i+3)), text, text, text, []string{text}
		b.engine.Ask(r)
		b.engine.Happen(&api.Event{Scope: "s", ScopeName: text, Sequence: uint64(i + 1), TimeUnixMs: consoletest.Now.UnixMilli() + int64(i), Effect: text, Outcome: text, Operation: text,
			Object: text, Args: []string{text, text}, Rule: text, Because: text, Clause: text, ClausePos: text, Comm: text, Labels: []string{text}, By: text, Request: text, Also: []string{text}})
	}
	b.await(func(v *console.View) bool { return len(v.Requests) == 200 && len(v.Rows) == 200 })
	check := func() {
		t.Helper()
		content := b.model.View().Content
		for rest := content; ; {
			i := strings.IndexFunc(rest, func(r rune) bool {
				return r != '\n' && (r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == '\ufffd')
			})
			if i < 0 {
				break
			}
			look := looks.FindString(rest[i:])
			if look == "" {
				t.Fatalf("%q", rest[i:min(i+40, len(rest))])
			}
			rest = rest[i+len(look):]
		}
		if lines := strings.Split(content, "\n"); len(lines) != 24 {
			t.Fatalf("%d lines", len(lines))
		}
	}
	for page := range 4 {
		b.press(fmt.Sprint(page + 1))
		for range 200 {
			b.press("down")
			check()
		}
		b.press("enter")
		check()
		b.press("esc")
	}
	b.press("1", "a")
	check()
	b.press("esc", "/", "A", "enter")
	check()
}
