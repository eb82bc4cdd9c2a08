// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// moved waits for what becomes of gates next, which is to be of a kind and about a set.
func (b *bench) moved(want GateMove, gates uint64) Gain {
	b.t.Helper()
	deadline := time.After(10 * time.Second)
	for {
		select {
		case g := <-b.gains:
			if g.Gate == 0 {
				continue
			}
			if g.Gate != want || g.Labels != gates {
				b.t.Fatalf("want %d of %#x, got %+v", want, gates, g)
			}
			return g
		case <-deadline:
			b.t.Fatalf("nothing of kind %d happened to gates", want)
			return Gain{}
		}
	}
}

// What opens a gate, or is the reason that it is not open, is told once, with who it was.
func TestGateMoves(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, `
rule tested:
  block exec "commit" unless after exec "tests" exits 0 since write "$D/src/**"
rule checked:
  block exec "deploy" unless after exec "check" since write "$D/src/**"
rule seen:
  block exec "ship" unless after read "$D/seen" since unlink "$D/src/**"
`)
		src, seen := b.file("src/x"), b.file("seen")
		tests := b.script("bin/tests", `[ -z "$2" ] || echo > "$2"; exit "$1"`)
		stop := b.dir + "/stop"
		check := b.script("bin/check", "while ! test -e "+stop+"; do sleep 0.2; done; exit 0")
		a, c := b.actor(), b.actor()
		a.want("exit 2", "run", tests, "2")
		if g := b.moved(GateMissed, 1); g.Status != 2<<8 || g.Comm != "tests" || g.Process.ID == 0 || g.Time.Before(g.Started) {
			t.Errorf("another status: %+v", g)
		}
		a.want("ok", "run", tests, "0")
		if g := b.moved(GateOpened, 1); g.Status != 0 || g.Comm != "tests" || len(g.Process.Ancestors) == 0 {
			t.Errorf("the status: %+v", g)
		}
		a.want("ok", "run", tests, "0") // it is open
		pid := a.do("start", check)
		if g := b.moved(GateOpened, 2); g.Comm != "check" || strconv.Itoa(g.PID) != pid {
			t.Errorf("a run by %s: %+v", pid, g)
		}
		c.want("ok", "read", seen)
		if g := b.moved(GateOpened, 4); g.Object != seen || g.PID != c.cmd.Process.Pid {
			t.Errorf("a read: %+v", g)
		}
		for range 2 { // the second time nothing is open
			c.want("ok", "write", src)
		}
		if g := b.moved(GateStaled, 3); g.Object != src || g.PID != c.cmd.Process.Pid || g.Inside != g.PID {
			t.Errorf("a write: %+v", g)
		}
		a.want("ok", "run", tests, "0", src)
		if g := b.moved(GateLate, 1); g.Status != 0 || g.Comm != "tests" {
			t.Errorf("changed meanwhile: %+v", g)
		}
		c.want("ok", "unlink", src)
		if g := b.moved(GateStaled, 4); g.Object != src {
			t.Errorf("a removal: %+v", g)
		}
		if err := os.WriteFile(stop, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	})
}

// A gate is shut again when what opened it is traced.
func TestGateClosed(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, `
rule checked:
  block exec "deploy" unless after exec "check"
`)
		stop := b.dir + "/stop"
		check := b.script("bin/check", "while ! test -e "+stop+"; do sleep 0.2; done; exit 0")
		a, c := b.actor(), b.actor()
		pid := a.do("start", check)
		b.moved(GateOpened, 1)
		c.want("ok", "trace", pid)
		if g := b.moved(GateClosed, 1); g.PID != c.cmd.Process.Pid {
			t.Errorf("traced: %+v", g)
		}
		if err := os.WriteFile(stop, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	})
}
