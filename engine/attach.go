// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sirupsen/logrus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/engine/state"
)

// target is the process whose cgroup becomes a scope's.
type target struct {
	pid      int
	start    uint64
	cgroup   string
	cgroupID uint64
}

// attach puts a staged scope into force. On any failure nothing of the scope is
// left, so that the container's creation fails and can be tried again.
func (e *Engine) attach(ctx context.Context, req *api.AttachRequest) (*api.AttachResponse, error) {
	if err := checkID(req.Id); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	defer e.ids.lock(req.Id)()
	s := e.scope(req.Id)
	if s == nil {
		return nil, status.Errorf(codes.NotFound, "scope %q is not prepared", req.Id)
	}
	r := s.now()
	if r.State == enforcing {
		return e.attachAgain(r, int(req.Pid))
	}
	to, err := e.findTarget(s.id, int(req.Pid))
	if err == nil {
		err = e.refuseLocked(s.id)
	}
	if err == nil {
		err = e.install(ctx, s, to, req.Rootfs)
	}
	if err != nil {
		e.log.WithFields(s.fields()).WithError(err).Error("scope not started")
		e.undo(s)
		return nil, status.Errorf(codes.FailedPrecondition, "start scope %q: %v", s.id, err)
	}
	e.log.WithFields(s.fields()).WithFields(logrus.Fields{"cgroup": to.cgroup, "feedback": s.feedback()}).Info("scope enforcing")
	if lost := s.now().Lost; lost != "" {
		e.log.WithFields(s.fields()).Error(lostSentence(s.id, lost))
	}
	for _, sentence := range s.now().Warnings {
		e.log.WithFields(s.fields()).Warn(sentence)
	}
	return &api.AttachResponse{Tier: string(e.config.Kernel.Tier()), Cgroup: to.cgroupID}, nil
}

// keepsHostRoot tells whether a container's root directory is the host's own: it has
// none of its own, or it is a bind mount of it. The kernel side could not tell such a
// container's first program from runc.
func keepsHostRoot(pid int, rootfs string) bool {
	if rootfs == "" {
		return true
	}
	host, err := os.Stat("/")
	if err != nil {
		return true
	}
	own, err := os.Stat(filepath.Join("/proc", strconv.Itoa(pid), "root", rootfs))
	return err == nil && os.SameFile(host, own)
}

// attachAgain answers a hook that is registered twice.
func (e *Engine) attachAgain(r record, pid int) (*api.AttachResponse, error) {
	start, err := e.config.host.StartTime(pid)
	if err != nil || pid != r.PID || start != r.PIDStart {
		return nil, status.Errorf(codes.AlreadyExists, "scope %q is already in force for process %d", r.ID, r.PID)
	}
	return &api.AttachResponse{Tier: string(e.config.Kernel.Tier()), Cgroup: r.CgroupID}, nil
}

// findTarget finds the process's cgroup and refuses one that is not its own: a
// policy there would hit strangers.
func (e *Engine) findTarget(id string, pid int) (target, error) {
	h := e.config.host
	to := target{pid: pid}
	var err error
	if to.start, err = h.StartTime(pid); err != nil {
		return to, fmt.Errorf("find process %d: %w", pid, err)
	}
	if to.cgroup, err = h.Cgroup(pid); err != nil {
		return to, fmt.Errorf("find the cgroup of process %d: %w", pid, err)
	}
	mount, err := h.Mount()
	if err != nil {
		return to, fmt.Errorf("find the cgroup v2 file system: %w", err)
	}
	if to.cgroup == mount || !within(to.cgroup, mount) {
		return to, fmt.Errorf("process %d is in the root cgroup, which is the host's; the container needs a cgroup of its own", pid)
	}
	if to.cgroupID, err = h.CgroupID(to.cgroup); err != nil {
		return to, fmt.Errorf("read cgroup: %w", err)
	}
	pids, err := h.Processes(to.cgroup)
	if err != nil {
		return to, fmt.Errorf("list the processes of %s: %w", to.cgroup, err)
	}
	for _, other := range pids {
		if !e.descends(other, pid) {
			return to, fmt.Errorf("the cgroup %s also holds process %d, which is not the container's; the container needs a cgroup of its own", to.cgroup, other)
		}
	}
	for _, s := range e.live() {
		r := s.now()
		if s.id != id && r.Cgroup != "" && (within(r.Cgroup, to.cgroup) || within(to.cgroup, r.Cgroup)) && e.alive(r) {
			return to, fmt.Errorf("the cgroup %s overlaps with that of scope %q, %s", to.cgroup, s.id, r.Cgroup)
		}
	}
	return to, e.verify(to)
}

// verify makes sure that a target is still what it was.
func (e *Engine) verify(to target) error {
	start, err := e.config.host.StartTime(to.pid)
	if err != nil {
		return fmt.Errorf("find process %d: %w", to.pid, err)
	}
	dir, err := e.config.host.Cgroup(to.pid)
	if err != nil {
		return fmt.Errorf("find the cgroup of process %d: %w", to.pid, err)
	}
	if start != to.start || dir != to.cgroup {
		return fmt.Errorf("process %d ended or moved to another cgroup meanwhile", to.pid)
	}
	return nil
}

// descends tells whether pid is first or one of its descendants; a process that
// is gone meanwhile is nobody's stranger.
func (e *Engine) descends(pid, first int) bool {
	for range 1 << 16 {
		if pid == first {
			return true
		}
		parent, err := e.config.host.Parent(pid)
		if errors.Is(err, fs.ErrNotExist) {
			return true
		}
		if err != nil || parent <= 1 {
			return false
		}
		pid = parent
	}
	return false
}

// within tells whether path is dir or below it.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// install brings the scope into the kernel and proves it. Its record is saved
// before and after the step that the kernel remembers.
func (e *Engine) install(ctx context.Context, s *scope, to target, rootfs string) error {
	past, err := e.past(s, to.pid, rootfs)
	if err != nil {
		return err
	}
	hostRoot := keepsHostRoot(to.pid, rootfs)
	err = s.change(func(r *record) {
		r.State, r.PID, r.PIDStart, r.Cgroup, r.CgroupID = attaching, to.pid, to.start, to.cgroup, to.cgroupID
		r.HostRoot = hostRoot
	})
	if err != nil {
		return err
	}
	slot, err := e.occupy(s, to.cgroup, hostRoot, past.kernel)
	if err != nil {
		return err
	}
	if err := e.restoreAnswers(s, slot, past.saved); err != nil {
		return err
	}
	if err := e.exempt(s, slot, s.socketPath()); err != nil {
		return err
	}
	if err := e.selfTest(ctx, slot, to.cgroup); err != nil {
		return err
	}
	if err := e.verify(to); err != nil {
		return err
	}
	stats, err := e.config.Kernel.Stats(slot)
	if err != nil {
		return fmt.Errorf("read counters: %w", err)
	}
	if rootfs != "" { // a container, which may be started again
		run := newRun()
		// The record first: a daemon that finds the note must know whose it is.
		if err := s.change(func(r *record) { r.Run = run }); err != nil {
			return err
		}
		if err := e.states.Begin(s.id, run); err != nil {
			return err
		}
	}
	err = s.change(func(r *record) {
		r.State, r.Attached = enforcing, e.config.now()
		r.Base = base{Records: records(stats), Sequence: s.events.Last()}
	})
	if err != nil {
		return err
	}
	return e.serveFeedback(s)
}

// past finds what earlier starts of the container have left for this one, and notes in
// the record what the next will need to know.
func (e *Engine) past(s *scope, pid int, rootfs string) (restoredState, error) {
	if rootfs == "" {
		return restoredState{}, nil // what has no root directory of its own is started once
	}
	filesystems, err := e.filesystems(pid, rootfs)
	if err != nil {
		return restoredState{}, err
	}
	saved := e.earlierStarts(s)
	if err := e.addAgain(s, saved); err != nil {
		return restoredState{}, err
	}
	past, err := e.translate(s, saved, filesystems)
	if err != nil {
		return past, err
	}
	img, err := e.tables(s)
	if err != nil {
		return past, err
	}
	kept, marks := kernel.Keeps(img.tables)
	names := state.Names(state.Labels(img.program), kept)
	return past, s.change(func(r *record) {
		r.Filesystems, r.Lost = filesystems, past.lost
		r.Kept, r.Marks = names, marks
		r.Warnings = append(slices.Clip(r.Warnings), past.warnings...)
	})
}

// occupy installs the scope's image and remembers the slot.
func (e *Engine) occupy(s *scope, cgroup string, hostRoot bool, past kernel.State) (kernel.Slot, error) {
	img, err := e.tables(s)
	if err != nil {
		return kernel.Slot{}, err
	}
	slot, err := e.config.Kernel.Install(kernel.Spec{Cgroup: cgroup, HostRoot: hostRoot, Image: img.tables, State: past})
	if err != nil {
		return slot, fmt.Errorf("install policy: %w", err)
	}
	e.mu.Lock()
	e.slots[slot] = s
	e.mu.Unlock()
	return slot, s.change(func(r *record) {
		r.Slot = &slot
		r.Clauses, r.Defaults, r.Protects = img.clauseNumbers(), img.defaultNumbers(), img.protectNumbers()
	})
}

func (e *Engine) selfTest(ctx context.Context, slot kernel.Slot, cgroup string) error {
	ctx, cancel := context.WithTimeout(ctx, selfTestTimeout)
	defer cancel()
	if err := e.config.Kernel.SelfTest(ctx, slot, cgroup); err != nil {
		return fmt.Errorf("self-test: %w", err)
	}
	return nil
}

// undo removes a scope whose start failed, from the kernel too. If the kernel
// side won't let go, the scope stays, enforced, for the sweep to close.
func (e *Engine) undo(s *scope) {
	if slot := s.now().Slot; slot != nil {
		if err := e.config.Kernel.Remove(*slot); err != nil {
			e.log.WithFields(s.fields()).WithError(err).Error("remove scope from the kernel")
			return
		}
		e.forget(*slot)
	}
	// Its program has not run: what was saved before is still so.
	if err := e.states.Cancel(s.id); err != nil {
		e.log.WithFields(s.fields()).WithError(err).Error("take back the note of a start")
	}
	e.discard(s)
}

// forget lets the kernel reuse a slot without our taking its records for ours.
func (e *Engine) forget(slot kernel.Slot) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.slots, slot)
}
