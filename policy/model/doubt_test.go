// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"strings"
	"testing"

	"github.com/actplane/actplane/policy/model"
)

// A host has addresses, which a trace does not tell: that is said where they would
// decide, and nowhere else.
func TestDoubts(t *testing.T) {
	for _, c := range []struct{ name, policy, step, want string }{
		{"a set", `rule r: block connect "@public"`, "a connect x.org:443 ok", "`rule"},
		{"all of IPv4", `rule r: block connect "0.0.0.0/0"`, "a send x.org:443/udp ok", "does not match"},
		{"one with a port", `rule r: block connect "10.0.0.1:443"`, "a connect x.org:443 ok", "does not match"},
		{"another port", `rule r: block connect "10.0.0.1:80"`, "a connect x.org:443 ok", ""},
		{"another operation", `rule r: block bind "@public"`, "a connect x.org:443 ok", ""},
		{"an address", `rule r: block connect "@public"`, "a connect 10.0.0.1:443 ok", ""},
		{"no stricter", "rule q: block connect \"*.org\"\nrule r: block connect \"@public\"", "a connect x.org:443 block", ""},
		{"stricter", "rule q: block connect \"*.org\"\nrule r: kill connect \"@public\"", "a connect x.org:443 block", "`kill"},
		{"a label it has not", "source A = file \"/a\"\nrule r: block connect \"@public\" if A", "a connect x.org:443 ok", ""},
		{"an excuse", `rule r: block connect "@public" unless target "*.org"`, "a connect x.org:443 ok", ""},
		{"no excuse", `rule r: block connect any unless target "@private"`, "a connect x.org:443 block", "`target \"@private\"` does not excuse it"},
		{"what lifts", "default block connect\nrule r: allow connect \"@private\"", "a connect x.org:443 block", "`allow"},
		{"an allow without a default", `rule r: allow connect "@private"`, "a connect x.org:443 ok", ""},
		{"a source", "source A = endpoint \"@public\"\nrule r: block write any if A", "a recv x.org:443 ok", "does not give its label"},
		{"metadata", `rule r: block connect "@metadata"`, "a connect x.org:443 ok", ""},
		{"by name", `rule r: block connect "x.org"`, "a connect y.org:443 ok", ""},
		{"a port of any", `rule r: block connect "*:443"`, "a connect x.org:80 ok", ""},
		{"a socket", `rule r: block connect "unix:*"`, "a connect x.org:80 ok", ""},
		{"one that fails", `rule r: block connect "@public"`, "a connect x.org:443 block", ""},
	} {
		cases, err := model.ParseCases("f", "== a\npolicy:\n  "+strings.ReplaceAll(c.policy, "\n", "\n  ")+"\ntrace:\n  "+c.step+"\n")
		if err != nil {
			t.Fatal(err)
		}
		doubts := model.Doubts(program(t, &cases[0]), &cases[0])
		switch {
		case c.want == "" && len(doubts) > 0:
			t.Errorf("%s: %v", c.name, doubts)
		case c.want != "" && (len(doubts) != 1 || !strings.Contains(doubts[0].Text, strings.Replace(c.want, "`rule", "`block", 1))):
			t.Errorf("%s: %v, want %q", c.name, doubts, c.want)
		}
	}
}
