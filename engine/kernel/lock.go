// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/actplane/actplane/bpf"
)

// Lock makes every hook refuse the scope's processes. When it returns, no hook that began
// before still decides otherwise, so that no operation which begins later succeeds. All
// hooks stay attached until Unlock, also for the process that adopts the scope.
func (k *Kernel) Lock(slot Slot) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	known, ok := k.scopes[slot.Index]
	if !ok || known.generation != slot.Generation {
		return fmt.Errorf("lock scope %d: it is gone", slot.Index)
	}
	known.locked = true
	k.scopes[slot.Index] = known
	if err := k.attachHooks(needAll); err != nil {
		return fmt.Errorf("lock scope %d: %w", slot.Index, err)
	}
	if err := k.changeLock(slot, true); err != nil {
		return err
	}
	return k.awaitPrograms(known.image)
}

// Unlock takes a lock back.
func (k *Kernel) Unlock(slot Slot) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	known, ok := k.scopes[slot.Index]
	if !ok || known.generation != slot.Generation {
		return nil
	}
	if err := k.changeLock(slot, false); err != nil {
		return err
	}
	known.locked = false
	k.scopes[slot.Index] = known
	return k.detachSoon()
}

func (k *Kernel) changeLock(slot Slot, locked bool) error {
	change := bpf.EnforcerLockChange{Scope: slot.Index, Generation: slot.Generation}
	if locked {
		change.Locked = 1
	}
	result, err := k.programs["lock_scope"].Run(&ebpf.RunOptions{Context: change})
	if err == nil && result != 0 {
		err = errors.New("it is gone")
	}
	if err != nil {
		return fmt.Errorf("lock scope %d: %w", slot.Index, err)
	}
	return nil
}

// awaitPrograms returns when all programs that run now have ended: the kernel waits for
// them before the change of a map of maps returns (maybe_wait_bpf_programs).
func (k *Kernel) awaitPrograms(image uint32) error {
	var table *ebpf.Map
	if err := k.maps["rows"].Lookup(image, &table); err != nil {
		return fmt.Errorf("wait for programs: %w", err)
	}
	defer table.Close()
	if err := k.maps["rows"].Put(image, table); err != nil {
		return fmt.Errorf("wait for programs: %w", err)
	}
	return nil
}
