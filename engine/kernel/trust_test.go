// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/actplane/actplane/policy/ir"
)

// A program that is started with a variable that makes it run other code opens nothing,
// and that is told.
func TestForeignEnvironment(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, `
rule fresh:
  block exec "after" unless after exec "before" since exec "after"
`)
		before, after := b.script("before", "exit 0"), b.script("after", "exit 0")
		a := b.actor()
		for _, name := range append(ir.StartupVariables(), "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_") {
			a.want("ok", "runenv", name+"=/x", before)
			if r := b.record(); r.Effect != ir.Notify || r.Clause != -1 || r.Object != before || !strings.Contains(r.Reason, "variable") {
				t.Errorf("%s: record %+v", name, r)
			}
			a.want("EPERM", "run", after)
			b.record()
		}
		for _, name := range []string{"PYTHONPATHS=1", "XLD_PRELOAD=1", "LD", "ENVX=", "=ENV=", ""} {
			a.want("ok", "runenv", name, before)
			a.want("ok", "run", after)
		}
		// Behind much else.
		for _, length := range []string{"254", "255", "256", "3000"} {
			a.want("ok", "runlongenv", length, "NODE_PATH=/x", before)
			a.want("EPERM", "run", after)
			a.want("ok", "runlongenv", length, "NODE=/x", before)
			a.want("ok", "run", after)
		}
	})
}

// A program that is traced or written to is not the one that ran; who only looks
// changes nothing.
func TestTampered(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		rounds := []struct{ how, answer string }{{"look", "ok"}, {"trace", "EPERM"}, {"poke", "EPERM"}}
		var rules strings.Builder
		for _, r := range rounds {
			fmt.Fprintf(&rules, `
rule %[1]s:
  block exec "after-%[1]s" unless after exec "run-%[1]s"
  block exec "later-%[1]s" unless after exec "run-%[1]s" exits 0
`, r.how)
		}
		b := newBench(t, tier, rules.String())
		a, c := b.actor(), b.actor()
		for _, r := range rounds {
			stop := b.dir + "/stop-" + r.how
			run := b.script("run-"+r.how, "while ! test -e "+stop+"; do sleep 0.2; done; exit 0")
			after, later := b.script("after-"+r.how, "exit 0"), b.script("later-"+r.how, "exit 0")
			pid := a.do("start", run)
			if _, err := strconv.Atoi(pid); err != nil {
				t.Fatal(pid)
			}
			// Without the BPF LSM an exec counts only when all of it has been done, which
			// is after its caller may go on.
			for range 200 {
				if c.do("run", after) == "ok" {
					break
				}
			}
			c.want("ok", "run", after)
			c.want("ok", r.how, pid)
			c.want(r.answer, "run", after)
			b.file("stop-" + r.how)
			a.want("ok", "wait")
			c.want(r.answer, "run", later)
		}
	})
}

// A process that maps code that was made inside is not the program that it ran.
func TestForeignLibrary(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		b := newBench(t, tier, `
rule lineage:
  block exec "after" unless lineage-includes exec "`+filepath.Base(self)+`"
`)
		after, library, own := b.script("after", "exit 0"), b.file("lib.so"), b.file("own.so")
		a, c := b.actor(), b.actor()
		a.want("ok", "mapcode", library)
		a.want("ok", "run", after)
		c.want("ok", "write", own)
		a.want("ok", "run", after)
		a.want("ok", "mapcode", own)
		a.want("EPERM", "run", after)
		c.want("ok", "run", after)
	})
}
