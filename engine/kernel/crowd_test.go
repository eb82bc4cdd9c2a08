// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"os/exec"
	"strconv"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// Many processes at once are all decided on: none is refused because the programs
// found no memory. Newer kernels allocate it by trylock only, which fails while
// others are busy in the allocator.
func TestCrowd(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, `
source AGENT = exec "agent"
rule push:
  block exec "git" "push" if AGENT
`)
		b.actor().want("ok", "crowd", "40", "25", b.script("agent", ": & : | : ; wait"))
		stats, err := b.k.Stats(b.slot)
		if err != nil || stats.Starved != 0 {
			t.Errorf("stats %+v %v", stats, err)
		}
	})
}

// crowd runs a program TIMES times in each of WORKERS workers, while others keep
// the kernel's allocator busy.
func crowd(args []string) error {
	workers, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	times, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	done := make(chan struct{})
	var busy sync.WaitGroup
	for range 2 {
		busy.Go(func() { churn(done) })
	}
	errs := make([]error, workers)
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() {
			for range times {
				errs[i] = errors.Join(errs[i], exec.Command(args[2]).Run())
			}
		})
	}
	all.Wait()
	close(done)
	busy.Wait()
	return errors.Join(errs...)
}

// churn takes pages and gives them back until DONE is closed.
func churn(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		default:
		}
		pages, err := unix.Mmap(-1, 0, 16<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_POPULATE)
		if err == nil {
			_ = unix.Munmap(pages)
		}
	}
}
