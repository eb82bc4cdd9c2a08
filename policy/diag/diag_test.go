// SPDX-License-Identifier: Apache-2.0

package diag

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode"
)

func TestText(t *testing.T) {
	text := NewText("f", []byte("a\té = \"漢字\" \x1b[2Jx\r\nlast"))
	at := strings.Index(string(text.Body), "=")
	d := text.New(UndeclaredLabel, Span{at, at + 1}, "no %s", "sign").WithHint("put one")
	var b strings.Builder
	if err := (List{d}).WriteText(&b); err != nil {
		t.Fatal(err)
	}
	want := "f:1:5: error[P203]: no sign\n" +
		"  1 | a       é = \"漢字\" ·[2Jx\n" +
		"    |           ^\n" +
		"  hint: put one\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
	if p := text.Pos(len(text.Body)); p != (Pos{2, 5}) {
		t.Errorf("the end is at %v", p)
	}
	if got := text.Offset(Pos{1, 5}); got != at {
		t.Errorf("offset %d, want %d", got, at)
	}
}

// TestLongLines: a caret far to the right is still under its character, and a
// span ends with its line.
func TestLongLines(t *testing.T) {
	line := strings.Repeat("x", 300) + "HERE" + strings.Repeat("y", 300)
	text := NewText("f", []byte(line+"\nnext"))
	var b strings.Builder
	if err := (List{text.New(Unexpected, Span{300, 304}, "m")}).WriteText(&b); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	shown, caret := []rune(lines[1]), []rune(lines[2])
	at := strings.IndexRune(string(caret), '^')
	if string(shown[at:at+4]) != "HERE" || !strings.HasSuffix(string(caret), "^~~~") {
		t.Errorf("the caret is elsewhere:\n%s", b.String())
	}
	if len(shown) > 180 {
		t.Errorf("%d characters shown", len(shown))
	}
	if d := text.New(Unexpected, Span{600, len(text.Body)}, "m"); d.Length != 4 {
		t.Errorf("length %d, want 4", d.Length)
	}
}

func TestTidy(t *testing.T) {
	text := NewText("b", []byte("one two\nthree"))
	other := NewText("a", []byte("x"))
	l := List{
		text.New(Unexpected, Span{8, 9}, "third"),
		text.New(Unexpected, Span{4, 5}, "second, on the line of the first"),
		text.New(MixedAndOr, Span{5, 6}, "a warning, on the line of the first"),
		other.New(MixedAndOr, Span{0, 1}, "a warning, on the line of an error after it"),
		text.New(Unexpected, Span{0, 1}, "first"),
		text.New(Unexpected, Span{0, 1}, "first"),
		other.New(Unexpected, Span{0, 1}, "of another file"),
	}
	var got []string
	for _, d := range l.Tidy() {
		got = append(got, d.Message)
	}
	if s := strings.Join(got, "; "); s != "of another file; first; third" {
		t.Errorf("got %s", s)
	}
	if l.Errors() != 5 || l.First().Message != "third" {
		t.Errorf("%d errors, first %v", l.Errors(), l.First())
	}
	var err error = l
	var list List
	if !errors.As(err, &list) || !strings.Contains(err.Error(), "and 4 more") {
		t.Errorf("as an error: %v", err)
	}
	if (List{}).First() != (Diagnostic{}) {
		t.Error("an empty list has a first diagnostic")
	}
}

func TestJSON(t *testing.T) {
	text := NewText("f", []byte("<x>"))
	encoded, err := json.Marshal(List{text.New(MixedAndOr, Span{1, 2}, "m")})
	if err != nil {
		t.Fatal(err)
	}
	var got []map[string]any
	if err := json.Unmarshal(encoded, &got); err != nil {
		t.Fatal(err)
	}
	if got[0]["severity"] != "warning" || got[0]["source"] != "<x>" || got[0]["col"] != 2.0 {
		t.Errorf("got %v", got)
	}
}

// TestVisible: nothing in a diagnostic acts on a terminal, wherever it comes from.
func TestVisible(t *testing.T) {
	const acts = "\x1b\x07\x7f\u0085\u009b\u00ad\u061c\u200b\u200e\u2028\u2029\u202e\u2066\ufeff\U000e0041"
	d := NewText("f"+acts, []byte("x"+acts+"y")).New(Unexpected, Span{0, 1}, "m%s", acts).WithHint("h%s", acts)
	var b strings.Builder
	if err := (List{d}).WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, r := range b.String() {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Errorf("%U in %q", r, b.String())
		}
	}
	if strings.ContainsAny(d.String()+(List{d}).Error(), acts) {
		t.Errorf("as an error: %q", d)
	}
}

func TestSuggest(t *testing.T) {
	words := []string{"exec", "open", "policy", "workspace", "no_new_privileges"}
	for word, want := range map[string]string{
		"exce": "exec", "EXEC": "exec", "polcy": "policy", "plicy": "policy", "workspcae": "workspace", "ex": "",
		"no_new_privs": "", "x": "", "": "", "exec": "", "no_new_privilege": "no_new_privileges", strings.Repeat("a", 1000): "",
	} {
		if got := Suggest(word, words); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}

func TestCodes(t *testing.T) {
	last := Code("")
	for _, c := range Codes() {
		if c.Code <= last || c.Title == "" {
			t.Errorf("%s after %s", c.Code, last)
		}
		last = c.Code
		if (c.Code.Severity() == Warning) != strings.HasPrefix(string(c.Code), "P3") {
			t.Errorf("%s is a %s", c.Code, c.Code.Severity())
		}
	}
}
