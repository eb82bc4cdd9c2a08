// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"encoding/base64"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/actplane/actplane/internal/testenv"
)

func TestParseSigners(t *testing.T) {
	signer := newSigner(t)
	key := strings.TrimSpace(line(signer, ""))
	fields := strings.Fields(key)
	good := []string{
		"", "# a comment", "  \t", "alice " + key, "\talice\t" + strings.ReplaceAll(key, " ", "\t") + "\ta comment, \"with\" all\r",
		`"alice smith" ` + key, `a,!b,c* namespaces="a\"b, c" ` + key, `a VALID-AFTER="20260101",Namespaces="x" ` + key,
		`a valid-after="20260101Z",valid-before="20260101000000Z" ` + key, `a valid-before="202612312359" ` + key,
	}
	parsed, err := ParseSigners("f", []byte(strings.Join(good, "\n")), time.UTC)
	if err != nil || len(parsed.lines) != 7 {
		t.Fatalf("%v, %v", parsed, err)
	}
	if got := parsed.lines[2].principals; got != "alice smith" {
		t.Errorf("principals %q", got)
	}
	if got := parsed.lines[3].namespaces; got != `a"b, c` {
		t.Errorf("namespaces %q", got)
	}
	for text, says := range map[string]string{
		"alice":                       "it has no key",
		"alice ssh-ed25519":           "it has no key",
		"alice ssh-ed25519 AAAA":      `its key, of the type "ssh-ed25519", cannot be read`,
		"alice ssh-rsa " + fields[1]:  `its key, of the type "ssh-rsa", cannot be read`,
		"alice " + fields[1]:          "it has no key",
		"\ufeffalice " + key:          "it begins with a byte order mark",
		"\ufeff# a comment":           "it begins with a byte order mark",
		"al\ufeffice " + key:          "a control character, or another one that is not seen",
		"al\x00ice " + key:            "a control character",
		"al\x1bice " + key:            "a control character",
		"\u202ealice " + key:          "a control character, or another one that is not seen",
		"al\xffice " + key:            "bytes that are no UTF-8",
		key:                           "it has no key", // the principals are missing
		`"alice ` + key:               "a quotation mark is not closed",
		`"" ` + key:                   "names no principals",
		"alice cert-authority " + key: "cert-authority is not supported by this version: name the keys themselves",
		`alice Cert-Authority,namespaces="x" ` + key:                   "cert-authority is not supported",
		`alice no-touch-required=x ` + key:                             "its value is not in quotation marks",
		`alice verify-required="x" ` + key:                             `option "verify-required" is not known`,
		`alice namespaces="x",namespaces="y" ` + key:                   "is there twice",
		`alice namespaces="x", ` + key:                                 "end with a comma",
		`alice namespaces="x"y ` + key:                                 "something follows its value",
		`alice namespaces="x ` + key:                                   "a quotation mark is not closed",
		`alice namespaces="" ` + key:                                   `write namespaces="actplane-policy"`,
		`alice namespaces ` + key:                                      `write namespaces="actplane-policy"`,
		`alice namespaces=x ` + key:                                    "not in quotation marks",
		`alice ,namespaces="x" ` + key:                                 `option "" is not known`,
		`alice valid-after="2026" ` + key:                              "is not of the form YYYYMMDD[Z]",
		`alice valid-after="20261301" ` + key:                          "is not of the form",
		`alice valid-before="20260230" ` + key:                         "is not of the form",
		`alice valid-before="20260101ZZ" ` + key:                       "is not of the form",
		`alice valid-before="19600101" ` + key:                         "is not of the form",
		`alice valid-after="20260102",valid-before="20260101" ` + key:  "valid-before is before valid-after",
		line(rsaSigner(t, 1024), "alice"):                              "has 1024 bits",
		"alice ssh-dss " + base64.StdEncoding.EncodeToString(dsaKey()): "is a DSA key",
		line(certified(t, signer), "alice"):                            "is a certificate",
		strings.Repeat("a", maxPatterns+1) + " " + key:                 "longer than 1024 bytes",
	} {
		_, err := ParseSigners("f", []byte("# one\n"+text+"\n"), time.UTC)
		if err == nil || !strings.HasPrefix(err.Error(), "f: line 2: ") || !strings.Contains(err.Error(), says) {
			t.Errorf("%s:\n%v, want %q", text, err, says)
		}
	}
	if _, err := ParseSigners("f", make([]byte, MaxSigners+1), time.UTC); err == nil || !strings.Contains(err.Error(), "larger than 1 MiB") {
		t.Error(err)
	}
}

// Times are in the host's zone unless they end in a Z.
func TestZone(t *testing.T) {
	zone := time.FixedZone("", 3600)
	signer := newSigner(t)
	for text, want := range map[string]string{
		"20260501": "2026-04-30T23:00:00Z", "20260501Z": "2026-05-01T00:00:00Z",
		"202605011234": "2026-05-01T11:34:00Z", "20260501123456Z": "2026-05-01T12:34:56Z",
	} {
		parsed, err := ParseSigners("f", []byte(line(signer, `a valid-after="`+text+`"`)), zone)
		if err != nil {
			t.Fatal(err)
		}
		if got := parsed.lines[0].after.UTC().Format(time.RFC3339); got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
}

// The line that comes nearest is told of; any that holds counts.
func TestFind(t *testing.T) {
	signer := newSigner(t)
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	old := line(signer, `alice valid-before="20250101Z"`)
	for _, test := range []struct{ signers, identity, principals, says string }{
		{line(signer, "alice"), "", "alice", ""},
		{line(signer, "alice"), "alice", "alice", ""},
		{line(signer, "alice"), "bob", "", `f:1: the ED25519 key`},
		{line(signer, "bob") + old, "alice", "", "f:2: the ED25519 key"},
		{old + line(signer, "bob"), "alice", "", "has expired: it was valid until 2025-01-01T00:00:00Z"},
		{old + line(signer, "al*"), "alice", "al*", ""},
		{old + line(signer, `alice namespaces="git"`) + line(signer, `alice namespaces="actplane-*"`), "", "alice", ""},
		{line(signer, "*,!alice"), "alice", "", `is for "*,!alice", not for "alice"`},
		{line(signer, "*,!alice"), "bob", "*,!alice", ""},
		{line(newSigner(t), "alice"), "alice", "", "f does not name the ED25519 key SHA256:"},
	} {
		parsed, err := ParseSigners("f", []byte(test.signers), time.UTC)
		if err != nil {
			t.Fatal(err)
		}
		principals, err := parsed.Find(signer.PublicKey(), test.identity, now)
		if principals != test.principals || (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%q, %q: %q, %v", test.signers, test.identity, principals, err)
		}
	}
}

// TestMatchPattern compares with a matcher that tries everything.
func TestMatchPattern(t *testing.T) {
	random := rand.New(rand.NewPCG(testenv.Seed(t), 0))
	word := func(letters string) string {
		var b strings.Builder
		for range random.IntN(8) {
			b.WriteByte(letters[random.IntN(len(letters))])
		}
		return b.String()
	}
	matches := 0
	for range 200_000 {
		pattern, text := word("ab*?"), word("abc")
		want := naive(pattern, text)
		if want {
			matches++
		}
		if got := matchPattern(pattern, text); got != want {
			t.Fatalf("%q on %q: %v", pattern, text, got)
		}
	}
	if matches < 1000 {
		t.Errorf("only %d match", matches)
	}
	began := time.Now()
	if matchPattern(strings.Repeat("*a", 500)+"b", strings.Repeat("a", 10_000)) || time.Since(began) > time.Second {
		t.Errorf("it took %v", time.Since(began))
	}
}

func naive(pattern, text string) bool {
	switch {
	case pattern == "":
		return text == ""
	case pattern[0] == '*':
		return naive(pattern[1:], text) || text != "" && naive(pattern, text[1:])
	}
	return text != "" && (pattern[0] == '?' || pattern[0] == text[0]) && naive(pattern[1:], text[1:])
}

func FuzzParseSigners(f *testing.F) {
	signer := newSigner(f)
	for _, before := range []string{"alice", `"a b" namespaces="x\"y",valid-after="20260101Z"`, "a cert-authority", `a valid-before=`} {
		f.Add(before, line(signer, before))
	}
	f.Fuzz(func(t *testing.T, _, text string) {
		parsed, err := ParseSigners("f", []byte(text), time.UTC)
		if err != nil {
			return
		}
		for _, l := range parsed.lines {
			if l.principals == "" || Usable(l.key) != nil {
				t.Errorf("line %d: %+v", l.number, l)
			}
		}
		_, _ = parsed.Find(signer.PublicKey(), "alice", time.Unix(1, 0))
	})
}
