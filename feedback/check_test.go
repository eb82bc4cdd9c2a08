// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	path := serve(t, newFakeScope(), nil)
	for _, test := range []struct {
		body string
		code int
		says string
	}{
		{`{"operation":"write","object":"/x\u001b"}`, 200, `"message":"ActPlane policy: write \"/x\\x1b\" would be blocked, by rule \"r\": No."`},
		{`{"operation":"write","object":""}`, 400, "no object"},
		{`{"operation":"write","objects":"/x"}`, 400, "not of the form"},
		{`{"operation":"write","object":"/x","depth":9}`, 400, "no ancestor"},
		{`{"operation":"exec","object":"/x","args":[` + strings.Repeat(`"a",`, maxCheckArgs) + `"a"]}`, 400, "too many"},
		{`{"object":"` + strings.Repeat("x", maxCheckBody) + `"}`, 413, "too long"},
	} {
		if code, text := request(t, path, "POST", "/v1/check", test.body); code != test.code || !strings.Contains(text, test.says) {
			t.Errorf("%.80s: %d %s", test.body, code, text)
		}
	}
}

func TestCheckedInWords(t *testing.T) {
	for effect, says := range map[Effect]string{
		Allow: "would be allowed: no rule", Notify: "would be allowed and noted, by rule", Ask: "would need a person's approval, by rule",
		Block: "would be blocked, by rule", Kill: "would be blocked and its process killed, by rule",
	} {
		c := NewChecked(CheckRequest{}, Item{Effect: effect, Operation: "read", Object: "/x", Rule: "r"})
		if !strings.Contains(c.Message, says) || c.Allowed != (effect == Allow || effect == Notify) {
			t.Errorf("%s: %+v", effect, c)
		}
	}
}

func TestResolveObject(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/real", nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir+"/d", 0o755); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"link": "real", "l": "d"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	for _, test := range []struct{ operation, object, want string }{
		{"read", dir + "/link", dir + "/real"},
		{"unlink", dir + "/link", dir + "/link"},
		{"write", dir + "/l/new", dir + "/d/new"},
		{"write", dir + "/none/new", dir + "/none/new"},
		{"exec", "link", dir + "/real"},
		{"connect", "10.0.0.1:80", "10.0.0.1:80"},
		{"bind", "unix:@x", "unix:@x"},
	} {
		if got := ResolveObject(test.operation, test.object); got != test.want {
			t.Errorf("%s %s: %s, want %s", test.operation, test.object, got, test.want)
		}
	}
}
