// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/actplane/actplane/bpf"
)

// images hands out image slots. Equal images share one.
type images struct {
	slots map[uint32]*imageSlot
	next  uint32 // where a free one is looked for: what names an old one must not find a new
}

type imageSlot struct {
	references int
	hash       [sha256.Size]byte
}

// adopt notes that one more scope of a former process uses a slot.
func (s *images) adopt(slot uint32, hash [sha256.Size]byte) {
	s.init()
	if s.slots[slot] == nil {
		s.slots[slot] = &imageSlot{hash: hash}
	}
	s.slots[slot].references++
}

func (s *images) init() {
	if s.slots == nil {
		s.slots = map[uint32]*imageSlot{}
	}
}

// acquire returns the slot of an image equal to t, stored by store when there is
// none yet.
func (s *images) acquire(t *tables, store func(slot uint32) error) (uint32, error) {
	s.init()
	hash := t.hash()
	for slot, image := range s.slots {
		if image.hash == hash {
			image.references++
			return slot, nil
		}
	}
	for i := range uint32(bpf.EnforcerLimitsLIMIT_IMAGES) {
		slot := (s.next + i) % uint32(bpf.EnforcerLimitsLIMIT_IMAGES)
		if s.slots[slot] != nil {
			continue
		}
		if err := store(slot); err != nil {
			return 0, err
		}
		s.slots[slot] = &imageSlot{references: 1, hash: hash}
		s.next = slot + 1
		return slot, nil
	}
	return 0, fmt.Errorf("the engine holds %d different policies, and all are in use", bpf.EnforcerLimitsLIMIT_IMAGES)
}

// release gives a slot back, and frees it by free with its last user.
func (s *images) release(slot uint32, free func(slot uint32) error) error {
	image := s.slots[slot]
	if image == nil {
		return nil
	}
	if image.references--; image.references > 0 {
		return nil
	}
	delete(s.slots, slot)
	return free(slot)
}

// dropTables frees an image's tables.
func (k *Kernel) dropTables(slot uint32) error {
	var errs []error
	for _, name := range tableMaps() {
		if err := k.maps[name].Delete(slot); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			errs = append(errs, fmt.Errorf("drop %q: %w", name, err))
		}
	}
	return errors.Join(errs...)
}
