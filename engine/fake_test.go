// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/policy/dfa"
)

// fakeKernel remembers what it was told, as pins would.
type fakeKernel struct {
	mu        sync.Mutex
	next      uint32
	slots     map[kernel.Slot]kernel.Spec
	states    map[kernel.Slot]kernel.State // set by tests; else what the slot was installed with
	forgotten map[kernel.Slot]bool
	lost      map[kernel.Slot][]kernel.LostRecord
	stats     map[kernel.Slot]kernel.Stats
	exempt    map[kernel.Slot]uint64 // inode of the socket
	cgroups   map[kernel.Slot]uint64 // set by tests
	processes map[int]kernel.Process
	records   chan kernel.Record
	gains     chan kernel.Gain
	requests  []kernel.Request
	answers   map[kernel.Slot]map[kernel.AskKey]kernel.Answer
	ended     []kernel.AskKey // whose uses were ended

	install, selfTest, remove, swap, lock error // answers
	entered, held                         chan struct{}
}

func newFakeKernel() *fakeKernel {
	return &fakeKernel{
		slots: map[kernel.Slot]kernel.Spec{}, states: map[kernel.Slot]kernel.State{}, forgotten: map[kernel.Slot]bool{}, lost: map[kernel.Slot][]kernel.LostRecord{},
		stats:  map[kernel.Slot]kernel.Stats{},
		exempt: map[kernel.Slot]uint64{}, cgroups: map[kernel.Slot]uint64{}, processes: map[int]kernel.Process{},
		records: make(chan kernel.Record), gains: make(chan kernel.Gain), answers: map[kernel.Slot]map[kernel.AskKey]kernel.Answer{},
	}
}

func (k *fakeKernel) Tier() kernel.Tier { return kernel.LSM }

func (k *fakeKernel) Install(spec kernel.Spec) (kernel.Slot, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.install != nil {
		return kernel.Slot{}, k.install
	}
	if spec.Image == nil {
		return kernel.Slot{}, errors.New("no image")
	}
	k.next++
	slot := kernel.Slot{Index: k.next, Generation: 7}
	k.slots[slot] = spec
	return slot, nil
}

func (k *fakeKernel) SetExempt(slot kernel.Slot, socket, guest string) error {
	id, err := realHost{}.CgroupID(socket) // its inode
	if err != nil {
		return err
	}
	if _, err := os.Lstat(guest); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.exempt[slot] = id
	return nil
}

func (k *fakeKernel) SelfTest(ctx context.Context, _ kernel.Slot, _ string) error {
	k.mu.Lock()
	entered, held, err := k.entered, k.held, k.selfTest
	k.mu.Unlock()
	if entered != nil {
		entered <- struct{}{}
		select {
		case <-held:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}

func (k *fakeKernel) Remove(slot kernel.Slot) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.remove != nil {
		return k.remove
	}
	if _, ok := k.slots[slot]; !ok {
		return fmt.Errorf("no slot %v", slot)
	}
	delete(k.slots, slot)
	return nil
}

func (k *fakeKernel) Swap(slot kernel.Slot, image *dfa.Image) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	spec, ok := k.slots[slot]
	if !ok || k.swap != nil {
		return cmp.Or(k.swap, fmt.Errorf("no slot %v", slot))
	}
	spec.Image = image
	k.slots[slot] = spec
	return nil
}

func (k *fakeKernel) Gates(slot kernel.Slot) (open uint64, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, gate := range k.states[slot].Fresh {
		open |= 1 << gate
	}
	return open, nil
}

func (k *fakeKernel) Confine(slot kernel.Slot, pid int, labels uint64) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	process, ok := k.processes[pid]
	if !ok || process.Slot != slot {
		return fmt.Errorf("no process %d", pid)
	}
	process.Labels |= labels
	k.processes[pid] = process
	return nil
}

func (k *fakeKernel) State(slot kernel.Slot) (kernel.State, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	spec, ok := k.slots[slot]
	if !ok {
		return kernel.State{}, fmt.Errorf("no slot %v", slot)
	}
	if state, ok := k.states[slot]; ok {
		return state, nil
	}
	return spec.State, nil
}

func (k *fakeKernel) TakeLost(slot kernel.Slot) ([]kernel.LostRecord, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	taken := k.lost[slot]
	delete(k.lost, slot)
	return taken, nil
}

func (k *fakeKernel) Forget(slot kernel.Slot) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forgotten[slot] = true
	k.states[slot] = kernel.State{}
	return nil
}

func (k *fakeKernel) Slots() ([]kernel.Slot, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var slots []kernel.Slot
	for slot := range k.slots {
		slots = append(slots, slot)
	}
	return slots, nil
}

func (k *fakeKernel) Cgroup(slot kernel.Slot) (uint64, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	id, known := k.cgroups[slot]
	if !known {
		return 0, errors.New("not known")
	}
	return id, nil
}

func (k *fakeKernel) Stats(slot kernel.Slot) (kernel.Stats, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.stats[slot], nil
}

func (k *fakeKernel) Process(pid int) (kernel.Process, bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p, ok := k.processes[pid]
	return p, ok, nil
}

func (k *fakeKernel) Records(ctx context.Context, f func(kernel.Record), gained func(kernel.Gain)) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case r := <-k.records:
			f(r)
		case g := <-k.gains:
			gained(g)
		}
	}
}

func (k *fakeKernel) Requests() ([]kernel.Request, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.requests), nil
}

func (k *fakeKernel) CloseRequest(slot kernel.Slot, key kernel.AskKey, process kernel.ProcessID) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.requests = slices.DeleteFunc(k.requests, func(r kernel.Request) bool {
		return r.Slot == slot && r.Key == key && r.Process == process
	})
	return nil
}

func (k *fakeKernel) SetAnswer(slot kernel.Slot, key kernel.AskKey, a kernel.Answer) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.answers[slot] == nil {
		k.answers[slot] = map[kernel.AskKey]kernel.Answer{}
	}
	k.answers[slot][key] = a
	return nil
}

func (k *fakeKernel) Answers(slot kernel.Slot) (map[kernel.AskKey]kernel.Answer, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.answers[slot]), nil
}

func (k *fakeKernel) DropAnswer(slot kernel.Slot, key kernel.AskKey) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.answers[slot], key)
	return nil
}

func (k *fakeKernel) EndUses(_ kernel.Slot, key kernel.AskKey) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended = append(k.ended, key)
	return nil
}

func (k *fakeKernel) Problems() []string { return nil }

func (k *fakeKernel) set(change func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change()
}

func (k *fakeKernel) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.slots)
}
