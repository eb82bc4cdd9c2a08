// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/actplane/actplane/policy/diag"
)

// TestAbove: of a document that is a part of a larger file every line that is named is one
// of that file, as if the lines above were in the text.
func TestAbove(t *testing.T) {
	const above = 700
	numbers := regexp.MustCompile(`p\.yaml:(\d+)|\bline (\d+)`)
	for _, text := range []string{
		"policy: |\n  source A = exec \"a\"\n  rule x:\n    block write \"a\" if AA\n",
		"policy:\n  rule x:\n    block write \"a\"\n",
		"protect: [a\npolicy: |\n  rule x: block any\n",
		"policy: |\n  rule x:\n    block write \"a\"\n  rule x:\n    block write \"a\" unless target \"a\"\n",
		"limits: {pids: x}\nworkspace: rel\n",
		"version 1\npolicy: |\n  rule x: block write \"a\"\n",
		"protect: [*a]\n",
		"policy: |\n  rule x:\n    block write \"a\" unless target \"a\"\n",
	} {
		_, err := Compile([]Document{{Name: "p.yaml", Text: []byte(text), Above: above}}, Options{Enforce: true})
		_, padded := Compile([]Document{{Name: "p.yaml", Text: []byte(strings.Repeat("\n", above) + text)}}, Options{Enforce: true})
		var list, want diag.List
		if errors.As(err, &list) != errors.As(padded, &want) || len(list) != len(want) {
			t.Fatalf("%v\n%v", err, padded)
		}
		for i := range list {
			if list[i] != want[i] {
				t.Errorf("%+v\n%+v", list[i], want[i])
			}
			for _, m := range numbers.FindAllStringSubmatch(list[i].Message+list[i].Hint, -1) {
				if n, _ := strconv.Atoi(m[1] + m[2]); n <= above {
					t.Errorf("%q: %s; %s", text, list[i].Message, list[i].Hint)
				}
			}
		}
	}
}
