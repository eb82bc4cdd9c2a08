// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v2"
)

// pageWidth is where lines of prose are broken, in characters.
const pageWidth = 96

// page is a text for people. What it is given may come from anywhere: control
// characters show as escapes.
type page struct{ b strings.Builder }

// writePage prints what f puts on a page.
func writePage(c *cli.Context, f func(*page)) error {
	var p page
	f(&p)
	_, err := fmt.Fprint(c.App.Writer, p.b.String())
	return err
}

// blank separates paragraphs; there is none at the beginning.
func (p *page) blank() {
	if p.b.Len() > 0 {
		p.b.WriteByte('\n')
	}
}

// line writes a line, however long it is.
func (p *page) line(format string, args ...any) {
	p.b.WriteString(clean(fmt.Sprintf(format, args...)) + "\n")
}

// text writes lines of prose, each with the indent.
func (p *page) text(indent, format string, args ...any) { p.hanging(indent, format, args...) }

// hanging writes lines of prose: the first behind a mark, the others below its end.
func (p *page) hanging(mark, format string, args ...any) {
	indent := strings.Repeat(" ", utf8.RuneCountInString(mark))
	at, start := mark, true
	for _, w := range strings.Fields(clean(fmt.Sprintf(format, args...))) {
		if !start && utf8.RuneCountInString(at)+1+utf8.RuneCountInString(w) > pageWidth {
			p.b.WriteString(at + "\n")
			at, start = indent, true
		}
		if !start {
			at += " "
		}
		at, start = at+w, false
	}
	p.b.WriteString(at + "\n")
}
