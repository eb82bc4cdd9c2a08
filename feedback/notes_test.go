// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// A line is about what was refused, and is the message with an end.
func TestNotes(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Item)
		line   bool
	}{
		"block":   {func(*Item) {}, true},
		"kill":    {func(i *Item) { i.Effect = Kill }, true},
		"notify":  {func(i *Item) { i.Effect = Notify }, false},
		"asked":   {func(i *Item) { i.Effect, i.Outcome, i.Request = Ask, Opened, "k3m9p" }, true},
		"granted": {func(i *Item) { i.Effect, i.Outcome, i.Request = Ask, Used, "k3m9p" }, false},
		"hostile": {func(i *Item) { i.Object, i.Args = "/a\nb\x1b[2J\u202e", []string{"x\r\n"} }, true},
	} {
		var n Notes
		item := push()
		c.change(&item)
		line, ok := n.Line(item, time.Now())
		if want := item.Message() + "\n"; ok != c.line || ok && line != want {
			t.Errorf("%s: %q, %v", name, line, ok)
		}
		if ok && (strings.Count(line, "\n") != 1 || strings.ContainsAny(line, "\r\x1b\u202e")) {
			t.Errorf("%s: %q is not one harmless line", name, line)
		}
	}
}

// However long what is refused is, the line fits into a pipe at once.
func TestLongNote(t *testing.T) {
	long := strings.Repeat("\U0001F600", 10_000)
	item := push()
	item.Because, item.Clause, item.Also, item.Labels = long, `block exec any if not `+long+` unless after exec "`+long+`"`, []string{long, long, long}, []string{long, long, long, long, long, long}
	var n Notes
	line, ok := n.Line(item, time.Now())
	if !ok || len(line) > maxNote || !strings.HasSuffix(line, "(cut)\n") || !utf8.ValidString(line) {
		t.Errorf("%d bytes: %q", len(line), line)
	}
}

// A program that tries again and again gets some lines, and later how many it did not get.
func TestManyNotes(t *testing.T) {
	var n Notes
	now := time.Now()
	lines := 0
	for range 1000 {
		if _, ok := n.Line(push(), now); ok {
			lines++
		}
	}
	if lines != noteBurst {
		t.Errorf("%d lines at once", lines)
	}
	line, ok := n.Line(push(), now.Add(time.Second))
	if !ok || !strings.HasSuffix(line, " (980 lines like this one were left out.)\n") {
		t.Errorf("%q, %v", line, ok)
	}
	if line, ok = n.Line(push(), now.Add(2*time.Second)); !ok || line != push().Message()+"\n" {
		t.Errorf("%q, %v", line, ok)
	}
}
