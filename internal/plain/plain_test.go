// SPDX-License-Identifier: Apache-2.0

package plain

import "testing"

func TestWord(t *testing.T) {
	for text, want := range map[string]string{
		"git": "git", "": `""`, "a b": `"a b"`, `a"b`: `"a\"b"`, `\x1b`: `"\\x1b"`, "\x1b[2J": `"\x1b[2J"`,
		"é漢": "é漢", "\u202egpj": `"\u202egpj"`, "\xff": `"\xff"`, "a\nb": `"a\x0ab"`, "\u009b": `"\u009b"`, "\u2028": `"\u2028"`,
	} {
		if got := Word(text); got != want {
			t.Errorf("Word(%q) = %s, want %s", text, got, want)
		}
	}
	if got := Words([]string{"a", "", "b c"}); got != `a "" "b c"` {
		t.Error(got)
	}
	if got := Lines("a\x1b\nb\r\n"); got != "a\\x1b\nb\\x0d\n" {
		t.Errorf("%q", got)
	}
}
