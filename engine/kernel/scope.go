// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/bpf"
)

// enum scope_flag.
const (
	scopeHostRoot  = 1
	scopeSaturated = 2
	scopeKeptAll   = 4
	scopeLocked    = 8
)

// Install puts a cgroup and everything below it under an image. When it returns,
// the policy is in force there; SelfTest proves it.
func (k *Kernel) Install(spec Spec) (Slot, error) {
	t, err := encode(spec.Image)
	if err != nil {
		return Slot{}, err
	}
	id, err := cgroupID(spec.Cgroup)
	if err != nil {
		return Slot{}, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	index, err := k.freeSlot()
	if err != nil {
		return Slot{}, err
	}
	if err := k.attachHooks(needs(spec.Image)); err != nil {
		return Slot{}, errors.Join(err, k.detachUnneeded())
	}
	image, err := k.images.acquire(t, func(slot uint32) error { return t.store(k, slot) })
	if err != nil {
		return Slot{}, errors.Join(err, k.detachUnneeded())
	}
	slot := Slot{Index: index, Generation: newGeneration()}
	k.scopes[index] = installed{generation: slot.Generation, image: image, needs: needs(spec.Image), policy: spec.Image}
	k.current[index].Store(image)
	spec.State.Files = spec.State.protect(t)
	if err := k.bind(slot, spec, id, image); err != nil {
		return Slot{}, errors.Join(err, k.remove(slot))
	}
	return slot, nil
}

// bind makes the scope known to the programs: its state first, then the marker
// that lets its tasks through the filter, last the cgroup that names it.
func (k *Kernel) bind(slot Slot, spec Spec, id uint64, image uint32) error {
	state := spec.State
	scope := bpf.EnforcerScope{
		Generation: slot.Generation, Image: image, Cgroup: id, Clock: 1,
		Files: uint64(len(state.Files)), AssumedLabels: state.AssumedLabels, AssumedFlags: state.AssumedFlags,
	}
	if spec.HostRoot {
		scope.Flags = scopeHostRoot
	}
	for _, gate := range state.Fresh {
		if gate < 0 || gate >= len(scope.Armed) {
			return fmt.Errorf("restore gates: there is no gate %d", gate)
		}
		scope.Armed[gate] = scope.Clock
	}
	switch err := k.restoreFiles(slot, state.Files); {
	case errors.Is(err, unix.E2BIG): // the table is full: what is not in it counts as anything
		scope.Flags |= scopeSaturated
		scope.AssumedLabels, _ = Keeps(spec.Image)
		scope.AssumedFlags = FileUnknown
	case err != nil:
		return err
	}
	if err := k.maps["files_by_scope"].Put(slot.Index, bpf.EnforcerScopeFiles{}); err != nil {
		return fmt.Errorf("clear the scope's files: %w", err)
	}
	if err := k.maps["requests_count"].Put(slot.Index, uint32(0)); err != nil {
		return fmt.Errorf("clear the scope's requests: %w", err)
	}
	if err := k.maps["scopes"].Put(slot.Index, scope); err != nil {
		return fmt.Errorf("write the scope: %w", err)
	}
	if err := k.maps["scopes_by_cgroup"].Put(id, slot.Index); err != nil {
		return fmt.Errorf("bind the cgroup: %w", err)
	}
	marker, err := link.AttachCgroup(link.CgroupOptions{
		Path: spec.Cgroup, Attach: ebpf.AttachCGroupSysctl, Program: k.programs["mark_cgroup"],
	})
	if err != nil {
		return fmt.Errorf("mark cgroup %q: %w", spec.Cgroup, err)
	}
	k.markers[slot.Index] = marker
	path := filepath.Join(k.dir("markers"), strconv.Itoa(int(slot.Index)))
	if err := errors.Join(removeIfThere(path), marker.Pin(path)); err != nil {
		return fmt.Errorf("pin the marker: %w", err)
	}
	return nil
}

// Remove ends a scope; with the last one, all hooks are detached.
func (k *Kernel) Remove(slot Slot) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if known, ok := k.scopes[slot.Index]; !ok || known.generation != slot.Generation {
		return nil
	}
	return k.remove(slot)
}

func (k *Kernel) remove(slot Slot) error {
	errs := []error{k.unbindCgroup(slot)}
	if marker := k.markers[slot.Index]; marker != nil {
		errs = append(errs, marker.Close())
		delete(k.markers, slot.Index)
	}
	errs = append(errs,
		removeIfThere(filepath.Join(k.dir("markers"), strconv.Itoa(int(slot.Index)))),
		k.maps["scopes"].Put(slot.Index, bpf.EnforcerScope{}),
		k.dropFiles(slot), k.dropAsks(slot), k.dropLost(slot.Index), k.dropSharers(slot), k.dropConfined(slot))
	if known, ok := k.scopes[slot.Index]; ok {
		delete(k.scopes, slot.Index)
		errs = append(errs, k.images.release(known.image, k.dropTables))
		if known.previous != 0 {
			errs = append(errs, k.images.release(known.previous-1, k.dropTables))
		}
	}
	errs = append(errs, k.detachSoon())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove scope %d: %w", slot.Index, err)
	}
	return nil
}

func (k *Kernel) unbindCgroup(slot Slot) error {
	id, err := k.Cgroup(slot)
	if err != nil || id == 0 {
		return err
	}
	if err := k.maps["scopes_by_cgroup"].Delete(id); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("unbind the cgroup: %w", err)
	}
	return nil
}

// Cgroup returns the id of the cgroup that a scope is bound to: the inode number of
// its directory. 0: the scope is gone.
func (k *Kernel) Cgroup(slot Slot) (uint64, error) {
	var scope bpf.EnforcerScope
	if err := k.maps["scopes"].Lookup(slot.Index, &scope); err != nil {
		return 0, fmt.Errorf("read scope %d: %w", slot.Index, err)
	}
	if scope.Generation != slot.Generation {
		return 0, nil
	}
	return scope.Cgroup, nil
}

// freeSlot finds a slot that no scope has.
func (k *Kernel) freeSlot() (uint32, error) {
	for index := uint32(0); index < uint32(bpf.EnforcerLimitsLIMIT_SCOPES); index++ {
		if _, used := k.scopes[index]; !used {
			return index, nil
		}
	}
	return 0, fmt.Errorf("the engine holds %d scopes, and all are in use", bpf.EnforcerLimitsLIMIT_SCOPES)
}

// attachHooks attaches and pins what is needed and not attached yet.
func (k *Kernel) attachHooks(needed need) error {
	counts := k.links[k.freed()] != nil
	for _, h := range k.present {
		name := h.program(k.tier, k.idmap)
		if name == "" || h.need&needed == 0 || k.links[name] != nil {
			continue
		}
		attached, err := attach(k.programs[name])
		if err != nil {
			return fmt.Errorf("attach %q: %w", name, err)
		}
		k.links[name] = attached
		path := filepath.Join(k.dir("links"), name)
		if err := errors.Join(removeIfThere(path), attached.Pin(path)); err != nil {
			return fmt.Errorf("pin link %q: %w", name, err)
		}
	}
	if counts {
		return nil
	}
	// Until now nobody has counted the directories that were freed.
	result, err := k.programs["forget_paths"].Run(&ebpf.RunOptions{})
	if err != nil || result != 0 {
		return fmt.Errorf("forget the paths that are known: %d, %w", result, err)
	}
	return nil
}

// freed names the program that sees what inodes are freed.
func (k *Kernel) freed() string {
	return hook{name: "inode_free_security"}.program(k.tier, k.idmap)
}

// detachSoon detaches what no live scope needs, after the time that hooks linger. If the
// process dies before, the next one does it when it opens the kernel side.
func (k *Kernel) detachSoon() error {
	if k.config.Linger == 0 {
		return k.detachUnneeded()
	}
	if k.lingers {
		k.lingering.Stop()
	}
	k.lingers = true
	k.lingering = time.AfterFunc(k.config.Linger, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.lingers { // else it is closed
			k.lingers = false
			k.lingered = k.detachUnneeded()
		}
	})
	return nil
}

// DetachLingering detaches at once what lingers and no live scope needs.
func (k *Kernel) DetachLingering() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.detachUnneeded()
}

// detachUnneeded detaches what no live scope needs.
func (k *Kernel) detachUnneeded() error {
	var needed need
	for _, s := range k.scopes {
		needed |= s.needs
		if s.locked {
			needed |= needAll
		}
	}
	var errs []error
	for _, h := range k.present {
		name := h.program(k.tier, k.idmap)
		attached := k.links[name]
		if attached == nil || h.need&needed != 0 {
			continue
		}
		errs = append(errs, removeIfThere(filepath.Join(k.dir("links"), name)), attached.Close())
		delete(k.links, name)
	}
	if len(k.scopes) == 0 {
		errs = append(errs, k.forgetStrays())
	}
	return errors.Join(errs...)
}

// forgetStrays lets tasks pass by the marker alone again. No program may run.
func (k *Kernel) forgetStrays() error {
	var host bpf.EnforcerHost
	if err := k.maps["hosts"].Lookup(uint32(0), &host); err != nil {
		return fmt.Errorf("read the host's state: %w", err)
	}
	host.Strays = 0
	if err := k.maps["hosts"].Put(uint32(0), host); err != nil {
		return fmt.Errorf("write the host's state: %w", err)
	}
	return nil
}

// SetExempt puts the scope's feedback socket and the guest binary outside of the
// rules, by inode; an empty guestPath is no guest. It is called again when either
// was made anew.
func (k *Kernel) SetExempt(slot Slot, socketPath, guestPath string) error {
	return k.updateFiles(slot, func(files *bpf.EnforcerScopeFiles) error {
		var err error
		if files.Feedback, err = fileID(socketPath); err != nil {
			return err
		}
		files.Guest = bpf.EnforcerFileId{}
		if guestPath != "" {
			files.Guest, err = fileID(guestPath)
		}
		return err
	})
}

func (k *Kernel) updateFiles(slot Slot, update func(*bpf.EnforcerScopeFiles) error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if known, ok := k.scopes[slot.Index]; !ok || known.generation != slot.Generation {
		return fmt.Errorf("scope %d is gone", slot.Index)
	}
	var files bpf.EnforcerScopeFiles
	if err := k.maps["files_by_scope"].Lookup(slot.Index, &files); err != nil {
		return fmt.Errorf("read the scope's files: %w", err)
	}
	if err := update(&files); err != nil {
		return err
	}
	if err := k.maps["files_by_scope"].Put(slot.Index, files); err != nil {
		return fmt.Errorf("write the scope's files: %w", err)
	}
	return nil
}

// fileID names a file as the kernel does.
func fileID(path string) (bpf.EnforcerFileId, error) {
	var stat unix.Stat_t
	if err := unix.Lstat(path, &stat); err != nil {
		return bpf.EnforcerFileId{}, fmt.Errorf("stat %q: %w", path, err)
	}
	return identity(&stat), nil
}

func fileIDOf(file *os.File) (bpf.EnforcerFileId, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &stat); err != nil {
		return bpf.EnforcerFileId{}, fmt.Errorf("stat %q: %w", file.Name(), err)
	}
	return identity(&stat), nil
}

// identity: stat's device number is packed differently (MKDEV in
// include/linux/kdev_t.h).
func identity(stat *unix.Stat_t) bpf.EnforcerFileId {
	return bpf.EnforcerFileId{Ino: stat.Ino, Dev: unix.Major(stat.Dev)<<20 | unix.Minor(stat.Dev)}
}

// cgroupID returns the id that the programs see: the directory's inode number.
func cgroupID(dir string) (uint64, error) {
	var stat unix.Stat_t
	if err := unix.Stat(dir, &stat); err != nil {
		return 0, fmt.Errorf("stat cgroup %q: %w", dir, err)
	}
	return stat.Ino, nil
}

// newGeneration tells a scope apart from all that had its slot before.
func newGeneration() uint32 {
	var bytes [4]byte
	for {
		_, _ = rand.Read(bytes[:]) // never fails
		if n := binary.NativeEndian.Uint32(bytes[:]); n != 0 {
			return n
		}
	}
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Stats returns a scope's counters.
func (k *Kernel) Stats(slot Slot) (Stats, error) {
	scope, err := k.scopeState(slot)
	if err != nil {
		return Stats{}, err
	}
	return Stats{Denied: scope.Denied, Notified: scope.Notified, Lost: scope.Lost, Starved: scope.Starved, Unnoted: scope.GainsMissed,
		Locked: scope.Flags&scopeLocked != 0, Refused: scope.Locked,
		Saturated: scope.Flags&scopeSaturated != 0}, nil
}

// Process returns what the kernel side keeps of a process; false when it is in no
// scope or gone.
func (k *Kernel) Process(pid int) (Process, bool, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) {
		return Process{}, false, nil
	}
	if err != nil {
		return Process{}, false, fmt.Errorf("open process %d: %w", pid, err)
	}
	defer unix.Close(fd)
	var state bpf.EnforcerProcess
	err = k.maps["processes"].Lookup(uint32(fd), &state)
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return Process{}, false, nil
	}
	if err != nil {
		return Process{}, false, fmt.Errorf("look up process %d: %w", pid, err)
	}
	process := Process{
		ID:     ProcessID(state.Id),
		Slot:   Slot{Index: state.Scope, Generation: state.Generation},
		Setup:  state.Flags&processSetup != 0,
		Deep:   state.Flags&processDeep != 0,
		Labels: state.Labels, Lineage: state.Lineage, Cleared: state.Cleared,
	}
	process.Ancestors = ancestors(state.Ancestors[:])
	var confined bpf.EnforcerConfined // which it takes when it does something
	if err := k.maps["confined_by_id"].Lookup(state.Id, &confined); err == nil {
		process.Labels |= confined.Labels
	}
	return process, true, nil
}

func ancestors(ids []uint64) []ProcessID {
	var result []ProcessID
	for _, id := range ids {
		if id == 0 {
			break
		}
		result = append(result, ProcessID(id))
	}
	return result
}

// Problems tells in sentences what is not as it should be on this host.
func (k *Kernel) Problems() []string {
	var problems []string
	if k.skips {
		problems = append(problems, "degraded: under load this kernel skips some programs of the fmod_ret tier, and what they "+
			"would refuse goes through; boot with lsm=...,bpf")
	}
	k.mu.Lock()
	lingered := k.lingered
	k.mu.Unlock()
	if lingered != nil {
		problems = append(problems, fmt.Sprintf("hooks that no container needs stay attached: %v", lingered))
	}
	var misses uint64
	for _, program := range k.programs {
		if stats, err := program.Stats(); err == nil {
			misses += stats.RecursionMisses
		}
	}
	switch {
	case misses > 0 && k.tier == FmodRet:
		problems = append(problems, fmt.Sprintf("%d operations on this host were not looked at, because another task was "+
			"preempted in the middle of a program; boot with lsm=...,bpf", misses))
	case misses > 0: // programs that are no LSM programs: splice, and what begins and ends processes
		problems = append(problems, fmt.Sprintf("%d splices, forks or ends of processes on this host were not looked at, because "+
			"another task was preempted in the middle of a program; labels may be missing in a pipe", misses))
	}
	return problems
}
