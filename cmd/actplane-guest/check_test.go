// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	s, path := newScope(), socketPath(t)
	start(t, s, path)
	for _, test := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"read", "/nonexistent"}, 0, `read "/nonexistent" would be allowed`},
		{[]string{"write", "/nonexistent/\x1b"}, 1, `write "/nonexistent/\x1b" would be blocked, by rule "no-write": Not here.`},
		{[]string{"--json", "exec", "/bin/nonexistent", "-x"}, 0, `"allowed":true`},
		{[]string{"read"}, 2, "name an operation"},
		{[]string{"--nope"}, 2, "not defined"},
	} {
		code, out, errOut := run(t, path, "", append([]string{"check"}, test.args...)...)
		if code != test.code || !strings.Contains(out+errOut, test.says) || strings.ContainsRune(out, 0x1b) {
			t.Errorf("%q: %d %s%s", test.args, code, out, errOut)
		}
	}
	if code, _, errOut := run(t, "/nonexistent/s", "", "check", "read", "/x"); code != 3 || !strings.Contains(errOut, "not in an ActPlane scope") {
		t.Errorf("%d %s", code, errOut)
	}
}
