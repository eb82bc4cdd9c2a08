// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/engine/kernel"
)

// begin starts a container and returns its slot.
func (m *machine) begin(e *Engine, client api.EngineClient, id string, pid int) kernel.Slot {
	m.t.Helper()
	m.prepare(client, id)
	m.container(id, pid)
	m.attach(client, id, pid)
	return *e.scope(id).now().Slot
}

func (m *machine) installed(slot kernel.Slot) kernel.State {
	m.kernel.mu.Lock()
	defer m.kernel.mu.Unlock()
	return m.kernel.slots[slot].State
}

var someFiles = []kernel.File{{ID: kernel.FileID{Device: 40, Inode: 7}, Labels: 0, Flags: kernel.FileModified}}

// What a container did is in force again at its next start, whoever died in between.
func TestStateOfContainer(t *testing.T) {
	for _, test := range []struct {
		name  string
		crash func(m *machine, e *Engine, client api.EngineClient, stop func()) (*Engine, api.EngineClient)
		lost  string
	}{
		{"nobody dies", func(m *machine, e *Engine, client api.EngineClient, _ func()) (*Engine, api.EngineClient) {
			m.exit("c", 100)
			closeScope(m.t, client, "c")
			return e, client
		}, ""},
		{"nobody closes it", func(m *machine, e *Engine, client api.EngineClient, _ func()) (*Engine, api.EngineClient) {
			m.exit("c", 100)
			return e, client
		}, ""},
		{"the daemon dies before the container", func(m *machine, _ *Engine, _ api.EngineClient, stop func()) (*Engine, api.EngineClient) {
			stop()
			m.exit("c", 100)
			e, client, _ := m.start()
			return e, client
		}, ""},
		{"the daemon dies after the container", func(m *machine, _ *Engine, client api.EngineClient, stop func()) (*Engine, api.EngineClient) {
			m.exit("c", 100)
			closeScope(m.t, client, "c")
			stop()
			e, client, _ := m.start()
			return e, client
		}, ""},
		{"the host boots after the container has stopped", func(m *machine, _ *Engine, client api.EngineClient, stop func()) (*Engine, api.EngineClient) {
			m.exit("c", 100)
			closeScope(m.t, client, "c")
			stop()
			m.boot()
			e, client, _ := m.start()
			return e, client
		}, ""},
		{"the host goes down while it runs", func(m *machine, _ *Engine, _ api.EngineClient, stop func()) (*Engine, api.EngineClient) {
			stop()
			m.exit("c", 100)
			m.boot()
			e, client, _ := m.start()
			return e, client
		}, "nothing was saved"},
		{"its saved state is spoilt", func(m *machine, e *Engine, client api.EngineClient, _ func()) (*Engine, api.EngineClient) {
			m.exit("c", 100)
			closeScope(m.t, client, "c")
			m.write("run/states/c.state", "spoilt")
			return e, client
		}, "spoilt"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := newMachine(t)
			e, client, stop := m.start()
			slot := m.begin(e, client, "c", 100)
			if s := m.installed(slot); s.AssumedFlags != 0 || len(s.Files) != 0 {
				t.Errorf("a new container has %+v", s)
			}
			m.kernel.set(func() { m.kernel.states[slot] = kernel.State{Files: someFiles} })
			m.deny(slot, 2)
			waitEvents(t, client, "c", 2)
			e.scope("c").told.SetCursor("agent", 2)
			e, client = test.crash(m, e, client, stop)
			slot = m.begin(e, client, "c", 200)
			got, s := m.installed(slot), m.list(client)["c"]
			if test.lost != "" {
				if got.AssumedFlags != kernel.FileUnknown || len(s.Degraded) != 1 || !strings.Contains(s.Degraded[0], test.lost) {
					t.Errorf("%+v, %v", got, s.Degraded)
				}
				status := (&inside{engine: e, scope: e.scope("c")}).Status()
				if !slices.Equal(status.Degraded, s.Degraded) {
					t.Errorf("inside: %v", status.Degraded)
				}
				m.resetLost(e, client, slot)
				return
			}
			if !slices.Equal(got.Files, someFiles) || got.AssumedFlags != 0 || len(s.Degraded) != 0 || s.Denied != 2 {
				t.Errorf("%+v, %v", got, s)
			}
			kept := len(e.scope("c").events.Items(0))
			if cursor := e.scope("c").told.Cursor("agent"); kept > 0 && cursor != 2 {
				t.Errorf("who was told of 2 events is told from %d on", cursor)
			}
			m.deny(slot, 1)
			events := waitEvents(t, client, "c", kept+1)
			if last := events[len(events)-1].Sequence; last != 3 {
				t.Errorf("the third event is number %d", last)
			}
		})
	}
}

// resetLost takes back what is assumed of a container that runs, for its next start too.
func (m *machine) resetLost(e *Engine, client api.EngineClient, slot kernel.Slot) {
	m.t.Helper()
	response, err := client.Reset(context.Background(), &api.ResetRequest{Scope: "name-c"})
	if err != nil || response.Id != "c" || !response.Running || !m.kernel.forgotten[slot] {
		m.t.Errorf("%v %v", response, err)
	}
	if s := m.list(client)["c"]; len(s.Degraded) != 0 {
		m.t.Errorf("%v", s.Degraded)
	}
	m.exit("c", 200)
	if got := m.installed(m.begin(e, client, "c", 300)); got.AssumedFlags != 0 {
		m.t.Errorf("%+v", got)
	}
}

// boot makes what a boot does: all that is in memory is gone.
func (m *machine) boot() {
	os.Rename(m.path("run/states"), m.path("states"))
	os.RemoveAll(m.path("run"))
	m.mkdir("run")
	os.Rename(m.path("states"), m.path("run/states"))
	m.kernel.set(func() { m.kernel.slots = map[kernel.Slot]kernel.Spec{} })
}

// What was assumed stays so over further starts; a start that fails changes nothing.
func TestLostStaysLost(t *testing.T) {
	m := newMachine(t)
	e, client, _ := m.start()
	m.write("run/states/c.state", "spoilt")
	m.begin(e, client, "c", 100)
	m.exit("c", 100)
	m.prepare(client, "c")
	m.container("c", 200)
	m.kernel.set(func() { m.kernel.selfTest = os.ErrInvalid })
	if _, err := client.Attach(context.Background(), &api.AttachRequest{Id: "c", Pid: 200, Rootfs: "/r"}); err == nil {
		t.Fatal("attached")
	}
	m.kernel.set(func() { m.kernel.selfTest = nil })
	if got := m.installed(m.begin(e, client, "c", 200)); got.AssumedFlags != kernel.FileUnknown {
		t.Errorf("%+v", got)
	}
	m.exit("c", 200)
	closeScope(t, client, "c")
	list, err := client.States(context.Background(), &api.StatesRequest{})
	if err != nil || len(list.States) != 1 || list.States[0].Lost == "" {
		t.Errorf("%v %v", list, err)
	}
	if response, err := client.Reset(context.Background(), &api.ResetRequest{Scope: "c"}); err != nil || response.Running {
		t.Errorf("%v %v", response, err)
	}
	if got := m.installed(m.begin(e, client, "c", 300)); got.AssumedFlags != 0 {
		t.Errorf("%+v", got)
	}
	for _, word := range []string{"", "none"} {
		if _, err := client.Reset(context.Background(), &api.ResetRequest{Scope: word}); err == nil {
			t.Errorf("%q is reset", word)
		}
	}
}

// A container that is known to have run, of which nothing is kept, counts as lost, but
// not when its time is up.
func TestRanBefore(t *testing.T) {
	m := newMachine(t)
	e, client, _ := m.start()
	for i, test := range []struct {
		ago     time.Duration
		assumed uint64
	}{{time.Hour, kernel.FileUnknown}, {25 * time.Hour, 0}} {
		id := string(rune('a' + i))
		_, err := client.Prepare(context.Background(), &api.PrepareRequest{
			Id: id, Program: testProgram(t), Mode: "enforce", EndedUnixMs: m.now().Add(-test.ago).UnixMilli(),
		})
		if err != nil {
			t.Fatal(err)
		}
		m.container(id, 100+i)
		m.attach(client, id, 100+i)
		if got := m.installed(*e.scope(id).now().Slot); got.AssumedFlags != test.assumed {
			t.Errorf("%v ago: %+v", test.ago, got)
		}
	}
}

// A container that has the id of one that is removed is another, which knows of nothing.
func TestSameIDOfAnother(t *testing.T) {
	m := newMachine(t)
	e, client, _ := m.start()
	home := t.TempDir()
	begin := func(pid int) *api.Scope {
		t.Helper()
		_, err := client.Prepare(context.Background(), &api.PrepareRequest{Id: "c", Program: testProgram(t), Mode: "enforce", Home: home})
		if err != nil {
			t.Fatal(err)
		}
		m.container("c", pid)
		m.attach(client, "c", pid)
		return m.list(client)["c"]
	}
	begin(100)
	slot := *e.scope("c").now().Slot
	m.deny(slot, 2)
	waitEvents(t, client, "c", 2)
	m.kernel.set(func() { m.kernel.states[slot] = kernel.State{Files: someFiles} })
	m.exit("c", 100)
	if s := begin(200); s.Denied != 2 || len(m.installed(*e.scope("c").now().Slot).Files) != 1 {
		t.Errorf("the same one: %v", s)
	}
	m.exit("c", 200)
	for i, removed := range []bool{true, false} {
		if removed {
			os.Remove(home)
		}
		home = t.TempDir()
		s := begin(300 + i)
		if s.Denied != 0 || len(s.Degraded) != 0 || len(m.installed(*e.scope("c").now().Slot).Files) != 0 || len(e.scope("c").events.Items(0)) != 0 {
			t.Errorf("another, the first one's home is removed: %t: %v", removed, s)
		}
		slot := *e.scope("c").now().Slot
		m.deny(slot, 2)
		waitEvents(t, client, "c", 2)
		m.kernel.set(func() { m.kernel.states[slot] = kernel.State{Files: someFiles} })
		m.exit("c", 300+i)
	}
}

// What people have answered holds after a restart, but for a grant that is used up, and
// not for another policy.
func TestAnswersOfContainer(t *testing.T) {
	m := newMachine(t)
	e, client, stop := m.start()
	m.begin(e, client, "c", 100)
	s := e.scope("c")
	add := func(key uint64, a answer) {
		err := s.requests.change(m.now(), func() {
			s.requests.all = append(s.requests.all, &request{ID: string(rune('a' + key)), State: requestGranted, Key: kernel.AskKey{key}, Answer: &a})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	add(1, answer{Denied: true, Lifetime: true, Because: "no"})
	add(2, answer{Count: 3, Used: 1})
	add(3, answer{Count: 1}) // used while the daemon was away
	m.kernel.set(func() { m.kernel.answers[*s.now().Slot] = map[kernel.AskKey]kernel.Answer{{2}: {Count: 2}, {3}: {}} })
	add(4, answer{Until: m.now().Add(time.Hour)})
	add(5, answer{Until: m.now().Add(time.Minute)})
	m.exit("c", 100)
	closeScope(t, client, "c")
	stop()
	m.boot()
	m.advance(2 * time.Minute)
	e, client, _ = m.start()
	slot := m.begin(e, client, "c", 200)
	want := map[kernel.AskKey]kernel.Answer{
		{1}: {Denied: true, Timed: true}, {2}: {Count: 2}, {4}: {Timed: true, For: 58 * time.Minute},
	}
	if got, _ := m.kernel.Answers(slot); !maps.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	if list := e.scope("c").requests.list(); len(list) != 3 || list[0].Answer.Because != "no" {
		t.Errorf("%+v", list)
	}
	m.exit("c", 200)
	_, err := client.Prepare(context.Background(), &api.PrepareRequest{
		Id: "c", Program: bytes.Replace(testProgram(t), []byte("ask first"), []byte("ask last"), 1), Mode: "enforce",
	})
	if err != nil {
		t.Fatal(err)
	}
	m.container("c", 300)
	m.attach(client, "c", 300)
	if got, _ := m.kernel.Answers(*e.scope("c").now().Slot); len(got) != 0 {
		t.Errorf("under another policy: %+v", got)
	}
}

// A name is one request's, also when its container was away while another's got it; and no
// answer to a rule that was added at run time comes back, whatever has its number then.
func TestNamesStayDifferent(t *testing.T) {
	m := newMachine(t)
	e, client, _ := m.start()
	m.begin(e, client, "c", 100)
	ask := func(s *scope, key uint64, added bool) {
		r := &request{ID: "k3m9p", State: requestDenied, Key: kernel.AskKey{key}, Answer: &answer{Denied: true, Lifetime: true}}
		r.Item.RuleAdded = added
		if err := s.requests.change(m.now(), func() { s.requests.all = append(s.requests.all, r) }); err != nil {
			t.Fatal(err)
		}
	}
	ask(e.scope("c"), 1, false)
	ask(e.scope("c"), 2, true)
	m.exit("c", 100)
	closeScope(t, client, "c")
	m.begin(e, client, "d", 200)
	ask(e.scope("d"), 3, false)
	m.begin(e, client, "c", 300)
	list := e.scope("c").requests.list()
	if len(list) != 1 || list[0].ID == "k3m9p" || len(list[0].ID) != requestLength || list[0].Key != (kernel.AskKey{1}) {
		t.Errorf("%+v", list)
	}
	if s, r, err := e.findRequest("k3m9p"); err != nil || s.id != "d" || r.Key != (kernel.AskKey{3}) {
		t.Errorf("%v, %+v, %v", s, r, err)
	}
}
