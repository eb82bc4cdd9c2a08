// SPDX-License-Identifier: Apache-2.0

package syntax

import (
	"os"
	"strings"
	"testing"
)

// TestWordsAreExplained: docs/language.md has every word of the language, in its
// grammar or among what is refused.
func TestWordsAreExplained(t *testing.T) {
	text, err := os.ReadFile("../../docs/language.md")
	if err != nil {
		t.Fatal(err)
	}
	_, grammar, _ := strings.Cut(string(text), "\n## The text\n\n```\n")
	grammar, rest, ok := strings.Cut(grammar, "```")
	_, refused, there := strings.Cut(rest, "Read, and refused always")
	if !ok || !there {
		t.Fatal("no grammar, or nothing about what is refused")
	}
	refused, _, _ = strings.Cut(refused, "\n")
	for _, list := range [][]string{effectWords, opWords, kindWords, declWords, condWords, otherWords} {
		for _, word := range list {
			if !strings.Contains(grammar, `"`+word+`"`) && !strings.Contains(refused, word) {
				t.Errorf("%q is not explained", word)
			}
		}
	}
}
