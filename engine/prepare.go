// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/engine/state"
	"github.com/actplane/actplane/feedback"
)

// prepare stages a scope: compiled, on disk, with a socket, not yet enforced.
func (e *Engine) prepare(req *api.PrepareRequest) (*api.PrepareResponse, error) {
	if err := checkID(req.Id); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if req.Mode != "" && req.Mode != "enforce" {
		return nil, status.Errorf(codes.InvalidArgument, "mode %q is not supported; use \"enforce\"", req.Mode)
	}
	img, err := e.images.acquire(req.Program)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	defer e.ids.lock(req.Id)()
	if err := e.refuseLocked(req.Id); err != nil {
		e.images.release(img)
		return nil, err
	}
	if err := e.makeRoom(req.Id); err != nil {
		e.images.release(img)
		return nil, err
	}
	s := e.newScope(req, img)
	if err := e.stage(s); err != nil {
		e.discard(s)
		return nil, status.Error(codes.Internal, err.Error())
	}
	e.mu.Lock()
	e.scopes[s.id] = s
	e.mu.Unlock()
	e.log.WithFields(s.fields()).Debug("scope staged")
	if req.NoFeedback {
		return &api.PrepareResponse{}, nil
	}
	return &api.PrepareResponse{Directory: s.guestDir()}, nil
}

func (e *Engine) newScope(req *api.PrepareRequest, img *image) *scope {
	s := &scope{
		id:       req.Id,
		dir:      filepath.Join(e.dir, "scopes", req.Id),
		program:  img.program,
		requests: newRequests(filepath.Join(e.dir, "scopes", req.Id)),
		image:    img,
		record: record{
			Version: recordVersion, ID: req.Id, Name: req.Name, Mode: "enforce", State: staged,
			Program: req.Program, Clauses: img.clauseNumbers(), Defaults: img.defaultNumbers(), Protects: img.protectNumbers(), Prepared: e.config.now(),
			Warnings: req.Warnings, Home: req.Home, Image: req.Image, NoFeedback: req.NoFeedback,
		},
	}
	if req.EndedUnixMs > 0 {
		s.record.Ended = time.UnixMilli(req.EndedUnixMs)
	}
	for _, l := range req.Layers {
		s.record.Layers = append(s.record.Layers, layer{Name: l.Name, Text: l.Text})
	}
	return s
}

// makeRoom removes a dead scope of the same id: a container that is started
// again has the id it had.
func (e *Engine) makeRoom(id string) error {
	old := e.scope(id)
	if old == nil {
		return nil
	}
	r := old.now()
	if r.State != staged && e.alive(r) {
		return status.Errorf(codes.AlreadyExists, "scope %q is in use: its container still runs in %s", id, r.Cgroup)
	}
	if err := e.finish(old, "its container is started again"); err != nil {
		return status.Errorf(codes.Internal, "close the earlier scope %q: %v", id, err)
	}
	return nil
}

// stage makes the scope's directory and socket and saves its record.
func (e *Engine) stage(s *scope) error {
	e.mu.Lock()
	e.spoilt = slices.DeleteFunc(e.spoilt, func(dir string) bool { return dir == s.dir }) // it is ours from now on
	e.mu.Unlock()
	// A directory without a scope is what a killed daemon left.
	if err := os.RemoveAll(s.dir); err != nil {
		return fmt.Errorf("remove stale scope directory: %w", err)
	}
	if err := makeDir(s.dir, 0o711); err != nil {
		return err
	}
	if err := e.stageGuest(s); err != nil {
		return err
	}
	// Events and counters belong to the container, not to one start of it.
	var items []feedback.Item
	var before kernel.Stats
	var last uint64
	var passages []passage
	if old := e.earlier(s.id, s.now().Home); old != nil {
		passages = old.provenance.list()
		items, before, last = old.events.Items(0), e.stats(old), old.events.Last()
		old.told.copyTo(s.dir)
	} else if saved := e.earlierStarts(s); saved != nil {
		c := saved.Counters
		before = kernel.Stats{Denied: c.Denied, Notified: c.Notified, Lost: c.Lost, Starved: c.Starved}
		last = saved.Sequence
	}
	var err error
	if s.events, err = newHistory(s.dir, items, last); err != nil {
		return err
	}
	if s.provenance, err = newProvenance(s.dir, passages); err != nil {
		return err
	}
	s.told = loadCursors(s.dir, last)
	return s.change(func(r *record) { r.Before, r.Base.Sequence = before, last })
}

// stageGuest makes what the container is to see: the guest program, and the socket.
func (e *Engine) stageGuest(s *scope) error {
	if s.now().NoFeedback {
		return nil
	}
	for _, dir := range []string{s.guestDir(), filepath.Join(s.guestDir(), "bin")} {
		if err := makeDir(dir, 0o755); err != nil {
			return err
		}
	}
	if e.guest != "" {
		if err := os.Link(e.guest, filepath.Join(s.guestDir(), "bin", guestName)); err != nil {
			return fmt.Errorf("link guest binary: %w", err)
		}
	}
	// Any user of the container may connect; who it is, the kernel side knows.
	listener, err := listenUnix(s.socketPath(), 0o666)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listener = listener
	return nil
}

// earlier finds the closed scope of a container that is started again, or nil. Another one
// may have had the same id; see state.Another.
func (e *Engine) earlier(id, home string) *scope {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, old := range e.closed {
		if old.id == id && !state.Another(old.now().Home, home) {
			return old
		}
	}
	return nil
}

// discard undoes a scope that never came to be enforced, or whose traces are
// all in the kernel and gone. It forgets it; what cannot be removed is logged.
func (e *Engine) discard(s *scope) {
	s.closeListener()
	if s.events != nil {
		s.events.close()
	}
	if s.provenance != nil {
		s.provenance.close()
	}
	// A bind mount of the directory elsewhere does not hold it.
	if err := os.RemoveAll(s.dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		e.log.WithFields(s.fields()).WithError(err).Warn("remove scope directory")
	}
	e.mu.Lock()
	if e.scopes[s.id] == s {
		delete(e.scopes, s.id)
	}
	e.mu.Unlock()
	s.mu.Lock()
	img := s.image
	s.image = nil
	s.mu.Unlock()
	e.images.release(img)
}
