// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/engine/state"
	"github.com/actplane/actplane/policy"
	"github.com/actplane/actplane/policy/ir"
)

// stateSweepInterval is how often saved states are looked at.
const stateSweepInterval = 10 * time.Second

// earlierStarts gives what is kept of earlier starts of a container, nil for nothing.
// One that is known to have run, and of which nothing is kept, has a state that is lost.
func (e *Engine) earlierStarts(s *scope) *state.Saved {
	r := s.now()
	saved, ended := e.states.Load(s.id, r.Home), r.Ended
	if saved == nil && !ended.IsZero() && e.config.now().Sub(ended) < e.config.Retention {
		return &state.Saved{ID: s.id, Lost: "it has run before, and nothing was saved of it"}
	}
	return saved
}

// answersInForce are the requests whose answers the next start is to know. What is left
// of a counted grant the kernel knows, who was away in between or not.
func (e *Engine) answersInForce(s *scope, slot kernel.Slot) ([]byte, error) {
	known, err := e.config.Kernel.Answers(slot)
	if err != nil {
		return nil, fmt.Errorf("read answers: %w", err)
	}
	left := map[kernel.AskKey]uint32{}
	for key, a := range known {
		left[key] = a.Count
	}
	var kept []request
	for _, r := range s.requests.list() {
		if !r.Answer.inForce(e.config.now()) || r.Item.RuleAdded {
			continue // rules that were added have other numbers the next time
		}
		if r.Answer.Count > 0 {
			n := min(r.Answer.Count, left[r.Key])
			if left[r.Key] -= n; n == 0 {
				continue
			}
			counted := *r.Answer
			counted.Used = uint64(counted.Count - n)
			r.Answer = &counted
		}
		kept = append(kept, r)
	}
	if kept == nil {
		return nil, nil
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return nil, fmt.Errorf("encode answers: %w", err)
	}
	return text, nil
}

// rulesSum tells policies apart by what gives their rules and defaults the numbers by
// which answers know them: the documents, and the rules that these wrote. Built-in rules
// come behind, and depend on how the container is mounted; behind them is what was added
// at run time.
func rulesSum(p *ir.Program) []byte {
	h := sha256.New()
	for _, l := range p.Layers {
		if l.SHA256 != "" && !l.Added {
			fmt.Fprintf(h, "layer %q %q\n", l.SHA256, l.Domain)
		}
	}
	for _, r := range p.Rules {
		if r.Pos != policy.BuiltIn && !added(p, r.Layer) {
			fmt.Fprintf(h, "rule %q %d %q\n", r.Name, r.Layer, r.Because)
		}
	}
	fmt.Fprintf(h, "workspace %q\n", p.Workspace)
	return h.Sum(nil)
}

// added tells whether a layer came at run time.
func added(p *ir.Program, layer int) bool {
	return layer >= 0 && layer < len(p.Layers) && p.Layers[layer].Added
}

// restoreAnswers puts what people said in earlier starts into force again. They are about
// the rules of one policy: under another one people are asked anew.
func (e *Engine) restoreAnswers(s *scope, slot kernel.Slot, saved *state.Saved) error {
	if saved == nil || saved.Answers == nil {
		return nil
	}
	if sum := rulesSum(s.rules()); !bytes.Equal(sum, saved.Program) {
		return nil
	}
	var kept []*request
	if err := json.Unmarshal(saved.Answers, &kept); err != nil {
		return fmt.Errorf("restore answers: %w", err)
	}
	now := e.config.now()
	kept = slices.DeleteFunc(kept, func(r *request) bool { return !r.Answer.inForce(now) })
	for _, r := range kept {
		r.told = true
		if _, _, err := e.findRequest(r.ID); err == nil { // a request of another container got its name meanwhile
			r.ID = e.newRequestID()
		}
	}
	for _, r := range kept {
		a := kernel.Answer{Denied: r.Answer.Denied, Timed: r.Answer.Count == 0}
		if r.Answer.Count > 0 {
			a.Count = r.Answer.Count - uint32(r.Answer.Used)
		}
		if !r.Answer.Until.IsZero() {
			a.For = r.Answer.Until.Sub(now)
		}
		if err := e.config.Kernel.SetAnswer(slot, r.Key, a); err != nil {
			return fmt.Errorf("restore answers: %w", err)
		}
	}
	return s.requests.change(now, func() { s.requests.all = kept })
}

// restoredState is what the kernel side is to know of a container's earlier starts.
type restoredState struct {
	kernel   kernel.State
	saved    *state.Saved // nil: there were none
	lost     string       // why not all is known; files that are not listed then count as anything
	warnings []string
}

// translate puts what was saved into the numbers of this start: of its policy's labels
// and gates, and of its file systems.
func (e *Engine) translate(s *scope, saved *state.Saved, filesystems []state.Filesystem) (restoredState, error) {
	out := restoredState{saved: saved}
	img, err := e.tables(s)
	if saved == nil || err != nil {
		return out, err
	}
	kept, marks := kernel.Keeps(img.tables)
	out.kernel.Fresh = saved.Gates(s.rules())
	files, missing := saved.Place(filesystems, e.boot)
	if out.lost = saved.Lost; out.lost == "" {
		out.lost = missing
	}
	if sentence := saved.Unkept(s.rules(), kept, marks); sentence != "" && saved.Lost == "" {
		out.warnings = append(out.warnings, sentence)
	}
	copy(out.kernel.Image[:], saved.Image)
	labels := saved.Translate(s.rules())
	for _, file := range files {
		if out.lost == "" && labels(file.Labels)&kept == 0 && file.Flags == 0 && file.Kept == 0 {
			continue // the policy does not ask for it any more
		}
		out.kernel.Files = append(out.kernel.Files, kernel.File{
			ID:     kernel.FileID{Device: file.Device, Generation: file.Generation, Inode: file.Inode},
			Labels: labels(file.Labels) & kept, Flags: file.Flags, Kept: file.Kept,
		})
	}
	if len(out.kernel.Files) > kernel.MaxFiles {
		out.kernel.Files, out.lost = nil, "there are more files than the engine holds for one container"
	}
	if out.lost != "" {
		out.kernel.AssumedLabels, out.kernel.AssumedFlags = kept, kernel.FileUnknown
	}
	return out, nil
}

// filesystems are those of a container that is being created.
func (e *Engine) filesystems(pid int, rootfs string) ([]state.Filesystem, error) {
	container, err := e.config.host.Mounts(pid)
	if err != nil {
		return nil, err
	}
	host, err := e.config.host.Mounts(os.Getpid())
	if err != nil {
		return nil, err
	}
	// The kernel lists mounts without the links on the way, and a runtime may name one.
	if real, err := filepath.EvalSymlinks(rootfs); err == nil {
		rootfs = real
	}
	return state.Filesystems(container, host, rootfs)
}

// saveState keeps what the kernel knows of a container that has ended. When that
// fails, it counts as lost at the next start: the note of this start stays.
func (e *Engine) saveState(s *scope, total kernel.Stats) error {
	r := s.now()
	if r.Run == "" || r.Slot == nil {
		return nil
	}
	now, err := e.config.Kernel.State(*r.Slot)
	if err != nil {
		return fmt.Errorf("read the container's state: %w", err)
	}
	saved := &state.Saved{
		ID: r.ID, Name: r.Name, Run: r.Run, Saved: e.config.now(), Boot: e.boot, Home: r.Home, Lost: r.Lost,
		Labels: state.Labels(s.rules()), Kept: r.Kept, Marks: r.Marks, Sequence: s.events.Last(),
		Counters: state.Counters{Denied: total.Denied, Notified: total.Notified, Lost: total.Lost, Starved: total.Starved},
	}
	saved.Image, saved.Added = now.Image[:], r.keptAdditions()
	if saved.Answers, err = e.answersInForce(s, *r.Slot); err != nil {
		return err
	}
	saved.Program = rulesSum(s.rules())
	for _, gate := range now.Fresh {
		if gate < len(s.rules().Gates) {
			saved.Open = append(saved.Open, state.Key(s.rules().Gates[gate]))
		}
	}
	host, err := e.config.host.Mounts(os.Getpid())
	if err != nil {
		return err
	}
	placed := make([]state.Placed, 0, len(now.Files))
	for _, file := range now.Files {
		placed = append(placed, state.Placed{Device: file.ID.Device, File: state.File{
			Generation: file.ID.Generation, Inode: file.ID.Inode, Labels: file.Labels, Flags: file.Flags, Kept: file.Kept,
		}})
	}
	var missed bool
	if saved.Filesystems, saved.Files, missed, err = state.Sort(placed, r.Filesystems, host); err != nil {
		return err
	}
	switch {
	case saved.Lost != "":
	case now.AssumedFlags != 0:
		saved.Lost = "it had more labelled files than the engine holds"
	case missed:
		saved.Lost = "it had labelled files on a file system that was mounted while it ran"
	}
	return e.states.Save(saved)
}

// lostSentence says what it means that not all is known of a container's past.
func lostSentence(id, why string) string {
	return fmt.Sprintf("what was done to files before is not all known (%s): those of which nothing is known count as modified and as carrying "+
		"every label, until \"actplane state reset %s\" says that they do not", why, shortID(id))
}

func shortID(id string) string {
	if len(id) == 64 {
		return id[:12]
	}
	return id
}

// newRun names a start of a container.
func newRun() string { return rand.Text() }

// bootID names the host's boot.
func bootID() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// sweepStates forgets saved states whose time is up, now and then.
func (e *Engine) sweepStates() {
	now := e.config.now()
	e.mu.Lock()
	early := now.Sub(e.statesSwept) < stateSweepInterval
	if !early {
		e.statesSwept = now
	}
	e.mu.Unlock()
	if early {
		return
	}
	if err := e.states.Sweep(func(id string) bool { return e.scope(id) != nil }); err != nil {
		e.log.WithError(err).Warn("sweep saved states")
	}
}

// savedStates lists what is kept of containers that do not run.
func (e *Engine) savedStates() (*api.StatesResponse, error) {
	list, err := e.states.List()
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	response := &api.StatesResponse{}
	for _, entry := range list {
		if e.scope(entry.ID) != nil {
			continue
		}
		response.States = append(response.States, &api.SavedState{
			Id: entry.ID, Name: entry.Name, SavedUnixMs: entry.Saved.Saved.UnixMilli(), ExpiresUnixMs: entry.Expires.UnixMilli(),
			Files: uint64(len(entry.Files)), Gates: uint64(len(entry.Open)), Size: uint64(entry.Size), Lost: entry.Lost,
		})
	}
	return response, nil
}

// reset makes a container forget its past.
func (e *Engine) reset(word string) (*api.ResetResponse, error) {
	if word == "" {
		return nil, status.Error(codes.InvalidArgument, "name a container")
	}
	id, err := e.findAny(word)
	if err != nil {
		return nil, err
	}
	defer e.ids.lock(id)()
	s := e.scope(id)
	if s == nil {
		if err := e.states.Reset(id); err != nil {
			return nil, status.Error(codes.NotFound, err.Error())
		}
		e.log.WithField("scope", id).Warn("saved state reset by an operator")
		return &api.ResetResponse{Id: id}, nil
	}
	r := s.now()
	if r.Slot == nil {
		return nil, status.Errorf(codes.FailedPrecondition, "the policy of %q is not in force; try again", id)
	}
	if err := e.config.Kernel.Forget(*r.Slot); err != nil {
		return nil, status.Errorf(codes.Internal, "reset %q: %v", id, err)
	}
	if err := s.change(func(r *record) { r.Lost = "" }); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	e.log.WithFields(s.fields()).Warn("state reset by an operator")
	return &api.ResetResponse{Id: id, Running: true}, nil
}

// findAny finds a container that runs or of which a state is saved, by its id, a
// unique beginning of it, or its name.
func (e *Engine) findAny(word string) (string, error) {
	list, err := e.states.List()
	if err != nil {
		return "", status.Error(codes.Internal, err.Error())
	}
	names := map[string]string{}
	for _, entry := range list {
		names[entry.ID] = entry.Name
	}
	for _, s := range e.live() {
		names[s.id] = s.now().Name
	}
	matchers := []func(id string) bool{
		func(id string) bool { return id == word },
		func(id string) bool { return names[id] == word },
		func(id string) bool { return strings.HasPrefix(id, word) },
	}
	for _, matches := range matchers {
		var found []string
		for id := range names {
			if matches(id) {
				found = append(found, id)
			}
		}
		if len(found) == 1 {
			return found[0], nil
		}
		if len(found) > 1 {
			slices.Sort(found)
			return "", status.Errorf(codes.InvalidArgument, "%q fits %d containers: %s", word, len(found), strings.Join(found, ", "))
		}
	}
	return "", status.Errorf(codes.NotFound, "no container is %q; \"actplane ps\" and \"actplane state ls\" list them", word)
}

// StateDirectory is where states are saved for a run directory, where nothing else is
// said.
func StateDirectory(runDirectory string) string {
	if runDirectory == api.Directory {
		return state.Directory
	}
	return filepath.Join(runDirectory, "states")
}
