// SPDX-License-Identifier: Apache-2.0

package pattern

import (
	"strings"
	"testing"
)

// FuzzCanonical wants of any pattern that its canonical text is one, means itself
// wherever the workspace is, and has elements.
func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{
		"/a/**", "**/x", "src/{a,b}/*.go", "[!a-c]é?", `\*`, "git", "~/x", "$HOME", "a/../b", "{a/b,c}", "[]a]",
		"10.0.0.0/8:80", "[fd00::/8]:443", "@private", "*.github.com:1-80", "{a,b}.io", "unix:/run/*.sock", "unix:@x", "localhost", "10.0.", "*",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 200 {
			return
		}
		if c, _, err := File(text, "/w"); err == nil {
			again, relative, err := File(c, "/other")
			if err != nil || again != c || relative {
				t.Fatalf("file pattern %q: %q becomes %q, %v", text, c, again, err)
			}
			if _, err := Glob(c, Path); err != nil {
				t.Fatalf("file pattern %q: %q is no glob: %v", text, c, err)
			}
		}
		if c, _, err := Exec(text, "/w"); err == nil {
			if again, _, err := Exec(c, "/other"); err != nil || again != c {
				t.Fatalf("exec pattern %q: %q becomes %q, %v", text, c, again, err)
			}
		}
		e, err := ParseEndpoint(text, "/w")
		if err != nil {
			return
		}
		again, err := ParseEndpoint(e.Text, "/other")
		if err != nil || again.Text != e.Text || again.Host != e.Host || again.Relative {
			t.Fatalf("endpoint %q: %q becomes %q, %v", text, e.Text, again.Text, err)
		}
		// A port of anything is one of addresses and of names.
		anything := strings.HasPrefix(e.Text, "*:")
		addresses, names, sockets := len(e.Addresses()) > 0, len(e.Names()) > 0, len(e.Unix) > 0
		if !addresses && !names && !sockets || addresses && names != anything || names != (e.Host || anything) {
			t.Fatalf("endpoint %q (%q) has addresses %t, names %t and sockets %t", text, e.Text, addresses, names, sockets)
		}
	})
}
