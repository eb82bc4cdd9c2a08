// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// A directory that is renamed is decided on by what it does to the names below it.
func TestTree(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, `
source SECRET = file "$D/keys/*.txt"
rule keep:
  block write file "$D/src/**/*.cfg"
  block write file "**/*.go" if SECRET
rule lib:
  kill unlink "$D/gone/*/*"
rule fresh:
  block exec "after" unless after exec "before" since write "$D/code/a/*"
`)
		for _, dir := range []string{"src/a", "keys", "tmp/x", "gone/g", "code/a", "free"} {
			b.file(dir + "/f")
		}
		before, after := b.script("bin/before", "exit 0"), b.script("bin/after", "exit 0")
		a := b.actor()
		// A pattern that the directory itself does not match.
		a.want("EPERM", "rename", b.dir+"/src", b.dir+"/s2")
		if r := b.record(); b.policy.Program.Rules[b.policy.Image.Clauses[r.Clause].Rule].Name != "keep" || r.Object != b.dir+"/src" {
			t.Errorf("record %+v", r)
		}
		a.want("EPERM", "rename", b.dir+"/free", b.dir+"/src/a/free")
		a.want("ok", "rename", b.dir+"/src/a", b.dir+"/src/b")
		// A source.
		a.want("EPERM", "rename", b.dir+"/keys", b.dir+"/k2")
		b.record()
		if r := b.record(); r.Clause != -1 || r.Label != 0 {
			t.Errorf("record %+v", r)
		}
		a.want("EPERM", "exchange", b.dir+"/free", b.dir+"/keys")
		a.want("ok", "rename", b.dir+"/tmp/x", b.dir+"/tmp/y")
		// Gates.
		a.want("EPERM", "run", after)
		a.want("ok", "run", before)
		a.want("ok", "run", after)
		a.want("ok", "rename", b.dir+"/tmp/y", b.dir+"/tmp/x")
		a.want("ok", "run", after)
		a.want("ok", "rename", b.dir+"/code/a", b.dir+"/code/b")
		a.want("EPERM", "run", after)
		a.want("ok", "run", before)
		a.want("ok", "rename", b.dir+"/code", b.dir+"/code2")
		a.want("EPERM", "run", after)
		// What is killed is killed, whatever the other name says.
		a.want("ok", "rename", b.dir+"/gone/g", b.dir+"/gone/h")
		a.want("dead", "rename", b.dir+"/gone", b.dir+"/src/a")
	})
}

// A directory that only one place's allow excepts from a default.
func TestTreeDefault(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, `
default block unlink
rule out:
  allow unlink "$D/out/**"
`)
		b.file("out/a/f")
		b.file("other/f")
		a := b.actor()
		a.want("ok", "rename", b.dir+"/out/a", b.dir+"/out/b")
		a.want("EPERM", "rename", b.dir+"/out", b.dir+"/other")
		if r := b.record(); r.Default != 0 {
			t.Errorf("record %+v", r)
		}
	})
}

// A directory under another mount has other names there.
func TestTreeMounts(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, `
rule keep:
  block write file "$D/seen/src/*/f"
`)
		b.file("real/src/a/f")
		b.bind("real", "seen")
		a := b.actor()
		a.want("EPERM", "rename", b.dir+"/real/src", b.dir+"/real/s2")
		a.want("ok", "rename", b.dir+"/real/src/a", b.dir+"/real/src/b")
	})
}

// What is below a directory that was renamed inside was named inside.
func TestNamedBelow(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, `
rule fresh:
  block exec "after" unless after exec "before"
`)
		b.script("d/bin/before", "exit 0")
		after := b.script("bin/after", "exit 0")
		a := b.actor()
		a.want("ok", "rename", b.dir+"/d", b.dir+"/e")
		a.want("ok", "run", b.dir+"/e/bin/before")
		a.want("EPERM", "run", after)
		a.want("ok", "run", b.script("g/before", "exit 0"))
		a.want("ok", "run", after)
	})
}

// bind mounts one directory of the test's over another.
func (b *bench) bind(from, to string) {
	b.t.Helper()
	from, to = b.dir+"/"+from, b.dir+"/"+to
	if err := os.MkdirAll(to, 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		if err := unix.Unmount(to, unix.MNT_DETACH); err != nil {
			b.t.Error(err)
		}
	})
}

// What is protected stays as it is, by whatever name.
func TestProtect(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBenchOf(t, tier, `
protect:
  - "RULES.md"
  - {path: "conf/**", if: AGENT}
  - "seen/kept"
policy: |
  source AGENT = file "$D/mark"
  rule none:
    notify write "$D/noted"
`)
		rules, conf, mark := b.file("RULES.md"), b.file("conf/a/f"), b.file("mark")
		b.file("real/kept")
		b.bind("real", "seen")
		first := b.dir + "/first"
		if err := os.Link(rules, first); err != nil {
			t.Fatal(err)
		}
		a := b.actor()
		a.want("ok", "read", rules)
		a.want("EPERM", "write", rules)
		if r := b.record(); r.Clause != len(b.policy.Image.Clauses)+0 {
			t.Errorf("record %+v", r)
		}
		a.want("EPERM", "append", rules)
		a.want("EPERM", "chmod", rules)
		a.want("EPERM", "truncate", rules)
		a.want("EPERM", "unlink", rules)
		a.want("EPERM", "rename", rules, b.dir+"/other")
		a.want("EPERM", "rename", b.file("new"), rules)
		a.want("EPERM", "link", rules, b.dir+"/second")
		// A link that was there before is known since it was read by its name.
		a.want("EPERM", "write", first)
		a.want("EPERM", "append", first)
		// Below another mount.
		a.want("EPERM", "write", b.dir+"/real/kept")
		a.want("EPERM", "rename", b.file("new"), b.dir+"/real/kept")
		// Who does not carry the label may.
		a.want("ok", "append", conf)
		a.want("ok", "link", conf, b.dir+"/third")
		a.want("ok", "put", conf)
		a.want("ok", "append", b.dir+"/third")
		a.want("ok", "read", mark)
		a.want("EPERM", "append", conf)
		a.want("EPERM", "append", b.dir+"/third")
		a.want("EPERM", "create", b.dir+"/conf/new")
		a.want("EPERM", "rename", b.dir+"/conf", b.dir+"/conf2")
		a.want("ok", "append", b.file("noted"))
		b.actor().want("ok", "rename", b.dir+"/conf/a", b.dir+"/conf/b")
	})
}
