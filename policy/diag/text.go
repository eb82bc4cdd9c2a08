// SPDX-License-Identifier: Apache-2.0

package diag

import (
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"
)

// Pos is a place in a file; both count from 1, Col in characters.
type Pos struct{ Line, Col int }

// Span is a piece of a Text, in byte offsets.
type Span struct{ Start, End int }

// Text is what a parser reads, with the way back to lines and columns of the
// file. For a text embedded in another file (the policy block of a YAML file)
// positions are those of that file.
type Text struct {
	Name string // as diagnostics name the file
	Body []byte

	file    []byte
	above   int   // lines of a larger file that the file is a part of
	lines   []int // offset in file of each line's first byte
	offsets []int // offset in file of each byte of Body; nil: the same
}

// NewText returns a whole file as a Text.
func NewText(name string, file []byte) *Text {
	t := &Text{Name: name, Body: file, file: file, lines: []int{0}}
	for i, b := range file {
		if b == '\n' || b == '\r' && (i+1 == len(file) || file[i+1] != '\n') {
			t.lines = append(t.lines, i+1)
		}
	}
	return t
}

// Below returns the text as a part of a larger file, in which so many lines stand above
// it: positions are those of that file. Line, Lines and Offset count the part's own lines.
func (t *Text) Below(lines int) *Text {
	part := *t
	part.above = lines
	return &part
}

// Above returns how many lines of the larger file stand above the text.
func (t *Text) Above() int { return t.above }

// Embed returns a text that stands in t: offsets has, for each byte of body and
// one more for its end, the offset in t's file.
func (t *Text) Embed(body []byte, offsets []int) *Text {
	return &Text{Name: t.Name, Body: body, file: t.file, above: t.above, lines: t.lines, offsets: offsets}
}

// Pos returns the position of a byte of Body.
func (t *Text) Pos(offset int) Pos {
	p := t.own(offset)
	p.Line += t.above
	return p
}

// own is the position of a byte of Body in the part of the file alone.
func (t *Text) own(offset int) Pos {
	at := t.fileOffset(offset)
	line := sort.SearchInts(t.lines, at+1) - 1
	return Pos{line + 1, utf8.RuneCount(t.file[t.lines[line]:at]) + 1}
}

// Where returns "file:line:col" of a byte of Body.
func (t *Text) Where(offset int) string {
	p := t.Pos(offset)
	return fmt.Sprintf("%s:%d:%d", t.Name, p.Line, p.Col)
}

// Offset returns the offset in the file of a position, as far as the file goes. The line
// is one of those that Lines counts.
func (t *Text) Offset(p Pos) int {
	if p.Line < 1 {
		return 0
	}
	if p.Line > len(t.lines) {
		return len(t.file)
	}
	at := t.lines[p.Line-1]
	for col := 1; col < p.Col && at < len(t.file) && !isBreak(t.file[at]); col++ {
		_, n := utf8.DecodeRune(t.file[at:])
		at += n
	}
	return at
}

// Lines returns the number of lines.
func (t *Text) Lines() int { return len(t.lines) }

// Line returns a line without its end; lines count from 1.
func (t *Text) Line(n int) string {
	if n < 1 || n > len(t.lines) {
		return ""
	}
	line := t.file[t.lines[n-1]:]
	if n < len(t.lines) {
		line = line[:t.lines[n]-t.lines[n-1]]
	}
	return strings.TrimRight(string(line), "\r\n")
}

// New makes a diagnostic about a span; the severity comes from the code.
func (t *Text) New(code Code, at Span, format string, args ...any) Diagnostic {
	from := t.own(at.Start)
	source := t.Line(from.Line)
	length := 1
	if at.End > at.Start {
		first, last := t.fileOffset(at.Start), t.fileOffset(at.End-1)+1
		end := min(last, t.lines[from.Line-1]+len(source))
		if first < end {
			length = utf8.RuneCount(t.file[first:end])
		}
	}
	return Diagnostic{
		File: t.Name, Line: t.above + from.Line, Col: from.Col, Length: length,
		Severity: code.Severity(), Code: code,
		Message: fmt.Sprintf(format, args...), Source: clip(source),
	}
}

// WithHint returns the diagnostic with a hint that the user can act on.
func (d Diagnostic) WithHint(format string, args ...any) Diagnostic {
	d.Hint = fmt.Sprintf(format, args...)
	return d
}

func (t *Text) fileOffset(offset int) int {
	if t.offsets != nil {
		offset = t.offsets[max(0, min(offset, len(t.offsets)-1))]
	}
	return max(0, min(offset, len(t.file)))
}

func isBreak(b byte) bool { return b == '\n' || b == '\r' }

// maxSource bounds the source line that a diagnostic carries.
const maxSource = 4096

func clip(line string) string {
	if len(line) <= maxSource {
		return line
	}
	return strings.ToValidUTF8(line[:maxSource], "")
}
