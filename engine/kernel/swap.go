// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/bpf"
	"github.com/actplane/actplane/policy/dfa"
)

// maxSwapImages is how many of the slots for policies a policy that is swapped may find in
// use: the rest is for containers that start.
const maxSwapImages = int(bpf.EnforcerLimitsLIMIT_IMAGES) * 3 / 4

// errRoom: containers can ask for swaps, and must not take the place of others.
var errRoom = fmt.Errorf("the engine holds %d different policies, and the rest is kept for containers that start", maxSwapImages)

// Swap puts a live scope under another image, whose labels, gates, lineages and clauses
// are those of the present one under the same numbers, and more behind them. All that is
// known of files, processes, gates and answers stays. What is decided after it returns is
// decided under the new image; an exec that had been decided on goes on under the one
// before, until the next swap. It may be called again with the same image.
func (k *Kernel) Swap(slot Slot, image *dfa.Image) error {
	t, err := encode(image)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	known, ok := k.scopes[slot.Index]
	if !ok || known.generation != slot.Generation {
		return fmt.Errorf("scope %d is gone", slot.Index)
	}
	if len(k.images.slots) >= maxSwapImages {
		return errRoom
	}
	if err := k.attachHooks(known.needs | needs(image)); err != nil {
		return errors.Join(err, k.detachUnneeded())
	}
	to, err := k.images.acquire(t, func(slot uint32) error { return t.store(k, slot) })
	if err != nil {
		return errors.Join(err, k.detachUnneeded())
	}
	if to == known.image {
		known.policy = image
		k.scopes[slot.Index] = known
		return k.images.release(to, k.dropTables)
	}
	if err := k.dropPrevious(slot); err != nil {
		return errors.Join(err, k.images.release(to, k.dropTables))
	}
	change := bpf.EnforcerImageChange{Scope: slot.Index, Generation: slot.Generation, Image: to, KeptAll: number(len(image.Protects) > 0)}
	if err := k.run("change_image", change); err != nil {
		return errors.Join(err, k.images.release(to, k.dropTables))
	}
	known = k.scopes[slot.Index]
	known.previous, known.image, known.needs, known.policy = known.image+1, to, known.needs|needs(image), image
	k.scopes[slot.Index] = known
	k.current[slot.Index].Store(to)
	return nil
}

// dropPrevious frees the image that was in force before the present one, once no program
// works with it.
func (k *Kernel) dropPrevious(slot Slot) error {
	known := k.scopes[slot.Index]
	if known.previous == 0 {
		return nil
	}
	change := bpf.EnforcerImageChange{Scope: slot.Index, Generation: slot.Generation, Image: known.previous - 1}
	if err := k.run("forget_image", change); err != nil {
		return err
	}
	waitForPrograms()
	image := known.previous - 1
	known.previous = 0
	k.scopes[slot.Index] = known
	return k.images.release(image, k.dropTables)
}

// waitForPrograms returns when all programs have ended that run now and do not sleep:
// none that looks at images does. To them a table that is gone would be an empty one.
func waitForPrograms() {
	const global = 1 // MEMBARRIER_CMD_GLOBAL, which is a grace period of RCU
	if _, _, err := unix.Syscall(unix.SYS_MEMBARRIER, global, 0, 0); err != 0 {
		time.Sleep(time.Second) // a host with nohz_full has none
	}
}

// run runs a program for the daemon, which returns 0 if it could do its work.
func (k *Kernel) run(program string, context any) error {
	result, err := k.programs[program].Run(&ebpf.RunOptions{Context: context})
	if err == nil && result != 0 {
		err = fmt.Errorf("it returned %d", result)
	}
	if err != nil {
		return fmt.Errorf("run %q: %w", program, err)
	}
	return nil
}

// Confine gives a live process labels that only it and what it starts from then on carry,
// and that nothing takes away: those that the image confines. They count for whatever the
// process does after Confine has returned.
func (k *Kernel) Confine(slot Slot, pid int, labels uint64) error {
	process, found, err := k.Process(pid)
	if err != nil {
		return err
	}
	if !found || process.Slot != slot || process.Setup {
		return fmt.Errorf("confine process %d: it is not in the scope", pid)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.confinedRoom(slot); err != nil {
		return err
	}
	err = k.run("confine_process", bpf.EnforcerConfinement{
		Process: uint64(process.ID), Confined: bpf.EnforcerConfined{Labels: labels, Scope: slot.Index, Generation: slot.Generation, Tgid: uint32(pid)},
	})
	if err != nil {
		return err
	}
	// It may have ended in between, and nobody else would take the note away.
	if again, found, err := k.Process(pid); err == nil && (!found || again.ID != process.ID) {
		return errors.Join(fmt.Errorf("confine process %d: it has ended", pid), k.unconfine(uint64(process.ID)))
	}
	return nil
}

// confinedRoom makes sure that a scope has room for one process more.
func (k *Kernel) confinedRoom(slot Slot) error {
	used := 0
	err := k.eachConfined(func(id uint64, c bpf.EnforcerConfined) error {
		if c.Scope != slot.Index || c.Generation != slot.Generation {
			return nil
		}
		// Where a program was skipped, a process can have ended and left its note.
		if process, found, err := k.Process(int(c.Tgid)); err == nil && (!found || uint64(process.ID) != id) {
			return k.unconfine(id)
		}
		used++
		return nil
	})
	if err == nil && used >= int(bpf.EnforcerLimitsLIMIT_SCOPE_CONFINED) {
		err = fmt.Errorf("rules were added for %d processes that live, which is the limit", used)
	}
	return err
}

func (k *Kernel) unconfine(id uint64) error {
	if err := k.maps["confined_by_id"].Delete(id); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("forget a process: %w", err)
	}
	return nil
}

// dropConfined forgets the processes of a scope that is gone.
func (k *Kernel) dropConfined(slot Slot) error {
	return k.eachConfined(func(id uint64, c bpf.EnforcerConfined) error {
		if c.Scope != slot.Index {
			return nil
		}
		return k.unconfine(id)
	})
}

func (k *Kernel) eachConfined(f func(uint64, bpf.EnforcerConfined) error) error {
	var cursor ebpf.MapBatchCursor
	keys, values := make([]uint64, batch), make([]bpf.EnforcerConfined, batch)
	for {
		n, err := k.maps["confined_by_id"].BatchLookup(&cursor, keys, values, nil)
		if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("read the table of processes for which rules were added: %w", err)
		}
		for i := range n {
			if err := f(keys[i], values[i]); err != nil {
				return err
			}
		}
		if err != nil { // that was the last
			return nil
		}
	}
}
