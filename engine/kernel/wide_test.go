// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/actplane/actplane/policy/dfa"
)

// wide are rules about N directories, names of files and names of programs, which in one
// automaton multiply. From some tens of them on, last names have an entry of their own.
func wide(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "rule w%d:\n  block write file \"/x%d/y%d/**\"\n  block read file \"**/.w%d\"\n  block exec \"w%d\"\n", i, i, i, i, i)
	}
	return text.String()
}

// TestWide does what other tests do under policies whose last names have an entry of
// their own.
func TestWide(t *testing.T) {
	padding = wide(40)
	defer func() { padding = "" }()
	for name, test := range map[string]func(*testing.T){
		"Names": TestNames, "Exec": TestExec, "LabelsAndGates": TestLabelsAndGates, "Processes": TestProcesses,
		"Tree": TestTree, "TreeDefault": TestTreeDefault, "TreeMounts": TestTreeMounts, "NamedBelow": TestNamedBelow, "Protect": TestProtect,
		"Defaults": TestDefaults, "Transforms": TestTransforms, "Modified": TestModified, "AskRetry": TestAskRetry,
		"MappingHoldsGates": TestMappingHoldsGates, "Tampered": TestTampered, "ForeignLibrary": TestForeignLibrary,
	} {
		t.Run(name, test)
	}
}

// TestManyNames: hundreds of programs, of files by their names and of directories hold in
// one policy, each and together.
func TestManyNames(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, `
source SECRET = file "**/*.secret"
source BUILT = exec "maker"
default block unlink
rule tool:
  block exec "tool" unless lineage-includes exec "starter"
  block exec "{one,two}" unless target "$D/ok/*"
  block exec "other" unless target not "oth*"
  block exec "after" unless after exec "before" since write "$D/code/**"
  block exec "later" unless after write "**/*.done" since write "$D/jobs/**"
rule flow:
  block write file "$D/out/**" if SECRET
  block write file "**/*.bin" if not BUILT
  block write file "**/*.lock" unless target "$D/ok/**"
rule order:
  notify write file "$D/order/**"
  block write file "**/stop"
  kill write file "$D/order/deep/**"
  allow unlink file "**/*.tmp"
  allow unlink file "$D/free/**"
`+wide(300))
		if b.policy.Image.Start[dfa.Base] == dfa.Dead || !b.policy.Image.FileNames {
			t.Fatal("last names have no entry of their own")
		}
		b.many()
		b.programs()
		b.filesAndNames()
	})
}

// many: each of the names and directories counts.
func (b *bench) many() {
	a := b.actor()
	for _, i := range []int{0, 1, 150, 298, 299} {
		name, secret := b.script(fmt.Sprintf("bin/w%d", i), "exit 0"), b.file(fmt.Sprintf("any/.w%d", i))
		a.want("EPERM", "run", name)
		if r := b.record(); r.Object != name || b.policy.Program.Rules[b.policy.Image.Clauses[r.Clause].Rule].Name != fmt.Sprintf("w%d", i) {
			b.t.Errorf("record %+v", r)
		}
		a.want("EPERM", "read", secret)
		b.record()
		dir := fmt.Sprintf("/x%d/y%d", i, i)
		if err := os.MkdirAll(dir+"/z", 0o755); err != nil {
			b.t.Fatal(err)
		}
		b.t.Cleanup(func() { _ = os.RemoveAll(fmt.Sprintf("/x%d", i)) })
		a.want("EPERM", "create", dir+"/z/f")
		if r := b.record(); r.Object != dir+"/z/f" {
			b.t.Errorf("record %+v", r)
		}
	}
	a.want("ok", "run", b.script("bin/w300", "exit 0"))
	a.want("ok", "read", b.file("any/.w"))
	a.want("ok", "create", b.dir+"/any/w1")
}

func (b *bench) programs() {
	a := b.actor()
	a.want("EPERM", "run", b.script("bin/tool", "exit 0"))
	a.want("ok", "run", b.script("bin/starter", "exec "+b.dir+"/bin/tool"))
	a.want("EPERM", "run", b.script("bin/one", "exit 0"))
	a.want("ok", "run", b.script("ok/one", "exit 0"))
	a.want("EPERM", "run", b.script("ok/deep/two", "exit 0"))
	a.want("EPERM", "run", b.script("bin/other", "exit 0"))
	after, before := b.script("bin/after", "exit 0"), b.script("bin/before", "exit 0")
	later := b.script("bin/later", "exit 0")
	b.file("code/c")
	b.file("jobs/j")
	a.want("EPERM", "run", after)
	a.want("ok", "run", before)
	a.want("ok", "run", after)
	a.want("ok", "write", b.dir+"/code/c")
	a.want("EPERM", "run", after)
	// One event of both rows: what it spoils comes first.
	a.want("EPERM", "run", later)
	a.want("ok", "create", b.dir+"/jobs/x.done")
	a.want("ok", "run", later)
	a.want("ok", "write", b.dir+"/jobs/j")
	a.want("EPERM", "run", later)
}

func (b *bench) filesAndNames() {
	a := b.actor()
	for _, dir := range []string{"out/d", "order/deep", "ok", "free", "lib", "bin"} {
		if err := os.MkdirAll(b.dir+"/"+dir, 0o755); err != nil {
			b.t.Fatal(err)
		}
	}
	a.want("EPERM", "create", b.dir+"/lib/a.bin")
	a.want("EPERM", "create", b.dir+"/lib/a.lock")
	a.want("ok", "create", b.dir+"/ok/a.lock")
	a.want("ok", "create", b.dir+"/order/go")
	a.want("EPERM", "create", b.dir+"/order/stop")
	a.want("EPERM", "create", b.dir+"/lib/stop")
	a.want("EPERM", "unlink", b.file("lib/keep"))
	a.want("ok", "unlink", b.file("lib/x.tmp"))
	a.want("ok", "unlink", b.file("free/x"))
	a.want("ok", "read", b.file("lib/k.secret"))
	a.want("EPERM", "create", b.dir+"/out/d/f")
	a.want("dead", "create", b.dir+"/order/deep/stop")
}
