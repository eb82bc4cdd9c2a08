// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"strings"
	"testing"

	"github.com/actplane/actplane/policy"
	"github.com/actplane/actplane/policy/replay"
)

// FuzzReplay wants an outcome of any record, with the answers or the reason that its kind
// has.
func FuzzReplay(f *testing.F) {
	p, err := policy.Compile([]policy.Document{{Name: "p.yaml", Text: []byte(`workspace: /w
protect: ["keep"]
policy: |
  source A = file "/s/**"
  source A = endpoint "10.0.0.0/8"
  declassify A by exec "redact"
  default block bind
  rule r:
    block exec "git" "p*" if A or not B unless after exec "make" "t*" exits 0 since write "**/*.py" or lineage-includes exec "/bin/*"
    notify write "src/**" unless target modified or target "src/a"
    ask read any if A
    block connect "@private" unless target "unix:/run/*"
    allow bind "*:80"
`)}}, policy.Options{})
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range [][6]string{
		{"block", "exec", "/bin/git", "git\x00push", `block exec "git" "p*" if A`, "A"},
		{"notify", "write", "/w/src/a", "", `notify write "src/**" unless target modified`, ""},
		{"block", "write", "/w/src", "", `block write "src/*" unless target not "/x" or target not modified`, "A"},
		{"kill", "connect", "10.0.0.1:80/udp", "", `kill connect any`, "A\x00B"},
		{"block", "bind", "@x", "", "default block bind", ""},
		{"block", "exec", "(a file without a path here)", "", `block exec "{a,b}"`, ""},
		{"block", "read", "/\xff", "", `ask hold 5m read any if (A and not (B or true))`, ""},
		{"block", "unlink", "/w/keep", "", `protect: keep`, ""},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3], seed[4], seed[5], true)
	}
	f.Fuzz(func(t *testing.T, effect, operation, object, args, clause, labels string, cut bool) {
		r := &replay.Record{Effect: effect, Operation: operation, Object: object, ArgsCut: cut, Rule: "r", Clause: clause, Labels: strings.Split(labels, "\x00")}
		if args != "" {
			r.Args = strings.Split(args, "\x00")
		}
		o := replay.Replay(p.Program, r)
		n := len(o.Answers)
		if good := map[replay.Kind]bool{
			replay.Alike: n == 1, replay.Differs: n == 1, replay.Depends: n > 1, replay.Unclear: n == 0 && o.Why != "",
		}[o.Kind]; !good {
			t.Errorf("%+v: %+v", r, o)
		}
		for i, a := range o.Answers {
			if (len(a.When) == 0) != (i == 0) && o.Kind == replay.Depends {
				t.Errorf("%+v: %+v", r, o)
			}
		}
	})
}
