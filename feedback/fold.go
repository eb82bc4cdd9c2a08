// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"fmt"
	"strings"
)

// maxAlike is how many different messages of one rule and operation a folded
// text shows before it only counts them.
const maxAlike = 3

// tailRoom is kept free for the counts that come after the messages.
const tailRoom = 160

// Folded is what a text of bounded length holds of a page.
type Folded struct {
	Text string
	// Cursor is the last item that the text covers: the one to acknowledge. What
	// is above it belongs into the next text.
	Cursor uint64
	// Left counts the page's items that the text does not cover.
	Left int
}

// line is one message of a folded text and how many others it stands for.
type line struct {
	text   string
	same   int // the very same message
	others int // other messages of the same rule and operation
}

// alike is what the items that a line may stand for have in common.
type alike struct {
	effect                   Effect
	operation, rule, because string
	added                    bool
}

// Fold puts a page's messages into at most limit bytes, in order, each on a
// line. Repeats are counted instead of shown, and so is what one rule did many
// times over; the first item of every rule is always in words, in this text or,
// if there is no room, in the next.
func Fold(page Page, limit int) Folded {
	folded := Folded{Cursor: page.Cursor}
	var lines []line
	seen := map[string]int{}
	groups := map[alike][]int{}
	var lost uint64
	room := limit - tailRoom
	for i, entry := range page.Items {
		key := alike{entry.Effect, entry.Operation, entry.Rule, entry.Because, entry.RuleAdded}
		at, repeated := seen[entry.Message]
		group := groups[key]
		const suffix = len(" (and 1000 more like it, and 1000 others by the same rule)\n")
		switch need := len(entry.Message) + suffix; {
		case repeated:
			lines[at].same++
		case len(group) >= maxAlike:
			lines[group[0]].others++
		case need > room && i > 0:
			folded.Cursor, folded.Left = page.Items[i-1].Sequence, len(page.Items)-i
		default:
			seen[entry.Message] = len(lines)
			groups[key] = append(group, len(lines))
			lines = append(lines, line{text: cut(entry.Message, room-suffix)})
			room -= need
		}
		if folded.Left > 0 {
			break
		}
		lost += entry.Lost
	}
	folded.Text = render(lines, lost, folded.Left+page.Remaining)
	return folded
}

func render(lines []line, lost uint64, left int) string {
	var b strings.Builder
	for i, line := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(line.text + counts(line.same, line.others))
	}
	if lost > 0 {
		fmt.Fprintf(&b, "\nActPlane lost the records of %d more events.", lost)
	}
	if left > 0 {
		fmt.Fprintf(&b, "\nActPlane recorded %d more; `actplane-guest feedback` prints them.", left)
	}
	return b.String()
}

func counts(same, others int) string {
	var parts []string
	if same > 0 {
		parts = append(parts, fmt.Sprintf("and %d more like it", same))
	}
	if others > 0 {
		parts = append(parts, fmt.Sprintf("and %d others by the same rule", others))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}
