// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"strings"
	"testing"

	eyes "github.com/actplane/actplane/internal/plain"
)

// visible tells whether a character is seen where a mark could stand, too.
func visible(r rune) bool {
	var eye eyes.Eye
	return eye.Sees('a') && eye.Sees(r)
}

// No name changes the quotation mark before it, or has parts that nobody sees.
func TestQuoteMarks(t *testing.T) {
	for name, want := range map[string]string{
		"\u0338x": `"\u0338x"`, "/\u20dd": `"/\u20dd"`, "a\u2800b": `"a\u2800b"`, "e\u0301": "\"e\u0301\"",
		"a" + strings.Repeat("\u0301", 5): "\"a" + strings.Repeat("\u0301", 4) + `\u0301"`,
	} {
		if got := quote(name, 240); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
}
