// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/actplane/actplane/engine/api"
)

// service answers the API.
type service struct {
	engine *Engine
	peer   peer
}

// checkPeer lets in whoever runs as the daemon does, but for processes of a
// scope: root inside a container that has the socket mounted is not an operator.
// A peer that is gone cannot be looked at: it may have connected for another.
func (e *Engine) checkPeer(peer *unix.Ucred) error {
	if int(peer.Uid) != os.Geteuid() {
		return errors.New("the peer is another user")
	}
	pid := int(peer.Pid)
	if _, found, err := e.config.Kernel.Process(pid); err != nil || found {
		return cmp.Or(err, errors.New("the peer is inside a scope"))
	}
	// Not known to the kernel side, but perhaps where a scope's processes are.
	if dir, err := e.config.host.Cgroup(pid); err == nil {
		for _, s := range e.live() {
			if r := s.now(); r.Cgroup != "" && within(dir, r.Cgroup) {
				return errors.New("the peer is inside a scope")
			}
		}
	}
	// Asked last: what lives now lived when it was looked up.
	if _, err := e.config.host.StartTime(pid); err != nil {
		return fmt.Errorf("find the peer: %w", err)
	}
	return nil
}

// Status implements api.EngineService.
func (s *service) Status(context.Context, *api.StatusRequest) (*api.StatusResponse, error) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return nil, status.Errorf(codes.Internal, "read kernel version: %v", err)
	}
	return &api.StatusResponse{
		Version: s.engine.config.Version,
		Tier:    string(s.engine.config.Kernel.Tier()),
		Kernel:  unix.ByteSliceToString(name.Release[:]),
		Pid:     int64(os.Getpid()),
		Scopes:  uint32(len(s.engine.live())),

		Degraded: s.engine.degraded(),
		Notices:  s.engine.config.Notifications.Problems(),
	}, nil
}

// Prepare implements api.EngineService.
func (s *service) Prepare(_ context.Context, req *api.PrepareRequest) (*api.PrepareResponse, error) {
	return s.engine.prepare(req)
}

// Attach implements api.EngineService.
func (s *service) Attach(ctx context.Context, req *api.AttachRequest) (*api.AttachResponse, error) {
	return s.engine.attach(ctx, req)
}

// Close implements api.EngineService.
func (s *service) Close(_ context.Context, req *api.CloseRequest) (*api.CloseResponse, error) {
	if err := s.engine.closeScope(req); err != nil {
		return nil, status.Errorf(codes.Internal, "close scope %q: %v", req.Id, err)
	}
	return &api.CloseResponse{}, nil
}

// States implements api.EngineService.
func (s *service) States(context.Context, *api.StatesRequest) (*api.StatesResponse, error) {
	return s.engine.savedStates()
}

// Reset implements api.EngineService.
func (s *service) Reset(_ context.Context, req *api.ResetRequest) (*api.ResetResponse, error) {
	return s.engine.reset(req.Scope)
}

// List implements api.EngineService.
func (s *service) List(_ context.Context, req *api.ListRequest) (*api.ListResponse, error) {
	problems := s.engine.degraded()
	response := &api.ListResponse{}
	room := maxListed
	for _, scope := range s.engine.all() {
		out := s.engine.describe(scope, problems)
		if req.Clauses && out.State != string(closed) {
			room = s.engine.listClauses(scope, out, room)
		}
		response.Scopes = append(response.Scopes, out)
	}
	for _, locked := range s.engine.lockedScopes() { // in place of one that was closed lately
		response.Scopes = slices.DeleteFunc(response.Scopes, func(other *api.Scope) bool { return other.Id == locked.Id })
		response.Scopes = append(response.Scopes, locked)
	}
	s.engine.mu.Lock()
	response.Scopes = append(response.Scopes, s.engine.unread...)
	s.engine.mu.Unlock()
	slices.SortFunc(response.Scopes, func(a, b *api.Scope) int {
		return cmp.Or(cmp.Compare(a.StartedUnixMs, b.StartedUnixMs), strings.Compare(a.Id, b.Id))
	})
	return response, nil
}

// Events implements api.EngineService.
func (s *service) Events(ctx context.Context, req *api.EventsRequest, stream api.Engine_EventsServer) error {
	return s.engine.stream(ctx, req, stream.Send)
}

// Provenance implements api.EngineService.
func (s *service) Provenance(_ context.Context, req *api.ProvenanceRequest) (*api.ProvenanceResponse, error) {
	return s.engine.provenance(req.Scope, req.Sequence)
}

// Lockdown implements api.EngineService.
func (s *service) Lockdown(_ context.Context, req *api.LockdownRequest) (*api.LockdownResponse, error) {
	return s.engine.lockdown(req)
}

// Unlock implements api.EngineService.
func (s *service) Unlock(_ context.Context, req *api.UnlockRequest) (*api.UnlockResponse, error) {
	return s.engine.unlock(req)
}

// degraded lists what is not as it should be for all scopes.
func (e *Engine) degraded() []string {
	e.mu.Lock()
	own := slices.Clone(e.problems)
	e.mu.Unlock()
	return append(own, e.config.Kernel.Problems()...)
}

// running leaves of several containers that a word fits the one that runs, if only one
// does: those that had its name before are rarely meant.
func (e *Engine) running(ids []string) []string {
	var live []string
	for _, id := range ids {
		if e.scope(id) != nil {
			live = append(live, id)
		}
	}
	if len(live) == 1 {
		return live
	}
	return ids
}

// find finds the scopes that a word names: an id, the one name that it is, or the one id
// that it begins. Closed ones count, but see running. The empty word names all.
func (e *Engine) find(word string) (scopes []*scope, id string, err error) {
	all := e.all()
	if word == "" {
		return all, "", nil
	}
	matchers := []func(*scope) bool{
		func(s *scope) bool { return s.id == word },
		func(s *scope) bool { return s.now().Name == word },
		func(s *scope) bool { return strings.HasPrefix(s.id, word) },
	}
	for _, matches := range matchers {
		var found []*scope
		var ids []string
		for _, s := range all {
			if matches(s) {
				found = append(found, s)
				ids = append(ids, s.id)
			}
		}
		slices.Sort(ids)
		ids = e.running(slices.Compact(ids))
		if len(ids) > 1 {
			return nil, "", status.Errorf(codes.InvalidArgument, "%q fits %d scopes; give more of the id (\"actplane ps\" lists them)", word, len(ids))
		}
		if len(ids) == 1 {
			return slices.DeleteFunc(found, func(s *scope) bool { return s.id != ids[0] }), ids[0], nil
		}
	}
	return nil, "", status.Errorf(codes.NotFound, "no scope is %q; \"actplane ps\" lists them", word)
}
