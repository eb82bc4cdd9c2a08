// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"html"
	"image/color"
	"strings"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
)

// The size of a cell, in pixels.
const cellWidth, cellHeight = 8.4, 18

// drawScreen draws a terminal's screen as SVG, on a light or a dark background as its
// reader prefers.
func drawScreen(screen *vt.Emulator) string {
	var b strings.Builder
	width, height := float64(screen.Width())*cellWidth+32, screen.Height()*cellHeight+28
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" shape-rendering="crispEdges" viewBox="0 0 %.0f %d" width="%.0f" role="img" aria-label="actplane top">
<style>
  svg { --bg: #ffffff; --line: #d5d9e0; --fg: #1d2330; --faint: #6b7280; --red: #c62828; --green: #1b7f3b; --magenta: #8e24aa; color-scheme: light dark }
  @media (prefers-color-scheme: dark) { svg { --bg: #14171f; --line: #343a48; --fg: #e4e7ee; --faint: #949cab; --red: #ff7b72; --green: #6fd08c; --magenta: #e0a3ff } }
  text { font: 14px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; white-space: pre; fill: var(--fg) }
  .b { font-weight: 700 } .f { fill: var(--faint) } .r { fill: var(--red) } .g { fill: var(--green) } .m { fill: var(--magenta) } .v { fill: var(--bg) }
</style>
<rect x="0.5" y="0.5" width="%.0f" height="%d" rx="8" fill="var(--bg)" stroke="var(--line)"/>
`, width, height, width, width-1, height-1)
	for y := range screen.Height() {
		drawLine(&b, screen, y)
	}
	return b.String() + "</svg>\n"
}

// drawLine draws runs of cells that look the same.
func drawLine(b *strings.Builder, screen *vt.Emulator, y int) {
	top := float64(y*cellHeight) + 14
	for x := 0; x < screen.Width(); {
		look, start := lookOf(screen.CellAt(x, y)), x
		var text strings.Builder
		for x < screen.Width() && lookOf(screen.CellAt(x, y)) == look {
			cell := screen.CellAt(x, y)
			content, wide := " ", 1
			if cell != nil && cell.Content != "" {
				content, wide = cell.Content, max(cell.Width, 1)
			}
			text.WriteString(content)
			x += wide
		}
		left, long := float64(start)*cellWidth+16, float64(x-start)*cellWidth
		if strings.Contains(" "+look+" ", " v ") {
			fmt.Fprintf(b, "<rect x=\"%.1f\" y=\"%.0f\" width=\"%.1f\" height=\"%d\" fill=\"var(--fg)\"/>\n", left, top, long, cellHeight)
		}
		if strings.TrimSpace(text.String()) != "" {
			fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%.0f\" textLength=\"%.1f\" class=\"%s\">%s</text>\n", left, top+13, long, strings.TrimSpace(look), html.EscapeString(text.String()))
		}
	}
}

// lookOf is a cell's look as classes.
func lookOf(cell *uv.Cell) string {
	if cell == nil {
		return ""
	}
	look := ""
	if cell.Style.Attrs&uv.AttrBold != 0 {
		look += "b "
	}
	if cell.Style.Attrs&uv.AttrReverse != 0 {
		return look + "v "
	}
	if cell.Style.Attrs&uv.AttrFaint != 0 {
		look += "f "
	}
	names := map[color.Color]string{ansi.Red: "r ", ansi.Green: "g ", ansi.Magenta: "m "}
	return look + names[cell.Style.Fg]
}
