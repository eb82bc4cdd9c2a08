// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/actplane/actplane/bpf"
	"github.com/actplane/actplane/policy"
)

// add puts rules that are added into force, and returns the labels that confine, if they
// are to.
func (b *bench) add(text string, confine bool) uint64 {
	b.t.Helper()
	text = strings.ReplaceAll(text, "$D", b.dir)
	extended, err := policy.Extend(b.policy.Program, policy.Addition{Name: "added", Text: []byte(text), Confine: confine})
	if err != nil {
		b.t.Fatal(err)
	}
	if err := b.k.Swap(b.slot, extended.Image); err != nil {
		b.t.Fatal(err)
	}
	b.policy = extended
	if !confine {
		return 0
	}
	return 1 << (len(extended.Program.Labels) - 1)
}

func (b *bench) confine(a *actor, labels uint64) {
	b.t.Helper()
	if err := b.k.Confine(b.slot, a.cmd.Process.Pid, labels); err != nil {
		b.t.Fatal(err)
	}
}

const swapPolicy = `
protect: ["kept", {path: "kept2", if: SECRET}]
policy: |
  source SECRET = file "$D/secret"
  rule tested:
    block exec "commit" unless after exec "tests" since write "src/**"
  rule out:
    block write "$D/shared" if SECRET
  rule asked:
    ask exec "asked"
`

// What was known is known under the next policy, and what it says holds at once, also for
// descriptors that were open.
func TestSwap(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBenchOf(t, tier, swapPolicy)
		commit, tests, asked := b.script("commit", "exit 0"), b.script("tests", "exit 0"), b.script("asked", "exit 0")
		log, open, shared, secret := b.file("log"), b.file("open"), b.file("shared"), b.file("secret")
		kept, kept2 := b.file("kept"), b.file("kept2")
		if err := os.Link(kept, b.dir+"/other"); err != nil {
			t.Fatal(err)
		}
		a, plain := b.actor(), b.actor()
		a.want("ok", "read", kept)
		a.want("ok", "link", kept2, b.dir+"/other2") // who carries nothing may
		plain.want("ok", "append", b.dir+"/other2")
		a.want("ok", "run", tests)
		a.want("ok", "append", log)
		a.want("ok", "open", open)
		a.want("ok", "read", secret)
		a.want("EPERM", "run", asked)
		b.answer(b.asked(Opened), Answer{Count: 2})
		a.want("ok", "run", asked)
		b.asked(Granted)

		for round, text := range []string{
			"version: 1\nprotect: [\"$D/more\"]\npolicy: |\n  rule more:\n    block write \"$D/log\"\n    block append \"$D/log\"\n  default block connect\n",
			"rule again: block write \"$D/open\" block append \"$D/log\"", "rule last: notify write \"$D/noted\""} {
			b.add(text, false)
			a.want("EPERM", "put", log)
			r := b.record()
			for r.Object != log {
				r = b.record()
			}
			if r.Former || r.Clause >= len(b.policy.Image.Clauses) || b.policy.Program.Rules[b.policy.Image.Clauses[r.Clause].Rule].Name != "more" {
				t.Errorf("record %+v", r)
			}
			want := "ok"
			if round > 0 {
				want = "EPERM"
			}
			a.want(want, "put", open)
			a.want("EPERM", "write", shared)
			a.want("ok", "run", commit)
			a.want("EPERM", "append", b.dir+"/other")
			a.want("EPERM", "append", b.dir+"/other2")
			plain.want("EPERM", "write", b.file("more"))
		}
		if err := b.k.Swap(b.slot, b.policy.Image); err != nil {
			t.Errorf("the same again: %v", err)
		}
		a.want("ok", "run", asked)
		b.asked(Granted)
		a.want("EPERM", "run", asked)
		a.want("ok", "mkdir", b.dir+"/src")
		a.want("ok", "write", b.dir+"/src/x")
		a.want("EPERM", "run", commit)

		b.takeOver()
		a.want("EPERM", "put", log)
		b.add("rule later: block read \"$D/log\"", false)
		a.want("EPERM", "read", log)
		if n := len(b.k.images.slots); n != 2 {
			t.Errorf("%d images are in use, of one scope", n)
		}
		b.restart(nil)
		c := b.actor()
		c.want("EPERM", "append", b.dir+"/other")
		c.want("EPERM", "append", b.dir+"/other2") // by which entry, is not known any more
		c.want("EPERM", "run", commit)
	})
}

// An exec in the middle of which the policy changes runs, and is decided on once.
func TestSwapDuringExec(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, `
rule no:
  block exec "tool" "push"
  block exec "other" unless after exec "never"
`)
		tool := b.script("tool", "exit 0")
		done := make(chan string)
		for range 2 {
			a := b.actor()
			go func() { // until the scope's end
				last := ""
				for range 150 {
					if got := a.do("run", tool, "status"); got != "ok" {
						last = got
					}
					if got := a.do("run", tool, "push"); got != "EPERM" && got != "SIGKILL" {
						last = "push: " + got
					}
				}
				done <- last
			}()
		}
		swaps := 0
		for ended := 0; ended < 2; {
			select {
			case last := <-done:
				if ended++; last != "" {
					t.Errorf("while the policy changed: %s", last)
				}
			case <-b.records:
			default:
				if swaps++; swaps <= 40 {
					b.add("rule r"+strconv.Itoa(swaps)+": block read \"$D/none"+strconv.Itoa(swaps)+"\"", false)
				}
			}
		}
		if swaps < 5 {
			t.Errorf("%d swaps", swaps)
		}
	})
}

// Rules for one process hold for it and what it starts, and for nobody else, whatever the
// two do with each other.
func TestConfine(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, `
endorse GOOD by exec "/bin/none"
rule none:
  notify write "$D/noted" if GOOD
`)
		out, script, asis := b.file("out/f"), b.script("script", `echo x > "$1"`), b.file("asis")
		a, other := b.actor(), b.actor()
		a.want("ok", "open", out)
		bit := b.add("rule only-read: block write any unless target \"$D/tmp/**\" or target \"/dev/**\" because \"x\"", true)
		second := b.add("rule no-true: block exec \"true\"", true)
		for _, free := range []*actor{a, other} {
			free.want("ok", "write", out)
			free.want("ok", "run", "/bin/true")
		}
		b.confine(a, bit)
		a.want("EPERM", "put", out) // it was open
		a.want("EPERM", "write", out)
		a.want("EPERM", "fork", "write", out)
		a.want("exit 1", "run", script, out)
		a.want("EPERM", "unlink", out)
		a.want("ok", "mkdir", b.dir+"/tmp")
		a.want("ok", "write", b.dir+"/tmp/f")
		a.want("ok", "run", "/bin/true")
		b.confine(a, second)
		a.want("EPERM", "run", "/bin/true")
		a.want("EPERM", "fork", "run", "/bin/true")
		a.want("EPERM", "write", out)

		other.want("ok", "read", b.dir+"/tmp/f") // no file carries it
		other.want("ok", "write", out)
		other.want("ok", "run", "/bin/true")
		for how, want := range map[string]string{"look": "EACCES", "poke": "EPERM", "trace": "EPERM"} {
			a.want(want, how, strconv.Itoa(other.cmd.Process.Pid))
		}
		other.want("ok", "look", strconv.Itoa(a.cmd.Process.Pid))
		a.want("ok", "read", asis)

		if err := b.k.Confine(Slot{Index: b.slot.Index, Generation: b.slot.Generation + 1}, a.cmd.Process.Pid, bit); err == nil {
			t.Error("confined a process of another scope")
		}
		if err := b.k.Confine(b.slot, os.Getpid(), bit); err == nil {
			t.Error("confined a process of no scope")
		}
		b.takeOver()
		a.want("EPERM", "write", out)
		b.confine(other, bit)
		other.want("EPERM", "write", out)
		// A thread that is not the first runs another program.
		other.want("exit 1", "runthread", script, out)
		other.end()
		a.end()
		left := 0
		if err := b.k.eachConfined(func(uint64, bpf.EnforcerConfined) error { left++; return nil }); err != nil || left != 0 {
			t.Errorf("%d processes that have ended are known: %v", left, err)
		}
	})
}
