// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/engine/kernel"
)

func (k *fakeKernel) Lock(slot kernel.Slot) error { return k.setLocked(slot, true) }

func (k *fakeKernel) Unlock(slot kernel.Slot) error { return k.setLocked(slot, false) }

func (k *fakeKernel) setLocked(slot kernel.Slot, locked bool) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.lock != nil {
		return k.lock
	}
	stats := k.stats[slot]
	stats.Locked = locked
	k.stats[slot] = stats
	return nil
}

// Freeze writes what the kernel would, too.
func (h wakingHost) Freeze(dir string, freeze bool) error {
	state := map[bool]string{false: "0", true: "1"}[freeze]
	name, err := filepath.Rel(h.m.dir, dir)
	if err != nil {
		return err
	}
	h.m.write(name+"/cgroup.events", "populated 1\nfrozen "+state+"\n")
	return h.realHost.Freeze(dir, freeze)
}

var ann = &api.Operator{Uid: 1001, Name: "ann", Via: "cli"}

func (m *machine) lockdown(client api.EngineClient, req *api.LockdownRequest) []*api.Lock {
	m.t.Helper()
	req.By = ann
	response, err := client.Lockdown(context.Background(), req)
	if err != nil {
		m.t.Fatal(err)
	}
	return response.Locks
}

func (m *machine) locked(slot kernel.Slot) bool {
	m.kernel.mu.Lock()
	defer m.kernel.mu.Unlock()
	return m.kernel.stats[slot].Locked
}

// A lock is in the kernel, in what is listed and told, and in no other scope; taken back,
// it is in none of them.
func TestLockdown(t *testing.T) {
	m := newMachine(t)
	e, client, _ := m.start()
	one, two := m.begin(e, client, "aaa1", 100), m.begin(e, client, "bbb1", 101)
	locks := m.lockdown(client, &api.LockdownRequest{Scope: "aaa", Because: "it pushes\x1b[2J"})
	if len(locks) != 1 || locks[0].Id != "aaa1" || locks[0].By != "ann (uid 1001) by cli" || !locks[0].Running || !m.locked(one) || m.locked(two) {
		t.Fatalf("locks %v", locks)
	}
	m.kernel.set(func() { s := m.kernel.stats[one]; s.Refused = 12; m.kernel.stats[one] = s })
	s := m.list(client)["aaa1"]
	if s.State != "locked" || s.Lock.GetRefused() != 12 || len(s.Degraded) != 1 ||
		!strings.Contains(s.Degraded[0], "locked by ann (uid 1001) by cli since ") || !strings.Contains(s.Degraded[0], "it pushes") || !strings.Contains(s.Degraded[0], "12 times so far") {
		t.Errorf("listed %v", s)
	}
	if other := m.list(client)["bbb1"]; other.State != "enforcing" || other.Lock != nil {
		t.Errorf("the other is %v", other)
	}
	// Once more changes nothing, and says no other reason.
	if again := m.lockdown(client, &api.LockdownRequest{Scope: "aaa1", Because: "other"}); again[0].Because != "it pushes\x1b[2J" {
		t.Errorf("again %v", again)
	}
	if len(m.log("locked by an operator")) != 1 {
		t.Errorf("logged %q", m.log("locked"))
	}
	unlocked, err := client.Unlock(context.Background(), &api.UnlockRequest{Scope: "aaa", By: ann})
	if err != nil || len(unlocked.Locks) != 1 || unlocked.Locks[0].Refused != 12 || m.locked(one) {
		t.Fatalf("unlocked %v %v", unlocked, err)
	}
	events := waitEvents(t, client, "aaa1", 2)
	if events[0].Outcome != "locked" || events[0].By != "ann (uid 1001) by cli" || events[1].Outcome != "unlocked" {
		t.Errorf("events %v", events)
	}
	items := e.scope("aaa1").events.Items(0)
	if want := "everything that its programs do is refused until it is unlocked, whatever the policy says. The reason given: it pushes\\x1b[2J"; !strings.HasSuffix(items[0].Message(), want) {
		t.Errorf("message %q", items[0].Message())
	}
	if got := items[1].Message(); !strings.Contains(got, "12 operations were refused meanwhile") {
		t.Errorf("message %q", got)
	}
	if s := m.list(client)["aaa1"]; s.State != "enforcing" || s.Lock != nil || len(s.Degraded) != 0 {
		t.Errorf("listed %v", s)
	}
	// What the kernel reports then keeps its number.
	m.deny(one, 1)
	if e := waitEvents(t, client, "aaa1", 3)[2]; e.Sequence != 3 {
		t.Errorf("event %v", e)
	}
	for req, want := range map[*api.UnlockRequest]string{
		{Scope: "aaa1"}: "is not locked", {Scope: "x"}: "no container is", {}: "name a scope", {Scope: "x", All: true}: "not both",
	} {
		_, err := client.Unlock(context.Background(), req)
		wantError(t, err, want)
	}
	for req, want := range map[*api.LockdownRequest]string{
		{Scope: "x"}: "no container is", {}: "name a scope", {Scope: "x", All: true}: "not both", {Scope: "aaa1", Because: strings.Repeat("x", 1001)}: "longer than",
	} {
		_, err := client.Lockdown(context.Background(), req)
		wantError(t, err, want)
	}
}

// With all, everything that runs is locked, also what has no record; and unlocked.
func TestLockdownOfAll(t *testing.T) {
	m := newMachine(t)
	e, client, _ := m.start()
	one, two := m.begin(e, client, "aaa1", 100), m.begin(e, client, "bbb1", 101)
	orphan := kernel.Slot{Index: 77, Generation: 7}
	e.mu.Lock()
	e.orphans = append(e.orphans, orphan)
	e.mu.Unlock()
	if locks := m.lockdown(client, &api.LockdownRequest{All: true}); len(locks) != 2 || !m.locked(one) || !m.locked(two) || !m.locked(orphan) {
		t.Errorf("locks %v", locks)
	}
	if unlocked, err := client.Unlock(context.Background(), &api.UnlockRequest{All: true}); err != nil || len(unlocked.Locks) != 2 || m.locked(one) || m.locked(two) || m.locked(orphan) {
		t.Errorf("unlocked %v %v", unlocked, err)
	}
}

// A lock outlives the daemon, also where the kernel has lost it, and the container's end:
// it cannot be started, before it is unlocked.
func TestLockStays(t *testing.T) {
	m := newMachine(t)
	e, client, stop := m.start()
	slot := m.begin(e, client, "c", 100)
	m.lockdown(client, &api.LockdownRequest{Scope: "c", Because: "why"})
	stop()
	m.kernel.set(func() { m.kernel.stats[slot] = kernel.Stats{} })
	e, client, stop = m.start()
	if !m.locked(slot) || m.list(client)["c"].State != "locked" {
		t.Fatal("the next daemon has not locked it again")
	}
	m.kernel.set(func() { m.kernel.stats[slot] = kernel.Stats{} })
	e.sweep(context.Background())
	if !m.locked(slot) {
		t.Error("the sweep has not locked it again")
	}
	m.exit("c", 100)
	closeScope(t, client, "c")
	for range 2 {
		if s := m.list(client)["c"]; s.GetState() != "locked" || s.Lock.Running || !strings.Contains(s.Degraded[0], "cannot be started") {
			t.Errorf("stopped: %v", s)
		}
		_, err := client.Prepare(context.Background(), &api.PrepareRequest{Id: "c", Program: testProgram(t)})
		wantError(t, err, `locked by ann (uid 1001) by cli since 2`)
		wantError(t, err, `because: why; "actplane unlock c" ends that`)
		stop()
		_, client, stop = m.start()
	}
	if _, err := client.Unlock(context.Background(), &api.UnlockRequest{Scope: "name-c"}); err != nil {
		t.Fatal(err)
	}
	m.container("c", 102)
	m.prepare(client, "c")
	m.attach(client, "c", 102)
}

// What comes between a lock and a start, whoever was first, is no start.
func TestLockOfStaged(t *testing.T) {
	m := newMachine(t)
	_, client, _ := m.start()
	m.container("c", 100)
	m.prepare(client, "c")
	m.lockdown(client, &api.LockdownRequest{Scope: "c"})
	_, err := client.Attach(context.Background(), &api.AttachRequest{Id: "c", Pid: 100, Rootfs: "/r"})
	wantError(t, err, "locked by ann")
	if m.kernel.count() != 0 {
		t.Error("it is in the kernel")
	}
	// A note that cannot be read locks all the same.
	if err := os.WriteFile(m.path("run/states/d.lock"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = client.Prepare(context.Background(), &api.PrepareRequest{Id: "d", Program: testProgram(t)})
	wantError(t, err, "the note of the lock cannot be read")
}

// A lock that does not take is told as such, and tried again.
func TestLockFails(t *testing.T) {
	m := newMachine(t)
	e, client, _ := m.start()
	slot := m.begin(e, client, "c", 100)
	m.kernel.set(func() { m.kernel.lock = errors.New("no hook") })
	_, err := client.Lockdown(context.Background(), &api.LockdownRequest{Scope: "c"})
	wantError(t, err, "no hook; the engine goes on trying")
	if s := m.list(client)["c"]; s.State != "enforcing" || !strings.Contains(s.Degraded[0], "NOT in force yet") {
		t.Errorf("listed %v", s)
	}
	m.kernel.set(func() { m.kernel.lock = nil })
	e.sweep(context.Background())
	if s := m.list(client)["c"]; !m.locked(slot) || s.State != "locked" {
		t.Errorf("listed %v", s)
	}
}

// Its processes are stopped, if that is asked for, now or later, and go on with the end of
// the lock.
func TestLockFreezes(t *testing.T) {
	m := newMachine(t)
	e, client, _ := m.start()
	m.begin(e, client, "c", 100)
	frozen := func() string {
		text, _ := os.ReadFile(m.path("cgroup/c/cgroup.freeze"))
		return string(text)
	}
	m.write("cgroup/c/cgroup.freeze", "0")
	m.lockdown(client, &api.LockdownRequest{Scope: "c"})
	if frozen() != "0" {
		t.Error("frozen and not asked for")
	}
	if locks := m.lockdown(client, &api.LockdownRequest{Scope: "c", Freeze: true}); frozen() != "1" || !locks[0].Frozen {
		t.Errorf("%q %v", frozen(), locks)
	}
	if _, err := client.Unlock(context.Background(), &api.UnlockRequest{Scope: "c"}); err != nil || frozen() != "0" {
		t.Errorf("%q %v", frozen(), err)
	}
}
