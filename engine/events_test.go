// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/feedback"
	"github.com/actplane/actplane/policy/ir"
)

const deadline = 20 * time.Second

func TestEvents(t *testing.T) {
	m := newMachine(t)
	_, client, _ := m.start()
	for i, id := range []string{"abc1", "abd2"} {
		m.container(id, 100+i)
		m.prepare(client, id)
		m.attach(client, id, 100+i)
	}
	one, two := kernel.Slot{Index: 1, Generation: 7}, kernel.Slot{Index: 2, Generation: 7}
	m.kernel.records <- kernel.Record{Slot: one, Probe: true}
	m.kernel.records <- kernel.Record{Slot: kernel.Slot{Index: 1, Generation: 6}} // a predecessor's
	m.deny(one, 2)
	m.deny(two, 1)
	m.kernel.set(func() { m.kernel.stats[one] = kernel.Stats{Denied: 7, Lost: 5} })
	m.deny(one, 1)
	events := waitEvents(t, client, "abc", 3)
	if e := events[0]; e.Scope != "abc1" || e.ScopeName != "name-abc1" || e.Effect != "block" || e.Operation != "exec" ||
		e.Pid != 5 || e.Comm != "git" || !slices.Equal(e.Labels, []string{"SECRET"}) || e.ClausePos != "p.yaml:3:5" {
		t.Errorf("event is %v", e)
	}
	if events[1].Lost != 0 || events[2].Lost != 5 {
		t.Errorf("lost are %d and %d", events[1].Lost, events[2].Lost)
	}
	if all := waitEvents(t, client, "", 4); len(all) != 4 {
		t.Errorf("all events: %v", all)
	}
	waitEvents(t, client, "name-abd2", 1)
	for word, want := range map[string]string{"ab": "fits 2 scopes", "x": "no scope is \"x\""} {
		stream, err := client.Events(context.Background(), &api.EventsRequest{Scope: word})
		if err == nil {
			_, err = stream.Recv()
		}
		wantError(t, err, want)
	}
	stream, err := client.Events(context.Background(), &api.EventsRequest{History: true})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for ; err == nil; n++ {
		_, err = stream.Recv()
	}
	if n != 5 || !errors.Is(err, io.EOF) {
		t.Errorf("the stream without follow ended after %d with %v", n-1, err)
	}
	m.exit("abd2", 101)
	closeScope(t, client, "abd2")
	waitEvents(t, client, "abd2", 1)
	waitEvents(t, client, "ab", 3) // of two that the word fits the one that runs
}

// Names that are no text reach whoever reads events, and do not end the stream.
func TestEventsOfNoText(t *testing.T) {
	m := newMachine(t)
	_, client, _ := m.start()
	m.container("c", 100)
	m.prepare(client, "c")
	m.attach(client, "c", 100)
	m.kernel.records <- kernel.Record{
		Slot: kernel.Slot{Index: 1, Generation: 7}, Time: m.now(), Effect: ir.Block, Op: ir.Write, Clause: -1, Default: -1,
		Object: "/w/\xff", Args: []string{"\x80"}, Comm: "\xc3",
	}
	if e := waitEvents(t, client, "c", 1)[0]; e.Object != "/w/\uFFFD" || e.Args[0] != "\uFFFD" || e.Comm != "\uFFFD" {
		t.Errorf("event is %v", e)
	}
}

func TestSlowReader(t *testing.T) {
	var h hub
	s := &scope{id: "c"}
	sub, done := h.subscribe("")
	defer done()
	for i := range subscriberBuffer + 10 {
		h.publish(s, feedback.Item{Sequence: uint64(i + 1)})
	}
	for range subscriberBuffer {
		if item := (<-sub.events).item; item.Lost != 0 {
			t.Fatalf("item %d tells of %d lost", item.Sequence, item.Lost)
		}
	}
	h.publish(s, feedback.Item{Sequence: subscriberBuffer + 11, Lost: 2})
	if item := (<-sub.events).item; item.Lost != 12 {
		t.Errorf("lost are %d, want 12", item.Lost)
	}
}

func TestHistory(t *testing.T) {
	dir := t.TempDir()
	h, err := newHistory(dir, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	const n = 3000
	for range n {
		if _, err := h.add(feedback.Item{Object: strings.Repeat("x", 2000)}, 4); err != nil {
			t.Fatal(err)
		}
	}
	h.close()
	path := filepath.Join(dir, "events.jsonl")
	if info, err := os.Stat(path); err != nil || info.Size() > maxJournal {
		t.Errorf("journal: %v, %v", info, err)
	}
	// A kill in the middle of a write leaves a part of a line.
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	file.WriteString(`{"Item":{"Sequence":3001,"Obj`)
	file.Close()
	h, err = loadHistory(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	if h.Last() != n || len(h.Items(0)) < 500 {
		t.Errorf("loaded are %d items, the last is %d", len(h.Items(0)), h.Last())
	}
	item, err := h.add(feedback.Item{}, 4)
	if err != nil || item.Sequence != n+1 || item.Lost != 0 {
		t.Errorf("the next item is %d, lost %d, %v", item.Sequence, item.Lost, err)
	}
	again, err := loadHistory(dir, 0)
	if err != nil || again.Last() != n+1 {
		t.Errorf("loaded again, the last is %d, %v", again.Last(), err)
	}
}

func TestCursors(t *testing.T) {
	dir := t.TempDir()
	c := loadCursors(dir, 1000)
	for i := range maxConsumers + 5 {
		c.SetCursor(strings.Repeat("c", i+1), uint64(i))
		c.SetCursor("kept", 77)
	}
	c = loadCursors(dir, 1000)
	if c.Cursor("kept") != 77 || c.Cursor("c") != 0 || c.Cursor(strings.Repeat("c", 200)) != 199 || len(c.known) != maxConsumers {
		t.Errorf("cursors are %d: %v", len(c.known), c.known)
	}
	// The newest events were lost, and others get their numbers.
	if c = loadCursors(dir, 50); c.Cursor("kept") != 50 {
		t.Errorf("a cursor is ahead: %v", c.Cursor("kept"))
	}
}

func TestInside(t *testing.T) {
	m := newMachine(t)
	e, client, _ := m.start()
	m.container("c", 100)
	m.prepare(client, "c")
	m.attach(client, "c", 100)
	s := e.scope("c")
	slot := *s.now().Slot
	in := &inside{engine: e, scope: s}
	m.kernel.set(func() {
		m.kernel.processes[100] = kernel.Process{ID: 1, Slot: slot, Ancestors: []kernel.ProcessID{4, 5}}
		m.kernel.processes[200] = kernel.Process{ID: 2, Slot: kernel.Slot{Index: 9}}
	})
	m.process(300, 1, "/c/nested")
	m.mkdir("cgroup/c/nested")
	m.process(400, 1, "/d")
	m.mkdir("cgroup/d")
	if p, ok := in.Peer(100); !ok || p.ID != 1 || len(p.Ancestors) != 2 {
		t.Errorf("peer 100 is %v, %v", p, ok)
	}
	if p, ok := in.Peer(300); !ok || p.ID != 0 {
		t.Errorf("peer 300 is %v, %v", p, ok)
	}
	for _, pid := range []int{200, 400, 500} {
		if _, ok := in.Peer(pid); ok {
			t.Errorf("peer %d is taken for one of the scope", pid)
		}
	}
	st := in.Status()
	if !st.Enforcing || st.Tier != "lsm" || len(st.Layers) != 1 || len(st.Layers[0].SHA256) != 64 {
		t.Errorf("status is %v", st)
	}
	// A record that the kernel has counted is waited for.
	m.kernel.set(func() { m.kernel.stats[slot] = kernel.Stats{Denied: 1} })
	got := make(chan int)
	go func() { got <- len(in.Items(0)) }()
	m.kernel.records <- kernel.Record{Slot: slot, Clause: -1, Reason: "the engine's own"}
	if n := <-got; n != 1 {
		t.Errorf("%d items", n)
	}
	if item := in.Items(0)[0]; item.Rule != "" || item.Because != "the engine's own" {
		t.Errorf("item is %v", item)
	}
	// One that never comes is waited for once.
	m.kernel.set(func() { m.kernel.stats[slot] = kernel.Stats{Denied: 2} })
	in.Items(0)
	if in.missing.Load() != 1 {
		t.Errorf("missing are %d", in.missing.Load())
	}
}

func TestPeerInsideIsRefused(t *testing.T) {
	m := newMachine(t)
	e, client, _ := m.start()
	m.container("c", 100)
	m.prepare(client, "c")
	m.attach(client, "c", 100)
	m.kernel.set(func() {
		m.kernel.processes[os.Getpid()] = kernel.Process{Slot: *e.scope("c").now().Slot}
	})
	_, connection, err := api.Dial(m.path("run/engine.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	_, err = api.NewEngineClient(connection).Status(context.Background(), &api.StatusRequest{})
	if err == nil {
		t.Error("a process of a scope may talk to the engine")
	}
	if err := e.checkPeer(&unix.Ucred{Pid: 1, Uid: uint32(os.Geteuid()) + 1}); err == nil {
		t.Error("another user may talk to the engine")
	}
	m.mkdir("cgroup/c/nested")
	m.process(101, 100, "/c/nested")
	m.process(102, 1, "/elsewhere")
	for pid, want := range map[int32]bool{
		100: false, 101: false, // in the cgroup, and the kernel side does not know it
		102: true,
		103: false, // gone: it may have connected for a process of the scope
		0:   false, // cannot be seen from here
	} {
		if err := e.checkPeer(&unix.Ucred{Pid: pid, Uid: uint32(os.Geteuid())}); (err == nil) != want {
			t.Errorf("process %d: %v", pid, err)
		}
	}
	m.kernel.set(func() { m.kernel.processes[102] = kernel.Process{Slot: kernel.Slot{Index: 9}} })
	if err := e.checkPeer(&unix.Ucred{Pid: 102, Uid: uint32(os.Geteuid())}); err == nil {
		t.Error("a process of a scope without a record may talk to the engine")
	}
}

func TestLongSocketPath(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("d", 100))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	listener, err := listenUnix(filepath.Join(dir, "feedback.sock"), 0o666)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	info, err := os.Stat(filepath.Join(dir, "feedback.sock"))
	if err != nil || info.Mode().Type() != os.ModeSocket || info.Mode().Perm() != 0o666 {
		t.Errorf("socket: %v, %v", info, err)
	}
}

func TestSocketThatCannotBe(t *testing.T) {
	if _, err := listenUnix("/nonexistent/s", 0o666); err == nil {
		t.Error("no error for a directory that is not there")
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "s"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := listenUnix(filepath.Join(dir, "s"), 0o666); err == nil {
		t.Error("no error for a socket that cannot be put in place")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left are %v, %v", entries, err)
	}
}

// Records that the kernel had no room for are told of by rule: when an agent asks, when
// the next record comes, and by the sweep. The numbers of events stay without gaps.
func TestLostByRule(t *testing.T) {
	m := newMachine(t)
	e, client, stop := m.start()
	slot := m.begin(e, client, "c", 100)
	lose := func(n uint64) {
		m.kernel.set(func() {
			stats := m.kernel.stats[slot]
			stats.Denied, stats.Lost = stats.Denied+n, stats.Lost+n
			m.kernel.stats[slot] = stats
			m.kernel.lost[slot] = append(m.kernel.lost[slot], kernel.LostRecord{Count: n, Record: kernel.Record{
				Slot: slot, Effect: ir.Block, Op: ir.Exec, Clause: 1, Default: -1, Label: -1,
			}})
		})
	}
	in := &inside{engine: e, scope: e.scope("c")}
	lose(3)
	if items := in.Items(0); len(items) != 1 || items[0].Unrecorded != 3 || items[0].Rule != "no-push" || items[0].Lost != 0 {
		t.Errorf("asked from inside: %+v", items)
	}
	lose(2)
	m.deny(slot, 1)
	events := waitEvents(t, client, "c", 3)
	if events[1].Unrecorded != 2 || events[1].Because != "ask first" || events[2].Unrecorded != 0 || events[2].Lost != 0 || events[2].Sequence != 3 {
		t.Errorf("before the next: %v", events)
	}
	lose(4)
	e.sweep(context.Background())
	if items := in.Items(3); len(items) != 1 || items[0].Unrecorded != 4 || items[0].Sequence != 4 {
		t.Errorf("by the sweep: %+v", items)
	}
	// Another daemon does not tell again, and counts right.
	stop()
	e, _, _ = m.start()
	in = &inside{engine: e, scope: e.scope("c")}
	if items := in.Items(4); len(items) != 0 {
		t.Errorf("told again: %+v", items)
	}
	lose(5)
	m.exit("c", 100)
	e.sweep(context.Background())
	scopes, _, err := e.find("c")
	if err != nil || len(scopes) != 1 || scopes[0].events.Last() != 5 || scopes[0].events.Items(4)[0].Unrecorded != 5 {
		t.Errorf("what was lost at the end: %v %v", scopes, err)
	}
}
