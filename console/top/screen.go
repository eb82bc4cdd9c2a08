// SPDX-License-Identifier: Apache-2.0

package top

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/actplane/actplane/internal/plain"
)

// role is what a text is on the screen. Its colours are of the terminal's own sixteen, so
// that they are readable on a light and on a dark background, and never all that tells
// one thing from another.
type role int

const (
	body role = iota
	strong
	faint
	bad
	good
	asking
)

func (r role) style(reverse bool) ansi.Style {
	var s ansi.Style
	switch r {
	case strong:
		s = s.Bold()
	case faint:
		s = s.Faint()
	case bad:
		s = s.ForegroundColor(ansi.Red)
	case good:
		s = s.ForegroundColor(ansi.Green)
	case asking:
		s = s.Bold().ForegroundColor(ansi.Magenta)
	}
	if reverse {
		s = s.Reverse(true)
	}
	return s
}

// span is a piece of a line. Its text has no control characters, whatever it was given.
type span struct {
	role role
	text string
}

// line is one line of the screen.
type line struct {
	spans    []span
	selected bool
}

func text(r role, s string) span { return span{r, plain.Text(s)} }

func lineOf(spans ...span) line { return line{spans: spans} }

// words is the line without its looks.
func (l line) words() string {
	var b strings.Builder
	for _, s := range l.spans {
		b.WriteString(s.text)
	}
	return b.String()
}

// render is the line as the terminal gets it, exactly width cells wide. This is the only
// place from which escape sequences come.
func (l line) render(width int) string {
	var b strings.Builder
	put := func(r role, s string) { b.WriteString(r.style(l.selected).Styled(s)) }
	room, long := width, ansi.StringWidth(l.words()) > width
	if long {
		room--
	}
	for _, s := range l.spans {
		head, rest := split(plain.Text(s.text), room)
		put(s.role, head)
		room -= ansi.StringWidth(head)
		if rest != "" {
			break
		}
	}
	if long {
		put(body, "…")
	}
	put(body, strings.Repeat(" ", max(room, 0)))
	return b.String()
}

// cut shortens a text to a width, with a mark at its end if something is missing.
func cut(s string, width int) string {
	if ansi.StringWidth(s) <= width {
		return s
	}
	if width < 1 {
		return ""
	}
	head, _ := split(s, width-1)
	return head + "…"
}

// split takes from the beginning of a text what fits into a width.
func split(s string, width int) (head, rest string) {
	at := 0
	for at < len(s) {
		cluster, w := ansi.FirstGraphemeCluster(s[at:], ansi.GraphemeWidth)
		if w > width {
			break
		}
		width -= w
		at += len(cluster)
	}
	return s[:at], s[at:]
}

// wrap breaks a text into lines of a width, behind spaces where there are some. No
// character is lost: what somebody approves is what stands there.
func wrap(s string, width int) []string {
	width = max(width, 1)
	var lines []string
	for {
		head, rest := split(s, width)
		if rest == "" {
			return append(lines, head)
		}
		if head == "" { // a character that is wider than the screen
			cluster, _ := ansi.FirstGraphemeCluster(s, ansi.GraphemeWidth)
			head, rest = "?", s[len(cluster):]
		} else if i := strings.LastIndexByte(head, ' '); i > width/2 {
			head, rest = s[:i+1], s[i+1:]
		}
		lines = append(lines, head)
		s = rest
	}
}

// pad makes a text exactly so wide.
func pad(s string, width int) string {
	s = cut(s, width)
	return s + strings.Repeat(" ", max(0, width-ansi.StringWidth(s)))
}
