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

// What nobody sees can't make one argument look like another, or like two.
func TestWordShowsAll(t *testing.T) {
	for text, want := range map[string]string{
		"main\ufe0f": `"main\ufe0f"`, "main\u3164x": `"main\u3164x"`, "main\U000e0101": `"main\U000e0101"`, "a\u2800b": `"a\u2800b"`, "a\u115fb": `"a\u115fb"`,
		"a\u034f": `"a\u034f"`, "\u0301x": `"\u0301x"`, "-\u0338": `"-\u0338"`, "e\u0301": "e\u0301", "\U00013441": `"\U00013441"`, "\ufffc": `"\ufffc"`,
	} {
		if got := Word(text); got != want {
			t.Errorf("Word(%q) = %s, want %s", text, got, want)
		}
		if got := Text(Word(text)); got != want {
			t.Errorf("Text(Word(%q)) = %s", text, got)
		}
	}
	if got := Text("\u2764\ufe0f \u3164"); got != "\u2764\ufe0f \\u3164" {
		t.Errorf("%q", got)
	}
	if got := Text("\U000e0101"); got != `\U000e0101` {
		t.Error(got)
	}
}

func TestExact(t *testing.T) {
	for want, list := range map[string][]string{
		"git push": {"git", "push"},
		`a "b c"`:  {"a", "b c"},
		"git m\u0430in, in ASCII git \"m\\u0430in\"": {"git", "m\u0430in"},
		"/usr\u2215bin, in ASCII \"/usr\\u2215bin\"": {"/usr\u2215bin"},
		`"\u3164"`: {"\u3164"},
		"\u05d0 1 \u05d1, in ASCII \"\\u05d0\" 1 \"\\u05d1\"": {"\u05d0", "1", "\u05d1"},
	} {
		if got := Exact(list...); got != want {
			t.Errorf("%q: %s, want %s", list, got, want)
		}
	}
}
