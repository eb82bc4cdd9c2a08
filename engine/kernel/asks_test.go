// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// asked waits for a record of an ask.
func (b *bench) asked(want Asked) Record {
	b.t.Helper()
	for {
		if r := b.record(); r.Asked != NotAsked {
			if r.Asked != want {
				b.t.Errorf("asked %d, want %d: %+v", r.Asked, want, r)
			}
			return r
		}
	}
}

func (b *bench) answer(r Record, a Answer) {
	b.t.Helper()
	if err := b.k.SetAnswer(b.slot, r.Ask, a); err != nil {
		b.t.Fatal(err)
	}
}

// goOn wakes who is held for a request, as the daemon does.
func (b *bench) goOn(r Record) {
	b.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !b.stopped(r.PID) {
		if time.Now().After(deadline) {
			b.t.Fatalf("process %d does not stop", r.PID)
		}
		time.Sleep(time.Millisecond)
	}
	if err := syscall.Kill(r.PID, syscall.SIGCONT); err != nil {
		b.t.Error(err)
	}
}

func (b *bench) stopped(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		b.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(rest, "T")
}

func once() Answer { return Answer{Count: 1} }

// What asks is refused, until a person grants it: once, for a time, or as long as the
// scope lives; and what a person denies stays denied.
func TestAskRetry(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, `
rule push:
  ask exec "git" "push"
rule conf:
  ask write file "$D/conf"
rule first:
  ask unlink file "$D/two"
rule second:
  ask unlink file "$D/two"
rule third:
  ask write file "$D/kept"
  block write file "$D/kept"
rule moved:
  ask unlink file "$D/moved"
rule net:
  ask connect "127.0.0.1"
`)
		git, conf, two, moved := b.script("git", "exit 0"), b.file("conf"), b.file("two"), b.file("moved")
		a, other := b.actor(), b.actor()
		a.want("EPERM", "run", git, "push")
		r := b.asked(Opened)
		if r.Object != git || len(r.Args) != 2 || r.Args[1] != "push" {
			t.Errorf("record %+v", r)
		}
		other.want("EPERM", "run", git, "push")
		if again := b.asked(StillOpen); again.Ask != r.Ask {
			t.Error("another request for the same operation")
		}
		a.want("ok", "run", git, "status")
		b.answer(r, once())
		a.want("EPERM", "run", git, "push", "-f")
		if b.asked(Opened).Ask == r.Ask {
			t.Error("the same request for other arguments")
		}
		a.want("ok", "run", git, "push")
		if used := b.asked(Granted); used.Ask != r.Ask {
			t.Errorf("record %+v", used)
		}
		a.want("EPERM", "run", git, "push")
		b.asked(StillOpen)
		b.answer(r, Answer{Timed: true, For: time.Hour})
		for range 3 {
			a.want("ok", "run", git, "push")
			b.asked(Granted)
		}
		b.answer(r, Answer{Denied: true, Timed: true})
		a.want("EPERM", "run", git, "push")
		b.asked(Denied)
		b.answer(r, Answer{Timed: true})
		a.want("ok", "run", git, "push")
		b.asked(Granted)
		if err := b.k.DropAnswer(b.slot, r.Ask); err != nil {
			t.Error(err)
		}
		a.want("EPERM", "run", git, "push")
		b.asked(StillOpen)

		// Opening is one operation, whatever hooks it has; writing then needs no more.
		a.want("EPERM", "open", conf)
		r = b.asked(Opened)
		b.answer(r, once())
		a.want("ok", "open", conf)
		b.asked(Granted)
		a.want("ok", "put", conf)
		a.want("ok", "put", conf)
		a.want("EPERM", "open", conf)
		if b.asked(Opened).Ask == r.Ask {
			t.Error("a grant for the file as it was before it was written")
		}

		// A grant lifts one rule.
		a.want("EPERM", "unlink", two)
		first := b.asked(Opened)
		b.answer(first, once())
		a.want("EPERM", "unlink", two)
		second := b.asked(Opened)
		if first.Clause == second.Clause || !exists(two) {
			t.Errorf("records %+v, %+v", first, second)
		}
		b.answer(second, once())
		a.want("ok", "unlink", two)
		b.asked(Granted)
		b.asked(Granted)
		a.want("EPERM", "write", b.file("kept"))
		if r := b.record(); r.Asked != NotAsked {
			t.Errorf("record %+v", r)
		}

		// A rename is one to this name.
		a.want("EPERM", "rename", moved, b.dir+"/a")
		r = b.asked(Opened)
		b.answer(r, once())
		a.want("EPERM", "rename", moved, b.dir+"/b")
		b.asked(Opened)
		a.want("ok", "rename", moved, b.dir+"/a")
		b.asked(Granted)

		// What is sent on a connection that was granted is part of it.
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		address := listener.Addr().String()
		a.want("EPERM", "dial", "tcp", address)
		b.answer(b.asked(Opened), once())
		a.want("ok", "dial", "tcp", address)
		b.asked(Granted)
		a.want("ok", "say")
		a.want("ok", "say")
		a.want("EPERM", "dial", "tcp", address)
		b.asked(StillOpen)
	})
}

// A grant is for the file, the directory, the user and the environment that asked.
func TestGrantBinds(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, `
rule tool:
  ask exec "tool"
rule shell:
  ask exec "sh" if SEEN
source SEEN = file "$D/seen"
rule read:
  ask read file "$D/data"
`)
		tool, data := b.script("tool", "exit 0"), b.file("data")
		_ = os.Chmod(b.dir, 0o755)
		for dir := b.dir; dir != "/"; dir = filepath.Dir(dir) {
			_ = os.Chmod(dir, 0o755) // another user runs it
		}
		a := b.actor()
		a.want("EPERM", "run", tool)
		r := b.asked(Opened)
		b.answer(r, once())
		other := func(what string, step ...string) {
			t.Helper()
			a.want("EPERM", step...)
			if n := b.asked(Opened); n.Ask == r.Ask {
				t.Errorf("%s: the same request", what)
			}
		}
		other("directory", "runas", "dir=/", tool)
		other("user", "runas", "uid=1000", tool)
		other("environment", "runas", "env=LD_PRELOAD=/tmp/x", tool)
		other("arguments", "run", tool, "")
		a.want("ok", "run", tool)
		b.asked(Granted)

		// Changed from outside, or inside, or another file of the same name.
		b.answer(r, Answer{Timed: true})
		a.want("ok", "run", tool)
		b.asked(Granted)
		if err := os.Chmod(tool, 0o700); err != nil {
			t.Fatal(err)
		}
		other("a changed program", "run", tool)
		_ = os.Rename(tool, tool+".old")
		b.script("tool", "exit 0")
		other("another program", "run", tool)

		a.want("EPERM", "read", data)
		r = b.asked(Opened)
		b.answer(r, Answer{Timed: true})
		a.want("ok", "read", data)
		b.asked(Granted)
		a.want("ok", "write", data)
		other("a modified file", "read", data)
		_ = os.Rename(data, data+".old")
		b.file("data")
		other("another file", "read", data)

		// An interpreter is granted with its script.
		one, two := b.script("one", "exit 0"), b.script("two", "exit 0")
		c := b.actor()
		c.want("ok", "read", b.file("seen"))
		c.want("EPERM", "run", one)
		r = b.asked(Opened)
		b.answer(r, Answer{Timed: true})
		c.want("ok", "run", one)
		b.asked(Granted)
		c.want("EPERM", "run", two)
		if b.asked(Opened).Ask == r.Ask {
			t.Error("another script: the same request")
		}
	})
}

// Of those who race for a grant, as many have it as it says.
func TestGrantsAreCounted(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, `
rule tool:
  ask exec "tool"
rule tools:
  ask exec "$D/*"
rule kept:
  ask read file "$D/kept"
`)
		tool, kept := b.script("tool", "exit 0"), b.file("kept")
		actors := []*actor{b.actor(), b.actor(), b.actor(), b.actor(), b.actor(), b.actor(), b.actor(), b.actor()}
		race := func(step ...string) (granted int) {
			var wait sync.WaitGroup
			var mu sync.Mutex
			for _, a := range actors {
				wait.Go(func() {
					for range 4 {
						if a.do(step...) == "ok" {
							mu.Lock()
							granted++
							mu.Unlock()
						}
					}
				})
			}
			wait.Wait()
			return granted
		}
		actors[0].want("EPERM", "read", kept)
		r := b.asked(Opened)
		for _, n := range []uint32{1, 5} {
			b.answer(r, Answer{Count: n})
			if granted := race("read", kept); granted != int(n) {
				t.Errorf("%d of %d reads were granted", granted, n)
			}
		}
		// Two rules ask: what one has taken is given back where the other refuses.
		opened := func() Record {
			for {
				if r := b.record(); r.Asked == Opened {
					return r
				}
			}
		}
		actors[0].want("EPERM", "run", tool)
		first := opened()
		b.answer(first, Answer{Count: 3})
		actors[0].want("EPERM", "run", tool)
		second := opened()
		b.answer(second, Answer{Count: 2})
		if granted := race("run", tool); granted != 2 {
			t.Errorf("%d of 2 programs were granted", granted)
		}
		answers, err := b.k.Answers(b.slot)
		if a := answers[first.Ask]; err != nil || a.Count != 1 || a.Over || a.Used != 2 {
			t.Errorf("answer %+v, %v", a, err)
		}
		if a := answers[second.Ask]; a.Count != 0 || !a.Over || a.Used != 2 {
			t.Errorf("answer %+v", a)
		}
	})
}

// A process that is held goes on by itself and never knew, or is refused.
func TestAskHold(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, `
rule read:
  ask hold 1h read file "$D/data"
rule made:
  ask hold 1h write file "$D/made"
rule gone:
  ask hold 1h unlink file "$D/gone"
rule run:
  ask hold 1h exec "tool"
rule net:
  ask hold 1h connect "127.0.0.1:1-9"
rule sent:
  ask hold 1h send "127.0.0.2"
rule kept:
  ask hold 1h append file "$D/acct"
rule brief:
  ask hold 1s read file "$D/brief"
`)
		tool, data, gone := b.script("tool", "exit 0"), b.file("data"), b.file("gone")
		brief := b.file("brief")
		a := b.actor()
		held := func(want string, reply Answer, step ...string) {
			t.Helper()
			done := make(chan string, 1)
			go func() { done <- a.do(step...) }()
			r := b.asked(Held)
			b.goOn(r) // a sibling's SIGCONT: it is held again
			deadline := time.Now().Add(5 * time.Second)
			for !b.stopped(r.PID) {
				if time.Now().After(deadline) {
					t.Fatal("not held again")
				}
				time.Sleep(time.Millisecond)
			}
			requests, err := b.k.Requests()
			if err != nil || len(requests) != 1 || requests[0].PID != r.PID || requests[0].Key != r.Ask || requests[0].Process != r.Process.ID {
				t.Errorf("requests %+v, %v", requests, err)
			}
			b.answer(r, reply)
			b.goOn(r)
			if got := <-done; got != want {
				t.Errorf("%q: %s, want %s", step, got, want)
			}
			if reply.Denied {
				b.asked(Denied)
			} else {
				b.asked(Granted)
			}
			if requests, err := b.k.Requests(); err != nil || len(requests) != 0 {
				t.Errorf("requests are left: %+v, %v", requests, err)
			}
		}
		deny := Answer{Denied: true, Timed: true, For: time.Hour}
		steps := [][]string{
			{"read", data}, {"create", b.dir + "/made"}, {"unlink", gone}, {"run", tool}, {"sendto", "127.0.0.2:7"},
		}
		for _, step := range steps {
			held("EPERM", deny, step...)
		}
		held("exit 1", deny, "runthread", tool, "x")
		answers, err := b.k.Answers(b.slot)
		if err != nil {
			t.Fatal(err)
		}
		for key := range answers {
			if err := b.k.DropAnswer(b.slot, key); err != nil {
				t.Error(err)
			}
		}
		for _, step := range append(steps, []string{"runthread", tool, "x"}, []string{"sendtwo", "127.0.0.1:4000", "127.0.0.2:7"}) {
			held("ok", once(), step...)
		}
		held("ECONNREFUSED", once(), "dial", "tcp", "127.0.0.1:7")

		// Nobody answers.
		done := make(chan string, 1)
		go func() { done <- a.do("read", brief) }()
		r := b.asked(Held)
		time.Sleep(1100 * time.Millisecond)
		b.goOn(r)
		if got := <-done; got != "EPERM" {
			t.Errorf("timed out: %s", got)
		}
		b.asked(TimedOut)

		// What cannot be made again is refused, and no number of the kernel's own
		// comes to the program.
		a.want("EPERM", "acct", b.file("acct"))
		b.asked(CannotHold)

		// A process that is killed while it is held leaves a request to withdraw.
		k := b.actor()
		if _, err := fmt.Fprintln(k.stdin, "read\x1f"+data); err != nil {
			t.Fatal(err)
		}
		r = b.asked(Held)
		_ = k.cmd.Process.Kill()
		if err := b.k.CloseRequest(b.slot, r.Ask, r.Process.ID); err != nil {
			t.Error(err)
		}
		if requests, err := b.k.Requests(); err != nil || len(requests) != 0 {
			t.Errorf("requests %+v, %v", requests, err)
		}
	})
}

// A scope has room for so many requests; then what asks is refused.
func TestRequestsAreBounded(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, "rule read:\n  ask read file \"$D/*\"\n")
		a := b.actor()
		var last Record
		for i := range 64 {
			a.want("EPERM", "read", b.file("f"+strconv.Itoa(i)))
			last = b.asked(Opened)
		}
		a.want("EPERM", "read", b.file("more"))
		b.asked(NoRoom)
		if err := b.k.CloseRequest(b.slot, last.Ask, 0); err != nil {
			t.Fatal(err)
		}
		a.want("EPERM", "read", b.dir+"/more")
		b.asked(Opened)

		// The next process knows of them, and of answers.
		b.answer(last, once())
		next, err := Open(b.k.config)
		if err != nil {
			t.Fatal(err)
		}
		requests, err := next.Requests()
		if err != nil || len(requests) != 64 {
			t.Errorf("%d requests, %v", len(requests), err)
		}
		if answers, err := next.Answers(b.slot); err != nil || len(answers) != 1 {
			t.Errorf("answers %v, %v", answers, err)
		}
		_ = next.Close()
		a.want("ok", "read", last.Object)
	})
}
