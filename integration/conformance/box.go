// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/feedback"
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/model"
)

// boxes are containers without runtime and daemon: the same kernel side, the same
// namespaces, made by the actor itself. One takes as long as its processes need.
type boxes struct {
	kernel    *kernel.Kernel
	records   chan kernel.Record
	actorFile string
	actor     []byte
	work      string
	cgroup    string
	free      []string // cgroups below it, the longest unused first
	networks  []*network
	count     int
	cgroups   int
}

// pinDir is where the kernel side is pinned.
const pinDir = "/sys/fs/bpf/conformance"

// openBoxes loads the kernel side. The caller closes it.
func openBoxes(ctx context.Context, actorFile string) (b *boxes, err error) {
	b = &boxes{actorFile: actorFile, records: make(chan kernel.Record, 1<<12)}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	if b.actor, err = os.ReadFile(actorFile); err != nil {
		return b, usageError{fmt.Errorf("read the actor: %w", err)}
	}
	if b.work, err = os.MkdirTemp("", "conformance"); err != nil {
		return b, err
	}
	if b.kernel, err = kernel.Open(kernel.Config{
		PinDir: pinDir, RunDir: b.work, AllowDegraded: true, Linger: time.Hour,
	}); err != nil {
		return b, err
	}
	go func() { _ = b.kernel.Records(ctx, func(r kernel.Record) { b.records <- r }, func(kernel.Gain) {}) }()
	b.cgroup = fmt.Sprintf("/sys/fs/cgroup/conformance-%d", os.Getpid())
	return b, os.Mkdir(b.cgroup, 0o755)
}

func (b *boxes) close() error {
	var errs []error
	for _, n := range b.networks {
		errs = append(errs, n.close())
	}
	if b.kernel != nil {
		errs = append(errs, b.kernel.Close(), kernel.Uninstall(pinDir))
	}
	for _, cgroup := range b.free {
		errs = append(errs, os.Remove(cgroup))
	}
	if b.cgroup != "" {
		errs = append(errs, os.Remove(b.cgroup))
	}
	return errors.Join(append(errs, os.RemoveAll(b.work))...)
}

// box is one container of these.
type box struct {
	*container
	*trial
	boxes  *boxes
	slot   kernel.Slot
	cgroup string
	netns  string
	first  string          // path of its first program
	seen   uint64          // records
	open   []kernel.AskKey // requests, the oldest first
}

// start makes one.
func (b *boxes) start(ctx context.Context, t *trial) (x *box, err error) {
	b.count++
	id := fmt.Sprint(b.count)
	x = &box{boxes: b, trial: t, container: &container{id: id, ways: t.ways()}}
	x.again()
	defer func() {
		if err != nil {
			err = errors.Join(err, x.end())
		}
	}()
	if x.first, err = firstProgram(t.planned); err != nil {
		return x, err
	}
	if x.stage, err = newStage(filepath.Join(b.work, id)); err != nil {
		return x, err
	}
	if err := x.stage.populate(t.planned, x.first, b.actor); err != nil {
		return x, err
	}
	x.network = &network{}
	network, err := b.network(x.stage.root, t.planned, x.network)
	if err != nil {
		return x, err
	}
	x.netns = network.path
	return x, x.launch(ctx, kernel.State{})
}

// launch puts a cgroup under the policy, and starts the container in it.
func (x *box) launch(ctx context.Context, state kernel.State) (err error) {
	if x.cgroup, err = x.boxes.takeCgroup(); err != nil {
		return err
	}
	if x.slot, err = x.boxes.kernel.Install(kernel.Spec{Cgroup: x.cgroup, Image: x.policy.Image, State: state}); err != nil {
		return err
	}
	if err := x.boxes.kernel.DetachLingering(); err != nil { // of other policies: it must not help
		return err
	}
	theirs, err := x.channels(x.planned)
	defer closeAll(theirs)
	if err != nil {
		return err
	}
	cgroup, err := os.Open(x.cgroup)
	if err != nil {
		return err
	}
	defer cgroup.Close()
	command := exec.CommandContext(ctx, x.boxes.actorFile, "box", x.stage.root, x.netns, x.first)
	command.Env = []string{"PATH=/usr/bin:/bin"}
	command.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(cgroup.Fd())}
	return x.run(theirs, command)
}

// takeCgroup returns an empty cgroup, and never the one that was left last: a container
// that starts again has another.
func (b *boxes) takeCgroup() (string, error) {
	if len(b.free) > 1 {
		cgroup := b.free[0]
		b.free = b.free[1:]
		return cgroup, nil
	}
	b.cgroups++
	cgroup := filepath.Join(b.cgroup, fmt.Sprint(b.cgroups))
	return cgroup, os.Mkdir(cgroup, 0o755)
}

// leaveCgroup keeps one for another container. It is an error when something runs there.
func (b *boxes) leaveCgroup(cgroup string) error {
	left, err := os.ReadFile(filepath.Join(cgroup, "cgroup.procs"))
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("of a container that has ended runs %q", left)
	}
	b.free = append(b.free, cgroup)
	return err
}

// network returns one in which a case's peers listen, and nobody where its own processes
// will; those with a path listen in the container's own files, and are own's.
func (b *boxes) network(root string, c *planned, own *network) (*network, error) {
	var shared []peer
	for _, p := range outsidePeers(c) {
		if p.unix == "" || p.unix[0] == '@' {
			shared = append(shared, p)
		} else if err := own.listenUnix(root, p.unix); err != nil {
			return nil, err
		}
	}
	free := func(n *network) bool {
		return !slices.ContainsFunc(c.Steps, func(s model.Step) bool { return s.Words[1] == "bind" && n.peers[s.Words[2]] })
	}
	i := slices.IndexFunc(b.networks, free)
	if i < 0 {
		n, err := newNetwork(filepath.Join(b.work, fmt.Sprintf("netns-%d", len(b.networks))), root, nil)
		if err != nil {
			return nil, err
		}
		i, b.networks = len(b.networks), append(b.networks, n)
	}
	return b.networks[i], b.networks[i].add(root, shared)
}

// end removes all that is left of the container.
func (x *box) end() error { return errors.Join(x.close(), x.leave()) }

// leave ends the scope, of which nothing runs any more.
func (x *box) leave() error {
	var errs []error
	if x.slot != (kernel.Slot{}) {
		errs = append(errs, x.boxes.kernel.Remove(x.slot))
	}
	if x.cgroup != "" {
		errs = append(errs, x.boxes.leaveCgroup(x.cgroup))
	}
	x.slot, x.cgroup, x.seen, x.open = kernel.Slot{}, "", 0, nil
	return errors.Join(errs...)
}

// since is the watcher's.
func (x *box) since(ctx context.Context) (events []*api.Event, err error) {
	stats, err := x.boxes.kernel.Stats(x.slot)
	if err != nil {
		return nil, err
	}
	if stats.Lost+stats.Starved > 0 {
		return nil, fmt.Errorf("%d records lost, %d operations without memory", stats.Lost, stats.Starved)
	}
	for x.seen < stats.Denied+stats.Notified {
		select {
		case r := <-x.boxes.records:
			if r.Slot != x.slot {
				continue // of a container that has ended
			}
			x.seen++
			if r.Asked == kernel.Opened {
				x.open = append(x.open, r.Ask)
			}
			events = append(events, x.event(r))
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return events, nil
}

// answer is the watcher's.
func (x *box) answer(_ context.Context, words []string) error {
	said, err := answerOf(words)
	if err != nil {
		return err
	}
	if len(x.open) == 0 {
		return errors.New("no request is open")
	}
	key := x.open[0]
	x.open = x.open[1:]
	a := kernel.Answer{
		Denied: said.Denied, Count: said.Count, Timed: said.Count == 0, For: time.Duration(said.ForMs) * time.Millisecond,
	}
	return errors.Join(x.boxes.kernel.SetAnswer(x.slot, key, a), x.boxes.kernel.CloseRequest(x.slot, key, 0))
}

// restart is the watcher's. What the engine saves of a container when it ends is given
// back to the kernel side, in the form in which that has it.
func (x *box) restart(ctx context.Context, lose bool) error {
	if err := x.stop(); err != nil {
		return err
	}
	state, err := x.boxes.kernel.State(x.slot)
	if err != nil {
		return err
	}
	answers, err := x.boxes.kernel.Answers(x.slot)
	if err != nil {
		return err
	}
	if lose {
		kept, _ := kernel.Keeps(x.policy.Image)
		state, answers = kernel.State{AssumedLabels: kept, AssumedFlags: kernel.FileUnknown}, nil
	}
	if err := x.leave(); err != nil {
		return err
	}
	x.again()
	if err := x.launch(ctx, state); err != nil {
		return fmt.Errorf("start the container again: %w", err)
	}
	for key, a := range answers {
		if a.Over {
			continue
		}
		if err := x.boxes.kernel.SetAnswer(x.slot, key, a); err != nil {
			return err
		}
	}
	return nil
}

// event tells a record as the engine would, as far as verdicts go.
func (x *box) event(r kernel.Record) *api.Event {
	words := map[ir.Effect]feedback.Effect{ir.Notify: feedback.Notify, ir.Ask: feedback.Ask, ir.Kill: feedback.Kill}
	e := &api.Event{Effect: string(feedback.Block), Operation: r.Op.String(), Object: r.Object, Because: r.Reason}
	if word, ok := words[r.Effect]; ok {
		e.Effect = string(word)
	}
	switch r.Asked {
	case kernel.NotAsked, kernel.Denied:
	case kernel.Granted:
		e.Outcome = string(feedback.Used)
	default:
		e.Effect = string(feedback.Ask)
	}
	switch n := len(x.policy.Image.Clauses); {
	case r.Default >= 0:
		e.Clause = "default"
	case r.Clause >= n:
		e.Clause = "protect"
	case r.Clause >= 0:
		clause := x.policy.Program.Clauses[x.policy.Image.Clauses[r.Clause].Clause]
		e.Clause, e.Rule = clause.Text, x.policy.Program.Rules[clause.Rule].Name
	}
	return e
}
