// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/actplane/actplane/bpf"
)

// adopt takes over what a former process has pinned, when scopes live there. With
// no live scope it leaves everything to be loaded afresh, so that an upgrade takes
// effect as soon as it can do so without a gap.
func (k *Kernel) adopt() (bool, error) {
	if _, err := os.Stat(k.dir("maps")); errors.Is(err, os.ErrNotExist) {
		return false, foreign(k.config.PinDir)
	}
	if err := k.adoptMaps(); err != nil {
		return false, nil // a process that died while it loaded; nothing is in force
	}
	slots, err := k.Slots()
	if err != nil {
		return false, err
	}
	if len(slots) == 0 {
		return false, k.closeMaps()
	}
	var host bpf.EnforcerHost
	if err := k.maps["hosts"].Lookup(uint32(0), &host); err != nil {
		return false, fmt.Errorf("read the host's state: %w", err)
	}
	k.tier = tierByNumber(host.Tier)
	if err := k.selectPrograms(); err != nil {
		return false, err
	}
	if err := k.adoptPrograms(); err != nil {
		return false, err
	}
	return true, k.adoptScopes(slots)
}

// foreign refuses to load beside the pins of another ABI version whose scopes
// would then be enforced twice, or by nobody once its pins are removed.
func foreign(pinDir string) error {
	entries, err := os.ReadDir(pinDir)
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		if markers, err := os.ReadDir(filepath.Join(pinDir, entry.Name(), "markers")); err == nil && len(markers) > 0 {
			return fmt.Errorf("%d containers run under policies of an engine with another ABI (%s); stop them first, "+
				"or go back to that version", len(markers), entry.Name())
		}
	}
	return nil
}

func (k *Kernel) adoptMaps() error {
	for name := range k.spec.Maps {
		if name[0] == '.' {
			continue
		}
		m, err := ebpf.LoadPinnedMap(filepath.Join(k.dir("maps"), name), nil)
		if err != nil {
			return errors.Join(err, k.closeMaps())
		}
		k.maps[name] = m
	}
	return nil
}

func (k *Kernel) closeMaps() error {
	var errs []error
	for name, m := range k.maps {
		errs = append(errs, m.Close())
		delete(k.maps, name)
	}
	return errors.Join(errs...)
}

func (k *Kernel) adoptPrograms() error {
	for name := range k.spec.Programs {
		program, err := ebpf.LoadPinnedProgram(filepath.Join(k.dir("programs"), name), nil)
		if err != nil {
			return fmt.Errorf("adopt program %q: %w", name, err)
		}
		k.programs[name] = program
		pinned := filepath.Join(k.dir("links"), name)
		if !exists(pinned) {
			continue // no scope needs it
		}
		if k.links[name], err = link.LoadPinnedLink(pinned, nil); err != nil {
			return fmt.Errorf("adopt link %q: %w", name, err)
		}
	}
	return nil
}

func (k *Kernel) adoptScopes(slots []Slot) error {
	for _, slot := range slots {
		var scope bpf.EnforcerScope
		if err := k.maps["scopes"].Lookup(slot.Index, &scope); err != nil {
			return fmt.Errorf("read scope %d: %w", slot.Index, err)
		}
		k.scopes[slot.Index] = installed{generation: scope.Generation, image: scope.Image, previous: scope.Previous, needs: k.attachedNeeds(), locked: scope.Flags&scopeLocked != 0}
		k.current[slot.Index].Store(scope.Image)
		var head bpf.EnforcerImage
		if err := k.maps["images"].Lookup(scope.Image, &head); err != nil {
			return fmt.Errorf("read image %d: %w", scope.Image, err)
		}
		k.images.adopt(scope.Image, head.Hash)
		if scope.Previous != 0 {
			if err := k.maps["images"].Lookup(scope.Previous-1, &head); err != nil {
				return fmt.Errorf("read image %d: %w", scope.Previous-1, err)
			}
			k.images.adopt(scope.Previous-1, head.Hash)
		}
		path := filepath.Join(k.dir("markers"), strconv.Itoa(int(slot.Index)))
		marker, err := link.LoadPinnedLink(path, nil)
		if err != nil {
			continue // its cgroup is gone, or it was being installed; the engine's sweep decides
		}
		k.markers[slot.Index] = marker
	}
	return nil
}

// attachedNeeds is what is attached now: the scopes of a former process may need
// all of it.
func (k *Kernel) attachedNeeds() need {
	var result need
	for _, h := range k.present {
		if _, ok := k.links[h.program(k.tier, k.idmap)]; ok {
			result |= h.need
		}
	}
	return result
}

// Slots lists the scopes that the kernel enforces.
func (k *Kernel) Slots() ([]Slot, error) {
	var slots []Slot
	for index := uint32(0); index < uint32(bpf.EnforcerLimitsLIMIT_SCOPES); index++ {
		var scope bpf.EnforcerScope
		if err := k.maps["scopes"].Lookup(index, &scope); err != nil {
			return nil, fmt.Errorf("read scope %d: %w", index, err)
		}
		if scope.Generation != 0 {
			slots = append(slots, Slot{Index: index, Generation: scope.Generation})
		}
	}
	return slots, nil
}
