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
	"strings"
	"syscall"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/feedback"
	"github.com/actplane/actplane/policy"
	"github.com/actplane/actplane/policy/ir"
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
	keeper    kernel.Slot
	networks  map[string]*network // by the peers that listen there
	count     int
}

// keeperPolicy needs every hook, so that all are attached from first to last.
const keeperPolicy = `version: 1
protect: [/p]
policy: |
  source S = file "/s"
  endorse R by exec "/e"
  rule r:
    block exec "nothing"
    block write "/nothing" if S
    block send "192.0.2.1" if S
    block bind "192.0.2.1"
    block connect any unless after exec "nothing"
`

// openBoxes loads the kernel side. The caller closes it.
func openBoxes(ctx context.Context, actorFile string) (b *boxes, err error) {
	b = &boxes{actorFile: actorFile, records: make(chan kernel.Record, 1<<12), networks: map[string]*network{}}
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
	if b.kernel, err = kernel.Open(kernel.Config{PinDir: "/sys/fs/bpf/conformance", RunDir: b.work, AllowDegraded: true}); err != nil {
		return b, err
	}
	go func() { _ = b.kernel.Records(ctx, func(r kernel.Record) { b.records <- r }) }()
	b.cgroup = fmt.Sprintf("/sys/fs/cgroup/conformance-%d", os.Getpid())
	keeper := filepath.Join(b.cgroup, "keeper")
	if err := os.MkdirAll(keeper, 0o755); err != nil {
		return b, err
	}
	p, err := policy.Compile([]policy.Document{{Name: "keeper", Text: []byte(keeperPolicy)}}, policy.Options{})
	if err != nil {
		return b, err
	}
	b.keeper, err = b.kernel.Install(kernel.Spec{Cgroup: keeper, Image: p.Image})
	return b, err
}

func (b *boxes) close() error {
	var errs []error
	for _, n := range b.networks {
		errs = append(errs, n.close())
	}
	if b.kernel != nil {
		errs = append(errs, b.kernel.Remove(b.keeper), b.kernel.Close(), kernel.Uninstall("/sys/fs/bpf/conformance"))
	}
	if b.cgroup != "" {
		errs = append(errs, os.Remove(filepath.Join(b.cgroup, "keeper")), os.Remove(b.cgroup))
	}
	return errors.Join(append(errs, os.RemoveAll(b.work))...)
}

// box is one container of these.
type box struct {
	*container
	boxes  *boxes
	slot   kernel.Slot
	cgroup string
	policy *policy.Policy
	seen   uint64 // records
}

// start makes one.
func (b *boxes) start(ctx context.Context, c *planned) (x *box, err error) {
	b.count++
	id := fmt.Sprint(b.count)
	x = &box{boxes: b, container: &container{id: id, subjects: map[string]*subject{}, ended: make(chan struct{})}}
	defer func() {
		if err != nil {
			err = errors.Join(err, x.end())
		}
	}()
	first, err := firstProgram(c)
	if err != nil {
		return x, err
	}
	if x.policy, err = policy.Compile([]policy.Document{{Name: c.File, Text: []byte(c.Document), Layer: policy.Operator}}, policy.Options{Workspace: c.Workspace}); err != nil {
		return x, err
	}
	if x.stage, err = newStage(filepath.Join(b.work, id)); err != nil {
		return x, err
	}
	if err := x.stage.populate(c, first, b.actor); err != nil {
		return x, err
	}
	network, err := b.network(x.stage.root, outsidePeers(c))
	if err != nil {
		return x, err
	}
	x.cgroup = filepath.Join(b.cgroup, id)
	if err := os.Mkdir(x.cgroup, 0o755); err != nil {
		return x, err
	}
	if x.slot, err = b.kernel.Install(kernel.Spec{Cgroup: x.cgroup, Image: x.policy.Image}); err != nil {
		return x, err
	}
	return x, x.launch(ctx, c, network.path, first)
}

func (x *box) launch(ctx context.Context, c *planned, netns, first string) error {
	theirs, err := x.channels(c)
	defer closeAll(theirs)
	if err != nil {
		return err
	}
	cgroup, err := os.Open(x.cgroup)
	if err != nil {
		return err
	}
	defer cgroup.Close()
	command := exec.CommandContext(ctx, x.boxes.actorFile, "box", x.stage.root, netns, first)
	command.Env = []string{"PATH=/usr/bin:/bin"}
	command.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(cgroup.Fd())}
	return x.run(theirs, command)
}

// network returns one in which these listen. Those with a path do so in the container's
// own files; the others are shared by all containers that want the same.
func (b *boxes) network(root string, peers []peer) (*network, error) {
	var key []string
	var shared []peer
	own := &network{}
	for _, p := range peers {
		if p.unix != "" && p.unix[0] != '@' {
			if err := own.listenUnix(root, p.unix); err != nil {
				return nil, err
			}
			continue
		}
		shared, key = append(shared, p), append(key, p.text)
	}
	slices.Sort(key)
	name := strings.Join(key, " ")
	if b.networks[name] == nil {
		n, err := newNetwork(filepath.Join(b.work, fmt.Sprintf("netns-%d", len(b.networks))), root, shared)
		if err != nil {
			return nil, err
		}
		b.networks[name] = n
	}
	return b.networks[name], nil
}

// end removes all that is left of the container.
func (x *box) end() error {
	errs := []error{x.close()}
	if x.slot != (kernel.Slot{}) {
		errs = append(errs, x.boxes.kernel.Remove(x.slot))
	}
	if x.cgroup != "" {
		errs = append(errs, os.Remove(x.cgroup))
	}
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
	for ; x.seen < stats.Denied+stats.Notified; x.seen++ {
		select {
		case r := <-x.boxes.records:
			if r.Slot != x.slot {
				x.seen--
				continue // of a container that has ended
			}
			events = append(events, x.event(r))
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return events, nil
}

// answer is the watcher's. Requests are the daemon's business.
func (x *box) answer(context.Context, []string) error {
	return &unreachableError{"nobody answers requests here"}
}

// event tells a record as the engine would, as far as verdicts go.
func (x *box) event(r kernel.Record) *api.Event {
	words := map[ir.Effect]feedback.Effect{ir.Notify: feedback.Notify, ir.Kill: feedback.Kill}
	e := &api.Event{Effect: string(feedback.Block), Operation: r.Op.String(), Object: r.Object, Because: r.Reason}
	if word, ok := words[r.Effect]; ok {
		e.Effect = string(word)
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
