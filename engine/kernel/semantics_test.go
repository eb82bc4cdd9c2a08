// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
)

// Defaults hold for what no allow clause names, and a clause that denies holds
// whatever is allowed.
func TestDefaults(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, `
source SECRET = file "$D/secret"
default block exec
default block write
rule programs:
  allow exec "/bin/*"
  allow exec "tool" "status"
  allow exec "$D/sh"
  block exec "/bin/forbidden"
rule files:
  allow write "$D/out/**" if not SECRET
  block write "/dev/random"
`)
		tool, other := b.script("tool", "exit 0"), b.script("other", "exit 0")
		out, secret := b.file("out/f"), b.file("secret")
		a := b.actor()
		a.want("ok", "run", "/bin/true")
		a.want("ok", "run", tool, "-q", "status")
		a.want("EPERM", "run", tool, "push")
		a.want("EPERM", "run", other)
		if r := b.record(); r.Clause != -1 || r.Default < 0 || b.policy.Program.Defaults[b.policy.Image.Defaults[r.Default].Default].Op != r.Op {
			t.Errorf("record %+v", r)
		}
		for _, device := range []string{"null", "zero", "full"} {
			a.want("ok", "open", "/dev/"+device)
		}
		a.want("EPERM", "open", "/dev/random")
		a.want("ok", "open", out)
		a.want("ok", "put", out)
		a.want("EPERM", "create", b.dir+"/new")
		if exists(b.dir + "/new") {
			t.Error("a refused create left a file")
		}
		a.want("ok", "create", b.dir+"/out/new")
		a.want("ok", "read", secret)
		a.want("EPERM", "put", out)
		a.want("EPERM", "write", out)
		a.want("ok", "race", tool, "push", "status")
		if data, err := os.ReadFile(tool + ".ran"); err == nil && strings.Contains(string(data), "push") {
			t.Errorf("ran with %q", data)
		}
	})
}

// A declassifier clears a label and does not regain it while it runs; an integrity
// label goes with the next flow, and no file carries it.
func TestTransforms(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, `
source SECRET = file "$D/secret"
source UNTRUST = file "$D/download"
rule stay:
  block write file "$D/shared" if SECRET
rule review:
  block write file "$D/deploy" if not REVIEWED
declassify SECRET by exec "$D/bin/redact"
endorse REVIEWED by exec "$D/bin/approve"
`)
		secret, shared, deploy, download := b.file("secret"), b.file("shared"), b.file("deploy"), b.file("download")
		out := b.dir + "/out"
		redact := b.script("bin/redact", "read x < "+secret+"; echo $x > "+out+"; cat "+out+" > "+shared)
		twice := b.script("bin/twice", "read x < "+secret+"; "+redact+"; echo > "+shared)
		dirty := b.script("bin/dirty", redact+"; read x < "+secret+"; echo > "+shared)
		approve := b.script("bin/approve", "echo > "+deploy)
		late := b.script("bin/late", approve+" && echo > "+deploy)

		a := b.actor()
		a.want("ok", "read", secret)
		a.want("EPERM", "write", shared)
		a.want("ok", "run", redact)
		a.want("EPERM", "write", shared) // the child was cleared, not its parent
		b.actor().want("ok", "fork", "read", out)
		a.want("exit 1", "run", twice)
		a.want("exit 1", "run", dirty)
		c := b.actor()
		c.want("ok", "read", out)
		c.want("ok", "write", shared)

		c.want("EPERM", "write", deploy)
		c.want("ok", "run", approve)
		c.want("EPERM", "write", deploy)
		c.want("exit 1", "run", late) // the label is the child's
		tainted := b.script("bin/tainted", "exec "+approve)
		c.want("ok", "read", download)
		c.want("ok", "run", tainted)
		b.script("bin/approve", "read x < "+download+"; echo > "+deploy)
		d := b.actor()
		d.want("exit 1", "run", approve) // it has read what is not trusted since

		// A copy, or a changed one, transforms nothing.
		d.want("ok", "run", "/bin/cp", redact, b.dir+"/bin/copy")
		d.want("ok", "rename", b.dir+"/bin/copy", redact)
		d.want("ok", "read", secret)
		d.want("exit 1", "run", redact)
	})
}

// What was written inside is modified, whatever it is called.
func TestModified(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, `
rule own:
  block exec "$D/**" unless target not modified
rule tool:
  block exec "tool" "push" unless target not modified
rule given:
  block write file "$D/given/**" unless target modified
`)
		given, tool := b.file("given/f"), b.script("bin/tool", "exit 0")
		a := b.actor()
		a.want("ok", "run", tool)
		a.want("ok", "run", tool, "push")
		a.want("ok", "run", "/bin/cp", tool, b.dir+"/copy")
		a.want("EPERM", "run", b.dir+"/copy")
		a.want("ok", "rename", b.dir+"/copy", b.dir+"/bin/other")
		a.want("EPERM", "run", b.dir+"/bin/other")
		a.want("ok", "truncate", tool)
		a.want("EPERM", "run", tool)
		a.want("EPERM", "write", given)
		a.want("EPERM", "create", b.dir+"/given/new")
		a.want("ok", "create", b.dir+"/made")
		a.want("ok", "write", b.dir+"/made")
	})
}

// Listening is decided on by address and port, also when the kernel chooses the port.
func TestBind(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, `
source HERE = endpoint "127.0.0.1"
rule stay:
  block write file "$D/kept" if HERE
rule ports:
  block bind "127.0.0.1:1000-2000"
  block bind "[::1]:7"
  block bind "unix:$D/closed/*"
  block bind "unix:@closed"
`)
		if err := os.Mkdir(b.dir+"/closed", 0o755); err != nil {
			t.Fatal(err)
		}
		a := b.actor()
		a.want("EPERM", "listen", "tcp", "127.0.0.1:1500")
		if r := b.record(); r.Object != "127.0.0.1:1500" {
			t.Errorf("record %+v", r)
		}
		a.want("EPERM", "listen", "udp", "127.0.0.1:1500")
		a.want("ok", "listen", "tcp", "127.0.0.1:2500")
		a.want("EPERM", "listen", "tcp", "[::1]:7")
		a.want("EPERM", "listen", "unix", b.dir+"/closed/s")
		a.want("ok", "listen", "unix", b.dir+"/s")
		a.want("EPERM", "listen", "unix", "@closed")
		a.want("ok", "listen", "unix", "@open")
		a.want("ok", "write", b.file("kept")) // binding brings nothing in
		if _, err := net.Listen("tcp", "127.0.0.1:1500"); err != nil {
			t.Error("the host cannot listen:", err)
		}
	})
}

// A name or port that the kernel chooses is bound all the same.
func TestUnnamedBind(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		a := newBench(t, tier, "rule none:\n  block bind any\n").actor()
		a.want("EPERM", "listenunbound")
		a.want("EPERM", "bindraw", "\x01\x00")
		a.want("EPERM", "bindraw", "\x01\x00\x00")
		a.want("EPERM", "bindraw", "\x01\x00\x00x")
	})
}

// What the kernel keeps for itself is no file that a rule names.
func TestMemfd(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		newBench(t, tier, "rule none:\n  block write any\n").actor().want("ok", "memfd")
	})
}

// A record lists all clauses that match, whatever their effects, and no others.
func TestMatches(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		var many strings.Builder
		for i := range 20 {
			fmt.Fprintf(&many, "rule m%d:\n  notify read file \"$D/many\"\n", i)
		}
		b := newBench(t, tier, many.String()+`
rule told:
  notify write file "$D/**"
rule other:
  block write file "$D/other"
rule asked:
  ask write file "$D/f"
rule never:
  block write file "$D/f" unless target not modified
rule stays:
  block write file "$D/f"
  block unlink file "$D/f"
rule tree:
  notify write file "$D/d/**"
rule kept:
  block write file "$D/d/x"
`)
		rules := func(r Record) (names []string) {
			for _, number := range r.Matches {
				names = append(names, b.policy.Program.Rules[b.policy.Image.Clauses[number].Rule].Name)
			}
			return names
		}
		f := b.file("f")
		b.file("d/x")
		many20 := b.file("many")
		a := b.actor()
		for _, c := range []struct {
			answer string
			step   []string
			want   []string
		}{
			{"EPERM", []string{"write", f}, []string{"told", "asked", "stays"}},
			{"ok", []string{"write", b.file("g")}, []string{"told"}},
			{"EPERM", []string{"rename", b.dir + "/d", b.dir + "/e"}, []string{"told", "tree", "kept"}},
		} {
			a.want(c.answer, c.step...)
			if r := b.record(); !slices.Equal(rules(r), c.want) || r.MatchesCut {
				t.Errorf("%v: %v, want %v; record %+v", c.step, rules(r), c.want, r)
			}
		}
		a.want("ok", "read", many20)
		if r := b.record(); len(r.Matches) != 16 || !r.MatchesCut {
			t.Errorf("record %+v", r)
		}
	})
}
