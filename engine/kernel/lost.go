// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/actplane/actplane/bpf"
	"github.com/actplane/actplane/policy/ir"
)

// LostRecord counts records that did not fit into the ring buffer, of one decision:
// all else in Record is not known.
type LostRecord struct {
	Record
	Count uint64
}

// TakeLost tells of a scope's lost records what decided, each of them once. Where the
// table of them is full, Stats counts more.
func (k *Kernel) TakeLost(slot Slot) ([]LostRecord, error) {
	var taken []LostRecord
	err := k.eachLost(slot.Index, func(key bpf.EnforcerLostKey) error {
		var count uint64
		err := k.maps["lost_records"].LookupAndDelete(key, &count)
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read what was lost: %w", err)
		}
		if key.Generation == slot.Generation && count > 0 {
			lost := LostRecord{Count: count, Record: Record{Slot: slot, Effect: ir.Effect(key.Effect), Op: ir.Op(key.Op)}}
			lost.decidedBy(int(key.Clause), key.Reason)
			taken = append(taken, lost)
		}
		return nil
	})
	return taken, err
}

// eachLost calls f for the rows of a slot, of any generation.
func (k *Kernel) eachLost(slot uint32, f func(bpf.EnforcerLostKey) error) error {
	var cursor ebpf.MapBatchCursor
	keys, counts := make([]bpf.EnforcerLostKey, batch), make([]uint64, batch)
	for {
		n, err := k.maps["lost_records"].BatchLookup(&cursor, keys, counts, nil)
		if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("read what was lost: %w", err)
		}
		for _, key := range keys[:n] {
			if key.Scope == slot {
				if err := f(key); err != nil {
					return err
				}
			}
		}
		if err != nil { // that was the last
			return nil
		}
	}
}

// dropLost forgets what a scope has lost.
func (k *Kernel) dropLost(slot uint32) error {
	return k.eachLost(slot, func(key bpf.EnforcerLostKey) error {
		if err := k.maps["lost_records"].Delete(key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("forget what was lost: %w", err)
		}
		return nil
	})
}
