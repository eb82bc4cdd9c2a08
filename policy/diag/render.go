// SPDX-License-Identifier: Apache-2.0

package diag

import (
	"fmt"
	"io"
	"strings"
	"unicode"
)

const (
	tabWidth  = 8
	maxShown  = 160 // characters of a source line
	leftShown = 60  // of these, before the caret when the line is longer
)

// WriteText renders the list for people: position, code and fact, the source
// line with a caret, and the hint.
func (l List) WriteText(w io.Writer) error {
	var b strings.Builder
	for _, d := range l {
		d.text(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (d Diagnostic) text(b *strings.Builder) {
	fmt.Fprintln(b, d)
	if strings.TrimSpace(d.Source) != "" {
		line, before, under := d.excerpt()
		number := fmt.Sprintf("%3d | ", d.Line)
		fmt.Fprintf(b, "%s%s\n", number, line)
		fmt.Fprintf(b, "%s| %s^%s\n", strings.Repeat(" ", len(number)-2), strings.Repeat(" ", before), strings.Repeat("~", under-1))
	}
	if d.Hint != "" {
		fmt.Fprintf(b, "  hint: %s\n", clean(d.Hint))
	}
}

// excerpt returns what is shown of the source line, how many columns of it
// stand before the caret, and how many the caret and its tail take.
func (d Diagnostic) excerpt() (line string, before, under int) {
	runes := []rune(d.Source)
	from := min(d.Col-1, len(runes))
	to := min(from+max(d.Length, 1), len(runes))
	first := 0
	if len(runes) > maxShown && from > leftShown {
		first = from - leftShown
	}
	last := min(len(runes), first+maxShown)
	to = max(from, min(to, last))
	var b strings.Builder
	if first > 0 {
		b.WriteString("…")
	}
	width := min(first, 1)
	for i := first; i < last; i++ {
		if i == from {
			before = width
		}
		if i >= from && i < to {
			under -= width
		}
		if runes[i] == '\t' {
			n := tabWidth - width%tabWidth
			b.WriteString(strings.Repeat(" ", n))
			width += n
		} else {
			b.WriteRune(visible(runes[i]))
			width++
		}
		if i >= from && i < to {
			under += width
		}
	}
	if from >= last {
		before = width
	}
	if last < len(runes) {
		b.WriteString("…")
	}
	return strings.TrimRight(b.String(), " "), before, max(under, 1)
}

// visible keeps what a policy file contains from acting on the terminal.
func visible(r rune) rune {
	if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) {
		return '·'
	}
	return r
}

func clean(s string) string { return strings.Map(visible, s) }
