// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What is taken back is over at once, also while others use it, and so is the use of
// what it has opened.
func TestRevoke(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, `
rule kept:
  ask read file "$D/kept"
rule conf:
  ask write file "$D/conf" unless after exec "never"
rule net:
  ask connect "127.0.0.1"
`)
		kept, conf := b.file("kept"), b.file("conf")
		a := b.actor()
		a.want("EPERM", "read", kept)
		r := b.asked(Opened)

		var here unix.Stat_t
		if err := unix.Stat("/proc/"+strconv.Itoa(r.PID)+"/cwd", &here); err != nil {
			t.Fatal(err)
		}
		if d := r.Directory; d.Inode != here.Ino || d.Device != unix.Major(here.Dev)<<20|unix.Minor(here.Dev) {
			t.Errorf("asked in %+v, the process is in %d on %#x", d, here.Ino, here.Dev)
		}

		// Each round it is taken back while four read: none that begins later reads.
		actors := []*actor{b.actor(), b.actor(), b.actor(), b.actor()}
		for _, said := range []Answer{{Timed: true}, {Count: 1 << 20}, {Count: 1 << 20, For: time.Hour}} {
			b.answer(r, said)
			var over atomic.Bool
			var before, after, late atomic.Int64
			var wait sync.WaitGroup
			for _, reader := range actors {
				wait.Go(func() {
					for n := 0; n < 2000; n++ {
						gone := over.Load()
						granted := reader.do("read", kept) == "ok"
						switch {
						case granted && gone:
							late.Add(1)
						case granted:
							before.Add(1)
						}
						if gone {
							if after.Add(1) >= 20 {
								return
							}
						}
					}
				})
			}
			for before.Load() < 20 {
				time.Sleep(time.Millisecond)
			}
			if err := b.k.DropAnswer(b.slot, r.Ask); err != nil {
				t.Fatal(err)
			}
			over.Store(true)
			wait.Wait()
			if late.Load() > 0 || after.Load() == 0 {
				t.Errorf("%+v: %d of %d reads were granted after it was taken back", said, late.Load(), after.Load())
			}
			if answers, err := b.k.Answers(b.slot); err != nil || len(answers) > 0 {
				t.Errorf("answers %v, %v", answers, err)
			}
		}
		drain := func() {
			for {
				select {
				case <-b.records:
				case <-time.After(300 * time.Millisecond):
					return
				}
			}
		}
		drain()

		// A descriptor that was opened with a grant, where using one is decided on again.
		a.want("EPERM", "open", conf)
		r = b.asked(Opened)
		b.answer(r, Answer{Timed: true})
		a.want("ok", "open", conf)
		b.asked(Granted)
		a.want("ok", "put", conf)
		drop := func() {
			t.Helper()
			if err := b.k.DropAnswer(b.slot, r.Ask); err != nil {
				t.Error(err)
			}
			if err := b.k.EndUses(b.slot, r.Ask); err != nil {
				t.Error(err)
			}
		}
		drop()
		a.want("EPERM", "put", conf)
		drain()

		// A connection.
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		address := listener.Addr().String()
		a.want("EPERM", "dial", "tcp", address)
		r = b.asked(Opened)
		b.answer(r, Answer{Timed: true})
		a.want("ok", "dial", "tcp", address)
		b.asked(Granted)
		a.want("ok", "say")
		drop()
		a.want("EPERM", "say")
		a.want("EPERM", "dial", "tcp", address)
	})
}

// A grant that is for a number of operations within a time ends with the first of both.
func TestGrantsAreCountedInTime(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, `
rule kept:
  ask read file "$D/kept"
`)
		kept := b.file("kept")
		a := b.actor()
		a.want("EPERM", "read", kept)
		r := b.asked(Opened)
		b.answer(r, Answer{Count: 1, For: time.Hour})
		a.want("ok", "read", kept)
		b.asked(Granted)
		a.want("EPERM", "read", kept)
		b.answer(r, Answer{Count: 2, For: time.Nanosecond})
		a.want("EPERM", "read", kept)
		if answers, err := b.k.Answers(b.slot); err != nil || !answers[r.Ask].Over {
			t.Errorf("answers %+v, %v", answers, err)
		}
		// The last word on when a count ends; one in time, that is over, says nothing.
		b.answer(r, Answer{Timed: true, For: time.Nanosecond})
		b.answer(r, Answer{Count: 1})
		a.want("ok", "read", kept)
	})
}
