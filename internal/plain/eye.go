// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"unicode"
	"unicode/utf8"
)

// maxMarks is how many marks may stand on one letter: with more they reach into other lines.
const maxMarks = 4

// blank are characters that count as printable and leave no ink.
var blank = &unicode.RangeTable{
	R16: []unicode.Range16{{Lo: 0x2800, Hi: 0x2800, Stride: 1}, {Lo: 0xfffc, Hi: 0xfffc, Stride: 1}},
	R32: []unicode.Range32{{Lo: 0x13441, Hi: 0x13446, Stride: 1}, {Lo: 0x16fe4, Hi: 0x16fe4, Stride: 1}, {Lo: 0x1d159, Hi: 0x1d159, Stride: 1}},
}

// Eye tells which characters of a text a person sees, one after the other. The zero value is
// at a text's beginning.
type Eye struct {
	on    bool // a letter, or the like, that marks can stand on
	marks int  // that stand there
}

// Sees tells whether the next character leaves ink, or is the ASCII space. To be printable
// is not enough: fillers and variation selectors are, in which a text can hide what no
// person sees and a model or a program reads; and so are marks, which change what stands
// before them, such as the quotation mark of somebody else's.
func (e *Eye) Sees(r rune) bool {
	if r < utf8.RuneSelf {
		e.on, e.marks = r > ' ' && r < 0x7f && (unicode.IsLetter(r) || unicode.IsDigit(r)), 0
		return r >= ' ' && r < 0x7f
	}
	seen := unicode.IsPrint(r) && !unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, blank)
	if unicode.IsMark(r) {
		e.marks++
		return seen && e.on && e.marks <= maxMarks
	}
	e.on, e.marks = seen && (unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsSymbol(r)), 0
	return seen
}
