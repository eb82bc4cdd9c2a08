// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/actplane/actplane/bpf"
)

// dropSharers forgets what the scope's processes share. An iteration may be cut
// short by other scopes' processes; what is left names a generation that never comes back.
func (k *Kernel) dropSharers(slot Slot) error {
	var id uint64
	var sharer bpf.EnforcerSharer
	var doomed []uint64
	entries := k.maps["sharers"].Iterate()
	for entries.Next(&id, &sharer) {
		if sharer.Scope == slot.Index {
			doomed = append(doomed, id)
		}
	}
	for _, id := range doomed {
		if err := k.maps["sharers"].Delete(id); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("forget what a process shares: %w", err)
		}
	}
	return nil
}
