// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/status"

	"github.com/actplane/actplane/engine/api"
)

func TestLife(t *testing.T) {
	m := newMachine(t)
	_, client, _ := m.start()
	dir := m.prepare(client, "c1")
	if want := m.path("run/scopes/c1/guest"); dir != want {
		t.Fatalf("directory is %q, want %q", dir, want)
	}
	guest, err := os.Stat(dir + "/bin/actplane-guest")
	if err != nil {
		t.Fatal(err)
	}
	original, _ := os.Stat(m.path("run/bin/actplane-guest"))
	if !os.SameFile(guest, original) || guest.Mode().Perm() != 0o555 {
		t.Errorf("guest binary is no link of the copy, or of mode %v", guest.Mode())
	}
	if info, err := os.Stat(dir + "/feedback.sock"); err != nil || info.Mode().Perm() != 0o666 {
		t.Errorf("feedback socket: %v, %v", info, err)
	}
	if s := m.list(client)["c1"]; s.State != "staged" || s.Rules != 2 || s.Name != "name-c1" {
		t.Errorf("staged scope is %v", s)
	}
	m.container("c1", 100)
	m.attach(client, "c1", 100)
	m.attach(client, "c1", 100) // a hook registered twice
	if s := m.list(client)["c1"]; s.State != "enforcing" || s.Cgroup != "/c1" || s.Processes != 1 || len(s.Degraded) != 0 {
		t.Errorf("attached scope is %v", s)
	}
	socket, err := realHost{}.CgroupID(dir + "/feedback.sock")
	if err != nil {
		t.Fatal(err)
	}
	for _, inode := range m.kernel.exempt {
		if inode != socket {
			t.Errorf("exempt is inode %d, the socket has %d", inode, socket)
		}
	}
	if s := m.list(client)["c1"]; len(s.Warnings) != 1 || s.Warnings[0] != "p.yaml:1:1: careful" {
		t.Errorf("warnings are %q", s.Warnings)
	}
	if lines := m.log("careful"); len(lines) != 1 || !strings.Contains(lines[0], `"level":"warning"`) || !strings.Contains(lines[0], `"scope":"c1"`) {
		t.Errorf("logged is %q", lines)
	}
	// Close leaves a container that runs alone, and its id in use.
	closeScope(t, client, "c1")
	if m.kernel.count() != 1 {
		t.Fatal("close removed a scope that has processes")
	}
	_, err = client.Prepare(context.Background(), &api.PrepareRequest{Id: "c1", Program: testProgram(t)})
	wantError(t, err, "scope \"c1\" is in use")
	m.exit("c1", 100)
	closeScope(t, client, "c1")
	if m.kernel.count() != 0 || len(m.directories()) != 0 {
		t.Errorf("close left %d slots, directories %v", m.kernel.count(), m.directories())
	}
	if s := m.list(client)["c1"]; s.State != "closed" {
		t.Errorf("closed scope is %v", s)
	}
	closeScope(t, client, "c1") // again: no error
}

// Without feedback there is no socket and nothing to mount, over restarts of the daemon
// too; events are kept all the same, and everybody who looks is told.
func TestNoFeedback(t *testing.T) {
	m := newMachine(t)
	_, client, stop := m.start()
	m.container("c1", 100)
	response, err := client.Prepare(context.Background(), &api.PrepareRequest{Id: "c1", Program: testProgram(t), NoFeedback: true})
	if err != nil || response.Directory != "" {
		t.Fatalf("directory %q, %v", response.GetDirectory(), err)
	}
	m.attach(client, "c1", 100)
	if lines := m.log("scope enforcing"); len(lines) != 1 || !strings.Contains(lines[0], `"feedback":"none"`) {
		t.Errorf("logged is %q", lines)
	}
	stop()
	_, client, _ = m.start()
	if s := m.list(client)["c1"]; s.State != "enforcing" || s.Feedback != "none" || len(s.Degraded) != 0 {
		t.Errorf("scope is %v", s)
	}
	if _, err := os.Stat(m.path("run/scopes/c1/guest")); !os.IsNotExist(err) || len(m.kernel.exempt) != 0 {
		t.Errorf("the guest's folder: %v; exempt %v", err, m.kernel.exempt)
	}
	for slot := range m.kernel.slots {
		m.deny(slot, 1)
	}
	waitEvents(t, client, "c1", 1)
}

func closeScope(t testing.TB, client api.EngineClient, id string) {
	t.Helper()
	if _, err := client.Close(context.Background(), &api.CloseRequest{Id: id}); err != nil {
		t.Fatal(err)
	}
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(status.Convert(err).Message(), want) {
		t.Errorf("error is %v, want %q", err, want)
	}
}

func TestPrepareRefuses(t *testing.T) {
	m := newMachine(t)
	_, client, _ := m.start()
	for _, test := range []struct {
		want string
		req  *api.PrepareRequest
	}{
		{"id is empty", &api.PrepareRequest{}},
		{"other than letters", &api.PrepareRequest{Id: "a/b"}},
		{"starts with a dot", &api.PrepareRequest{Id: ".."}},
		{"limit is 128", &api.PrepareRequest{Id: strings.Repeat("a", 129)}},
		{"mode \"shadow\" is not supported", &api.PrepareRequest{Id: "a", Mode: "shadow"}},
		{"read policy program", &api.PrepareRequest{Id: "a", Program: []byte("{")}},
		{"unknown field \"Future\"", &api.PrepareRequest{Id: "a", Program: []byte(`{"Future":1}`)}},
		{"names rule 1 of 0", &api.PrepareRequest{Id: "a", Program: []byte(`{"Clauses":[{"Rule":1}]}`)}},
		{"compile policy: no rules", &api.PrepareRequest{Id: "a", Program: []byte(`{}`)}},
		{"the limit is 3145728", &api.PrepareRequest{Id: "a", Program: make([]byte, maxProgram+1)}},
	} {
		_, err := client.Prepare(context.Background(), test.req)
		wantError(t, err, test.want)
	}
	if dirs := m.directories(); len(dirs) != 0 {
		t.Errorf("refused scopes left %v", dirs)
	}
}

func TestAttachRefuses(t *testing.T) {
	m := newMachine(t)
	_, client, _ := m.start()
	m.container("other", 50)
	m.prepare(client, "other")
	m.attach(client, "other", 50)
	m.process(60, 1, "/")
	m.container("shared", 70)
	m.process(71, 1, "/shared")
	m.process(72, 70, "/shared")
	m.write("cgroup/shared/cgroup.procs", "70\n72\n71\n")
	m.container("other/nested", 80)
	m.container("good", 90)
	for _, test := range []struct {
		name, want string
		pid        int
		before     func()
	}{
		{"gone", "find process 10", 10, nil},
		{"zero", "not a process's number", 0, nil},
		{"root", "root cgroup", 60, nil},
		{"strangers", "also holds process 71", 70, nil},
		{"nested", "overlaps with that of scope \"other\"", 80, nil},
		{"install", "install policy: no room", 90, func() { m.kernel.set(func() { m.kernel.install = errors.New("no room") }) }},
		{"selftest", "self-test: not denied", 90, func() {
			m.kernel.set(func() { m.kernel.install, m.kernel.selfTest = nil, errors.New("not denied") })
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			m.prepare(client, test.name)
			if test.before != nil {
				test.before()
			}
			_, err := client.Attach(context.Background(), &api.AttachRequest{Id: test.name, Pid: int64(test.pid)})
			wantError(t, err, test.want)
			if dirs := m.directories(); len(dirs) != 1 || m.kernel.count() != 1 {
				t.Errorf("a failed attach left %v and %d slots", dirs, m.kernel.count())
			}
		})
	}
	_, err := client.Attach(context.Background(), &api.AttachRequest{Id: "unknown", Pid: 90})
	wantError(t, err, "is not prepared")
}

func TestAttachInParallel(t *testing.T) {
	m := newMachine(t)
	_, client, _ := m.start()
	m.kernel.entered, m.kernel.held = make(chan struct{}), make(chan struct{})
	var group sync.WaitGroup
	for i, id := range []string{"a", "b", "c", "d"} {
		m.container(id, 100+i)
		m.prepare(client, id)
		group.Go(func() { m.attach(client, id, 100+i) })
	}
	for range 4 {
		<-m.kernel.entered // all four are in their self-test at once
	}
	close(m.kernel.held)
	group.Wait()
	if m.kernel.count() != 4 {
		t.Errorf("%d scopes are installed", m.kernel.count())
	}
}

func TestSweep(t *testing.T) {
	m := newMachine(t)
	e, client, _ := m.start()
	for i, id := range []string{"stays", "removed", "empty", "moved", "renewed"} {
		m.container(id, 100+i)
		m.prepare(client, id)
		m.attach(client, id, 100+i)
	}
	m.prepare(client, "staged")
	os.RemoveAll(m.path("cgroup/removed"))
	m.exit("empty", 102)
	m.exit("moved", 103)
	m.process(103, 1, "/elsewhere") // its first process left the cgroup and lives
	if err := os.Rename(m.path("cgroup/renewed"), m.path("cgroup/old")); err != nil {
		t.Fatal(err)
	}
	m.container("renewed", 200) // same path, another cgroup
	m.advance(time.Minute)
	e.sweep(context.Background())
	want := "moved staged stays"
	if got := strings.Join(m.directories(), " "); got != want {
		t.Errorf("after a minute there are %q, want %q", got, want)
	}
	m.advance(stagedLifetime)
	e.sweep(context.Background())
	if got := strings.Join(m.directories(), " "); got != "moved stays" || m.kernel.count() != 2 {
		t.Errorf("after three minutes there are %q and %d slots", got, m.kernel.count())
	}
	if n := len(m.list(client)); n != 5 {
		t.Errorf("%d scopes are listed, closed ones with them", n)
	}
	m.advance(closedLifetime + time.Second)
	e.sweep(context.Background())
	if n := len(m.list(client)); n != 2 || len(e.slots) != 2 {
		t.Errorf("%d scopes are listed in the end, %d slots known", n, len(e.slots))
	}
}

func TestRemoveFails(t *testing.T) {
	m := newMachine(t)
	e, client, _ := m.start()
	m.container("c", 100)
	m.prepare(client, "c")
	m.attach(client, "c", 100)
	m.exit("c", 100)
	m.kernel.set(func() { m.kernel.remove = errors.New("busy") })
	e.sweep(context.Background())
	if len(m.directories()) != 1 {
		t.Fatal("the record is gone and the slot is not")
	}
	m.kernel.set(func() { m.kernel.remove = nil })
	e.sweep(context.Background())
	if len(m.directories()) != 0 || m.kernel.count() != 0 {
		t.Error("the sweep did not try again")
	}
}

func TestOneDaemon(t *testing.T) {
	m := newMachine(t)
	_, _, stop := m.start()
	if _, err := New(m.config()); !errors.Is(err, ErrRunning) {
		t.Errorf("a second daemon: %v", err)
	}
	stop()
	m.start()
}
