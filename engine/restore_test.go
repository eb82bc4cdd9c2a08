// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/internal/testenv"
)

func TestRestart(t *testing.T) {
	m := newMachine(t)
	_, client, stop := m.start()
	for i, id := range []string{"lives", "gone"} {
		m.container(id, 100+i)
		m.prepare(client, id)
		m.attach(client, id, 100+i)
	}
	dir := m.prepare(client, "staged")
	slot := kernel.Slot{Index: 1, Generation: 7}
	m.deny(slot, 3)
	waitEvents(t, client, "lives", 3)
	stop()
	os.RemoveAll(m.path("cgroup/gone"))
	m.mkdir("run/scopes/halfmade/guest")

	_, client, stop = m.start()
	if got := strings.Join(m.directories(), " "); got != "lives staged" || m.kernel.count() != 1 {
		t.Fatalf("taken over are %q with %d slots", got, m.kernel.count())
	}
	s := m.list(client)["lives"]
	if s.State != "enforcing" || len(s.Degraded) != 0 || s.Denied != 3 {
		t.Errorf("scope taken over is %v", s)
	}
	if inode, _ := (realHost{}).CgroupID(m.path("run/scopes/lives/guest/feedback.sock")); inode != m.kernel.exempt[slot] {
		t.Error("the new feedback socket is not exempt")
	}
	m.deny(slot, 1)
	events := waitEvents(t, client, "lives", 4)
	for i, event := range events {
		if event.Sequence != uint64(i+1) || event.Rule != "no-push" || event.Because != "ask first" || event.Clause != "block exec git" {
			t.Errorf("event %d is %v", i, event)
		}
	}
	// What was staged can still be attached.
	m.container("staged", 300)
	m.attach(client, "staged", 300)
	if _, err := os.Stat(dir + "/feedback.sock"); err != nil {
		t.Error(err)
	}
	stop()
	// A container that is started again keeps its events and their numbers.
	m.exit("lives", 100)
	e, client, _ := m.start()
	m.prepare(client, "lives")
	m.container("lives", 400)
	m.attach(client, "lives", 400)
	m.deny(*e.scope("lives").now().Slot, 1)
	if events := waitEvents(t, client, "lives", 1); events[len(events)-1].Sequence == 0 {
		t.Errorf("events after a restart of the container: %v", events)
	}
}

// Events and counters belong to the container, not to one start of it.
func TestContainerRestart(t *testing.T) {
	m := newMachine(t)
	e, client, stop := m.start()
	count := func(want uint64) {
		t.Helper()
		if s := m.list(client)["c"]; s == nil || s.Denied != want || s.Lost != 5 {
			t.Errorf("want %d denials, have %v", want, s)
		}
		if status := (&inside{engine: e, scope: e.find1(t, "c")}).Status(); status.Denied != want || status.LostEvents != 5 {
			t.Errorf("inside: want %d denials, have %+v", want, status)
		}
	}
	m.container("c", 100)
	m.prepare(client, "c")
	m.attach(client, "c", 100)
	first := *e.scope("c").now().Slot
	m.kernel.set(func() { m.kernel.stats[first] = kernel.Stats{Lost: 5} })
	m.deny(first, 3)
	if events := waitEvents(t, client, "c", 3); events[0].Lost != 5 {
		t.Errorf("the first event does not tell of what was lost: %v", events[0])
	}
	count(3)
	m.exit("c", 100)
	closeScope(t, client, "c")
	count(3)
	m.prepare(client, "c")
	m.container("c", 200)
	m.attach(client, "c", 200)
	m.deny(*e.scope("c").now().Slot, 2)
	if events := waitEvents(t, client, "c", 5); events[3].Sequence != 4 || events[3].Lost != 0 {
		t.Errorf("what was lost before is told again: %v", events[3])
	}
	count(5)
	stop()
	e, client, _ = m.start()
	count(5)
	m.exit("c", 200)
	m.prepare(client, "c")
	m.container("c", 300)
	m.attach(client, "c", 300)
	m.deny(*e.scope("c").now().Slot, 1)
	waitEvents(t, client, "c", 6)
	count(6)
}

// find1 finds the one scope of an id, live or closed.
func (e *Engine) find1(t *testing.T, id string) *scope {
	t.Helper()
	scopes, _, err := e.find(id)
	if err != nil || len(scopes) != 1 {
		t.Fatalf("%d scopes, %v", len(scopes), err)
	}
	return scopes[0]
}

// TestKilled restarts from every state in which a kill can leave an attach.
func TestKilled(t *testing.T) {
	slot := kernel.Slot{Index: 1, Generation: 7}
	image := kernel.Spec{}
	for _, test := range []struct {
		name      string
		installed bool
		noted     *kernel.Slot
		state     string // while the container's processes still live
	}{
		{"before install", false, nil, "staged"},
		{"after install, before the note", true, nil, "staged"},
		{"after the note", true, &slot, "enforcing"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := newMachine(t)
			e, client, stop := m.start()
			m.prepare(client, "c")
			m.container("c", 100)
			id, _ := (realHost{}).CgroupID(m.path("cgroup/c"))
			err := e.scope("c").change(func(r *record) {
				r.State, r.PID, r.PIDStart, r.Cgroup, r.CgroupID, r.Slot = attaching, 100, 1000, m.path("cgroup/c"), id, test.noted
			})
			if err != nil {
				t.Fatal(err)
			}
			stop()
			if test.installed {
				m.kernel.slots[slot] = image
			}
			e, client, _ = m.start()
			if s := m.list(client)["c"]; s == nil || s.State != test.state {
				t.Errorf("scope is %v", s)
			}
			e.sweep(context.Background())
			if test.installed && m.kernel.count() != 1 {
				t.Error("the policy was lifted while the container's processes live")
			}
			m.exit("c", 100)
			e.sweep(context.Background())
			if m.kernel.count() != 0 || len(m.directories()) != 0 {
				t.Errorf("left are %d slots, %v", m.kernel.count(), m.directories())
			}
		})
	}
}

func TestOrphansStay(t *testing.T) {
	m := newMachine(t)
	m.kernel.slots[kernel.Slot{Index: 3}] = kernel.Spec{}
	e, _, _ := m.start()
	e.sweep(context.Background())
	if m.kernel.count() != 1 {
		t.Error("a policy of which no record is left was lifted")
	}
}

// A scope whose record is spoilt stays in force, is told of, and goes with its
// container.
func TestSpoiltRecord(t *testing.T) {
	m := newMachine(t)
	e, client, stop := m.start()
	m.container("c", 100)
	m.prepare(client, "c")
	m.attach(client, "c", 100)
	slot := *e.scope("c").now().Slot
	id, err := realHost{}.CgroupID(m.path("cgroup/c"))
	if err != nil {
		t.Fatal(err)
	}
	m.kernel.cgroups[slot] = id
	stop()
	m.write("run/scopes/c/scope.json", `{"Version":1,`)
	e, client, _ = m.start()
	e.sweep(context.Background())
	s := m.list(client)["c"]
	if m.kernel.count() != 1 || s == nil || s.State != "unknown" || len(s.Degraded) != 1 || !strings.Contains(s.Degraded[0], "is not taken over") {
		t.Fatalf("%d slots, scope %v", m.kernel.count(), s)
	}
	if err := os.RemoveAll(m.path("cgroup/c")); err != nil {
		t.Fatal(err)
	}
	e.sweep(context.Background())
	if s := m.list(client)["c"]; m.kernel.count() != 0 || s != nil || len(m.directories()) != 0 {
		t.Errorf("left are %d slots, scope %v, %v", m.kernel.count(), s, m.directories())
	}
}

// A daemon comes back on a full disk: scopes, which stay enforced anyway, are
// listed and served.
func TestFullDisk(t *testing.T) {
	m := newMachine(t)
	m.mkdir("run")
	testenv.MountTmpfs(t, m.path("run"), 1<<20)
	e, client, stop := m.start()
	m.container("c", 100)
	dir := m.prepare(client, "c")
	m.attach(client, "c", 100)
	m.deny(*e.scope("c").now().Slot, 3)
	waitEvents(t, client, "c", 3)
	stop()
	if err := os.WriteFile(m.path("run/filler"), make([]byte, 2<<20), 0o600); err == nil {
		t.Fatal("the disk does not fill")
	}
	m.write("guest", strings.Repeat("newer", 10_000))
	_, client, _ = m.start()
	s := m.list(client)["c"]
	if s.State != "enforcing" || len(s.Degraded) != 2 || !strings.Contains(strings.Join(s.Degraded, ";"), "no space left") {
		t.Errorf("scope %v", s)
	}
	waitEvents(t, client, "c", 3)
	m.deny(*e.scope("c").now().Slot, 1)
	waitEvents(t, client, "c", 4)
	if conn, err := net.Dial("unix", dir+"/feedback.sock"); err != nil {
		t.Error(err)
	} else {
		conn.Close()
	}
}

// TestPinsLost restarts after someone removed the pins under a live container.
func TestPinsLost(t *testing.T) {
	m := newMachine(t)
	_, client, stop := m.start()
	m.container("c", 100)
	m.prepare(client, "c")
	m.attach(client, "c", 100)
	stop()
	m.kernel.slots = map[kernel.Slot]kernel.Spec{}
	e, client, _ := m.start()
	e.sweep(context.Background())
	s := m.list(client)["c"]
	if m.kernel.count() != 1 || s.State != "enforcing" || len(s.Degraded) != 2 || !strings.Contains(s.Degraded[0], "was out of force") || !strings.Contains(s.Degraded[1], "actplane state reset c") {
		t.Errorf("%d slots, scope %v", m.kernel.count(), s)
	}
	for _, spec := range m.kernel.slots {
		if spec.State.AssumedFlags != kernel.FileUnknown {
			t.Errorf("what happened meanwhile counts as nothing: %+v", spec.State)
		}
	}
}

func TestForeignRecordStays(t *testing.T) {
	m := newMachine(t)
	m.write("run/scopes/newer/scope.json", `{"Version":99,"ID":"newer"}`)
	m.kernel.slots[kernel.Slot{Index: 3}] = kernel.Spec{}
	_, client, _ := m.start()
	if got := strings.Join(m.directories(), " "); got != "newer" || m.kernel.count() != 1 {
		t.Errorf("left are %q and %d slots", got, m.kernel.count())
	}
	m.prepare(client, "c")
	if s := m.list(client)["newer"]; s == nil || len(s.Degraded) != 1 || !strings.Contains(s.Degraded[0], "version 99") {
		t.Errorf("scope is %v", s)
	}
	if s := m.list(client)["c"]; len(s.Degraded) != 0 {
		t.Errorf("another scope is told of it: %v", s)
	}
}

func waitEvents(t *testing.T, client api.EngineClient, scope string, n int) []*api.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	stream, err := client.Events(ctx, &api.EventsRequest{Scope: scope, History: true, Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	var events []*api.Event
	for len(events) < n {
		event, err := stream.Recv()
		if err != nil {
			t.Fatalf("after %d events: %v", len(events), err)
		}
		events = append(events, event)
	}
	return events
}
