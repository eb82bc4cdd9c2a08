// SPDX-License-Identifier: Apache-2.0

package pattern

import (
	"errors"
	"strings"
	"testing"
)

func TestCanonical(t *testing.T) {
	for _, c := range []struct{ in, file, exec string }{
		{"/a/b", "/a/b", "/a/b"},
		{"a", "/w/a", "a"},
		{"a*", "/w/a*", "a*"},
		{"./a//b/../c", "/w/a/c", "/w/a/c"},
		{"../x", "/x", "/x"},
		{"/../x", "/x", "/x"},
		{"/", "/", "/"},
		{"**/x", "/**/x", "/**/x"},
		{"**", "/**", "**"},
		{"**.env", "/**.env", "**.env"},
		{"{a,b}", "{/w/a,/w/b}", "{a,b}"},
		{"/x/{a,./b}/c", "{/x/a/c,/x/b/c}", "{/x/a/c,/x/b/c}"},
		{"{/a,b/c}", "{/a,/w/b/c}", "{/a,/w/b/c}"},
		{`{/a\,b,/[,{]}`, `{/a\,b,/[,{]}`, `{/a\,b,/[,{]}`},
		{"/{}", `/\{\}`, `/\{\}`},
		{`/a\*b`, `/a\*b`, `/a\*b`},
		{`\~x`, `/w/\~x`, `\~x`},
		{"a$", "/w/a$", "a$"},
		{"/a/[x/y]/b", "/a/[x/y]/b", "/a/[x/y]/b"},
	} {
		file, _, err := File(c.in, "/w")
		if err != nil || file != c.file {
			t.Errorf("file %q: %q, %v, want %q", c.in, file, err, c.file)
		}
		if again, relative, err := File(file, "/other"); err != nil || again != file || relative {
			t.Errorf("file %q is not canonical: %q, %v", file, again, err)
		}
		exec, _, err := Exec(c.in, "/w")
		if err != nil || exec != c.exec {
			t.Errorf("exec %q: %q, %v, want %q", c.in, exec, err, c.exec)
		}
	}
	if got, relative, err := File("x", `/a[1]{b}*`); err != nil || got != `/a\[1\]\{b\}\*/x` || !relative {
		t.Errorf("a workspace with wildcards: %q, %t, %v", got, relative, err)
	}
}

func TestEndpointText(t *testing.T) {
	for in, want := range map[string]string{
		"*": "*", "*:80": "*:80", "10.": "10.0.0.0/8", "10.1.": "10.1.0.0/16", "10.1.2.": "10.1.2.0/24",
		"10.1.2.3/8": "10.0.0.0/8", "10.1.2.3/32": "10.1.2.3", "10.1.2.3:80-80": "10.1.2.3:80", "::1": "[::1]",
		"[FD00:0::1]:80": "[fd00::1]:80", "fd00::/8": "[fd00::/8]", "[fd00::]/8": "[fd00::/8]", "[fd00::]/8:1-2": "[fd00::/8]:1-2",
		"::ffff:10.0.0.1": "10.0.0.1", "::ffff:10.0.0.0/104": "10.0.0.0/8", "@public:1-65535": "@public:1-65535",
		"github.com": "github.com", "*.GitHub.com.:443": "*.github.com:443", "LocalHost:80": "@loopback:80", "{a,b}.io": "{a,b}.io",
		"unix:/run/x": "unix:/run/x", "unix:x": "unix:/w/x", "unix:@x*": "unix:@x*", "unix:*": "unix:*",
	} {
		e, err := ParseEndpoint(in, "/w")
		if err != nil || e.Text != want {
			t.Errorf("%s: %q, %v, want %q", in, e.Text, err, want)
			continue
		}
		if again, err := ParseEndpoint(e.Text, "/other"); err != nil || again.Text != e.Text {
			t.Errorf("%q is not canonical: %q, %v", e.Text, again.Text, err)
		}
	}
}

func TestEndpointErrors(t *testing.T) {
	for in, want := range map[string]ErrorKind{
		"": NeverMatches, "10.0.0.0/33": BadAddress, "10.0.0.0/08": BadAddress, "x:90-80": BadPort, "1.2.3.4:0": BadPort,
		"1.2.3.4:1-": BadPort, "[::1]:": BadPort, "@x": UnknownSet, "@any": UnknownSet, ".x.org": BadAddress, "a..b": BadAddress,
		"münchen.de": BadAddress, "a b": BadAddress, "a_b/c": BadAddress, "{a,b.c": BadGlob, "01.2.3.4": BadAddress, "1.2.3.4.5": BadAddress, "/run/x.sock": BadAddress, "unix:": NeverMatches,
		"unix:~/x": NotExpanded, "http://x": BadAddress, "[::1": BadAddress, "[::1%lo]": BadAddress, "010.": BadAddress,
	} {
		_, err := ParseEndpoint(in, "/w")
		var e *Error
		if !errors.As(err, &e) || e.Kind != want {
			t.Errorf("%q: %v, want kind %d", in, err, want)
		}
	}
}

// TestPartition: the four sets meet nowhere and leave nothing out.
func TestPartition(t *testing.T) {
	rest := []addrRange{{hi: allOnes()}}
	for _, name := range []string{"@loopback", "@private", "@linklocal", "@public"} {
		set, ok := lookupSet(name)
		if !ok {
			t.Fatal(name)
		}
		for _, r := range set {
			if left := subtract([]addrRange{r}, rest); len(left) != 0 {
				t.Errorf("%s has addresses of another set: %v", name, left)
			}
		}
		rest = subtract(rest, set)
	}
	if len(rest) != 0 {
		t.Errorf("in no set: %v", rest)
	}
}

// What braces expand to is counted as it is expanded.
func TestExpanded(t *testing.T) {
	for _, text := range []string{"", "abc", "a{b,cd}e", "{a,b}{c,d}{e,}", "{a,{b,c}d}x{,}", `\{a,b}`, "{x}", "{x{a,b}}", "[{,}]{a,b}", "a{b", strings.Repeat("{a,b}", 10)} {
		list, err := expand(text)
		want := alternativeBytes + len(text)
		if err == nil {
			want = alternativeBytes*len(list) + len(strings.Join(list, ""))
		}
		if got := Expanded(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
	for _, text := range []string{strings.Repeat("{a,b}", 12000), strings.Repeat("{,}", 20000), strings.Repeat("{a,", 16) + strings.Repeat("}", 16)} {
		if n := Expanded(text); n < 0 || n > 1<<40 {
			t.Errorf("%.20q: %d", text, n)
		}
	}
}
