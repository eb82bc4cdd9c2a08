// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"

	"github.com/actplane/actplane/bpf"
	"github.com/actplane/actplane/policy/dfa"
)

// Values of enum file_flag in abi.h.
const (
	FileModified = 1 // written inside the scope
	FileNamed    = 2 // renamed or linked inside
	FileUnknown  = 4 // whether either is so is not known

	fileKept    = FileModified | FileNamed | FileUnknown
	fileOfStart = 16 | 32 // mapped, or listened at: of processes, which a restart ends
)

// channelDevices is the first of the numbers of devices (enum channel) under which the
// table has what is no file, and ends with the processes.
const channelDevices = 0xfff00000

// MaxFiles is of how many files a scope remembers something.
const MaxFiles = int(bpf.EnforcerLimitsLIMIT_SCOPE_FILES)

// Keeps tells what is remembered of files under an image: these labels, and whether
// they were changed or named.
func Keeps(image *dfa.Image) (labels uint64, changes bool) {
	return keptLabels(image) &^ image.Integrity, marks(image)
}

// batch is how many entries of a table are read or written in one system call.
const batch = 4096

// FileID names a file as the kernel does. Device is the number of the mounted file
// system, and the inode is the file's there: of an overlay, the overlay's own.
type FileID struct {
	Device     uint32 // major<<20 | minor
	Generation uint32
	Inode      uint64
}

// File is what a scope remembers of a file.
type File struct {
	ID     FileID
	Labels uint64
	Flags  uint32
	// Kept is the row of the image that protects it; 0: nothing does.
	Kept uint32
}

// State is what belongs to a scope's container, and not to one start of it.
type State struct {
	// Fresh lists the gates that are open, by their index in the program.
	Fresh []int
	Files []File
	// AssumedLabels and AssumedFlags are what files that are not listed count as:
	// 0 where all is known of them.
	AssumedLabels, AssumedFlags uint64
	// Image is the hash of the image that the files' Kept is of.
	Image [sha256.Size]byte
}

// State reads a scope's state. Nothing of the scope may run, or it is what it was at
// some moment of the call. The files are in no order.
func (k *Kernel) State(slot Slot) (State, error) {
	scope, err := k.scopeState(slot)
	if err != nil {
		return State{}, err
	}
	state := State{AssumedLabels: scope.AssumedLabels, AssumedFlags: scope.AssumedFlags}
	for gate := range scope.Armed {
		if scope.Armed[gate] > scope.Stale[gate] && scope.Held[gate] == 0 {
			state.Fresh = append(state.Fresh, gate)
		}
	}
	var head bpf.EnforcerImage
	if err := k.maps["images"].Lookup(scope.Image, &head); err != nil {
		return State{}, fmt.Errorf("read the image of scope %d: %w", slot.Index, err)
	}
	if scope.Flags&scopeKeptAll == 0 { // else Kept is of several
		state.Image = head.Hash
	}
	err = k.eachFile(slot, func(key bpf.EnforcerFileKey, value bpf.EnforcerFileState) error {
		value.Flags &= fileKept
		something := value.Labels != 0 || value.Flags != 0 || value.Kept != 0
		if key.Generation == slot.Generation && key.Id.Dev < channelDevices && something {
			state.Files = append(state.Files, File{
				ID:     FileID{Device: key.Id.Dev, Generation: key.Id.Generation, Inode: key.Id.Ino},
				Labels: value.Labels, Flags: value.Flags, Kept: value.Kept,
			})
		}
		return nil
	})
	return state, err
}

// Gates returns which gates of a scope are open, as bits.
func (k *Kernel) Gates(slot Slot) (open uint64, err error) {
	scope, err := k.scopeState(slot)
	if err != nil {
		return 0, err
	}
	for gate := range scope.Armed {
		if scope.Armed[gate] > scope.Stale[gate] && scope.Held[gate] == 0 {
			open |= 1 << gate
		}
	}
	return open, nil
}

// scopeState reads a slot; it is an error when the scope is gone.
func (k *Kernel) scopeState(slot Slot) (bpf.EnforcerScope, error) {
	var scope bpf.EnforcerScope
	if err := k.maps["scopes"].Lookup(slot.Index, &scope); err != nil {
		return scope, fmt.Errorf("read scope %d: %w", slot.Index, err)
	}
	if scope.Generation != slot.Generation {
		return scope, fmt.Errorf("scope %d is gone", slot.Index)
	}
	return scope, nil
}

// eachFile calls f for the files of a slot, of any generation. In batches: the kernel
// takes a bucket of the table at a time, so that entries that come and go meanwhile
// don't make it begin again or miss others.
func (k *Kernel) eachFile(slot Slot, f func(bpf.EnforcerFileKey, bpf.EnforcerFileState) error) error {
	var cursor ebpf.MapBatchCursor
	keys, values := make([]bpf.EnforcerFileKey, batch), make([]bpf.EnforcerFileState, batch)
	for {
		n, err := k.maps["files"].BatchLookup(&cursor, keys, values, nil)
		if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("read the table of files: %w", err)
		}
		for i := range n {
			if keys[i].Scope == slot.Index {
				if err := f(keys[i], values[i]); err != nil {
					return err
				}
			}
		}
		if err != nil { // that was the last
			return nil
		}
	}
}

// protect gives files that something protected under another image what this one
// protects: which of it, is not known.
func (s *State) protect(t *tables) []File {
	if s.Image == t.hash() {
		return s.Files
	}
	files := slices.Clone(s.Files)
	for i := range files {
		if files[i].Kept != 0 {
			files[i].Kept = t.head.KeptAll
		}
	}
	return files
}

// restoreFiles writes what is remembered of files, before anything of the scope runs.
func (k *Kernel) restoreFiles(slot Slot, files []File) error {
	if len(files) > MaxFiles {
		return fmt.Errorf("restore files: %d, a scope has at most %d", len(files), MaxFiles)
	}
	for part := range slices.Chunk(files, batch) {
		keys, values := make([]bpf.EnforcerFileKey, len(part)), make([]bpf.EnforcerFileState, len(part))
		for i, file := range part {
			id := bpf.EnforcerFileId{Ino: file.ID.Inode, Dev: file.ID.Device, Generation: file.ID.Generation}
			keys[i] = bpf.EnforcerFileKey{Id: id, Scope: slot.Index, Generation: slot.Generation}
			values[i] = bpf.EnforcerFileState{Labels: file.Labels, Flags: file.Flags, Kept: file.Kept}
			// First, as the programs do: an entry without an owner would outlive its file.
			if err := k.own(id, slot); err != nil {
				return err
			}
		}
		if _, err := k.maps["files"].BatchUpdate(keys, values, nil); err != nil {
			return fmt.Errorf("restore files: %w", err)
		}
	}
	return nil
}

// own notes that a scope remembers something of a file.
func (k *Kernel) own(id bpf.EnforcerFileId, slot Slot) error {
	owners := bpf.EnforcerFileOwners{Scope: slot.Index, Generation: slot.Generation}
	table := k.maps["owners_by_file"]
	err := table.Update(id, owners, ebpf.UpdateNoExist)
	if errors.Is(err, ebpf.ErrKeyExist) {
		if err = table.Lookup(id, &owners); err == nil && owners.More == 0 && (owners.Scope != slot.Index || owners.Generation != slot.Generation) {
			owners.More = 1
			err = table.Put(id, owners)
		}
		if errors.Is(err, ebpf.ErrKeyNotExist) { // gone in between
			err = table.Put(id, bpf.EnforcerFileOwners{Scope: slot.Index, Generation: slot.Generation, More: 1})
		}
	}
	if err != nil {
		return fmt.Errorf("restore files: %w", err)
	}
	return nil
}

// dropFiles forgets what the scope remembers of files.
func (k *Kernel) dropFiles(slot Slot) error {
	return k.eachFile(slot, func(key bpf.EnforcerFileKey, _ bpf.EnforcerFileState) error {
		if err := k.maps["files"].Delete(key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("forget a file: %w", err)
		}
		return k.disown(key.Id, slot)
	})
}

// disown forgets who remembered something of a file, unless others do too.
func (k *Kernel) disown(id bpf.EnforcerFileId, slot Slot) error {
	var owners bpf.EnforcerFileOwners
	err := k.maps["owners_by_file"].Lookup(id, &owners)
	if err == nil && owners.More == 0 && owners.Scope == slot.Index {
		err = k.maps["owners_by_file"].Delete(id)
	}
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("forget a file: %w", err)
	}
	return nil
}

// Forget makes a live scope forget what it knows of files, assumptions included, and
// closes its gates. What happens at the same time is forgotten or not.
func (k *Kernel) Forget(slot Slot) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if known, ok := k.scopes[slot.Index]; !ok || known.generation != slot.Generation {
		return fmt.Errorf("scope %d is gone", slot.Index)
	}
	program := k.programs["forget_scope"]
	result, err := program.Run(&ebpf.RunOptions{Context: slot.Index})
	if err != nil {
		return fmt.Errorf("forget the state of scope %d: %w", slot.Index, err)
	}
	if result != 0 {
		return fmt.Errorf("forget the state of scope %d: it has none", slot.Index)
	}
	return k.forgetFiles(slot)
}

// forgetFiles is dropFiles while processes run: that they have a file mapped stays, and
// what is in their channels.
func (k *Kernel) forgetFiles(slot Slot) error {
	return k.eachFile(slot, func(key bpf.EnforcerFileKey, value bpf.EnforcerFileState) error {
		switch {
		case key.Id.Dev >= channelDevices:
			return nil
		case value.Flags&fileOfStart != 0:
			err := k.maps["files"].Update(key, bpf.EnforcerFileState{Flags: value.Flags & fileOfStart}, ebpf.UpdateExist)
			if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
				return fmt.Errorf("forget a file: %w", err)
			}
			return nil
		}
		if err := k.maps["files"].Delete(key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("forget a file: %w", err)
		}
		return k.disown(key.Id, slot)
	})
}
