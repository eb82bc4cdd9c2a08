// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/policy/dfa"
	"github.com/actplane/actplane/policy/ir"
)

// machine is a fake host: proc and cgroup trees, a kernel, a clock.
type machine struct {
	t      testing.TB
	dir    string
	kernel *fakeKernel
	// compile is fakeCompile but where a policy is to be a real one.
	compile func(*ir.Program) (*dfa.Image, error)

	approvers approvers // of the next daemon
	notifier  notifier  // as well

	mu     sync.Mutex
	clock  time.Time
	logged []string // what the engine logged, in JSON
	woken  []int    // processes that the engine continued
}

func newMachine(t testing.TB) *machine {
	m := &machine{t: t, compile: fakeCompile, dir: t.TempDir(), kernel: newFakeKernel(), clock: time.Unix(1_700_000_000, 0)}
	m.write("proc/self/mountinfo", "30 20 0:26 / "+m.path("cgroup")+" rw - cgroup2 cgroup2 rw\n")
	m.write("guest", "#!guest\n")
	m.mkdir("cgroup")
	m.process(os.Getpid(), 1, "/tests") // the API's client
	return m
}

func (m *machine) path(name string) string { return filepath.Join(m.dir, name) }

func (m *machine) mkdir(name string) {
	if err := os.MkdirAll(m.path(name), 0o755); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) write(name, text string) {
	m.mkdir(filepath.Dir(name))
	if err := os.WriteFile(m.path(name), []byte(text), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

// container starts a process of its own cgroup.
func (m *machine) container(name string, pid int) {
	m.process(pid, 1, "/"+name)
	m.write("cgroup/"+name+"/cgroup.procs", strconv.Itoa(pid)+"\n")
	m.write("cgroup/"+name+"/cgroup.events", "populated 1\nfrozen 0\n")
}

func (m *machine) process(pid, parent int, cgroup string) {
	m.write(fmt.Sprintf("proc/%d/stat", pid), fmt.Sprintf("%d (a) b) S %d 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %d 0 0\n", pid, parent, pid*10))
	m.write(fmt.Sprintf("proc/%d/cgroup", pid), "1:name=systemd:/x\n0::"+cgroup+"\n")
	m.write(fmt.Sprintf("proc/%d/mountinfo", pid), "31 20 0:40 / / rw - overlay overlay rw,upperdir="+m.path("upper"+cgroup)+"\n")
}

// exit ends a container's processes; its cgroup stays.
func (m *machine) exit(name string, pid int) {
	m.write("cgroup/"+name+"/cgroup.procs", "")
	m.write("cgroup/"+name+"/cgroup.events", "populated 0\nfrozen 0\n")
	os.RemoveAll(m.path(fmt.Sprintf("proc/%d", pid)))
}

func (m *machine) now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.clock
}

func (m *machine) advance(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clock = m.clock.Add(d)
}

func (m *machine) config() Config {
	log := logrus.New()
	log.SetOutput(testWriter{m})
	log.SetFormatter(&logrus.JSONFormatter{})
	return Config{
		Directory: m.path("run"), GuestBinary: m.path("guest"), Version: "test", Kernel: m.kernel,
		Compile: m.compile, Log: logrus.NewEntry(log), Approvers: m.approvers, Notifications: m.notifier,
		host: wakingHost{realHost{proc: m.path("proc")}, m}, now: m.now, interval: time.Hour,
	}
}

// log lists what the engine has logged and says a word.
func (m *machine) log(word string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(m.logged), func(line string) bool { return !strings.Contains(line, word) })
}

// wakingHost notes whom the engine wakes; the processes are none.
type wakingHost struct {
	realHost
	m *machine
}

func (h wakingHost) Continue(pid int, started uint64) error {
	if stopped, err := h.Stopped(pid, started); err != nil || !stopped {
		return err
	}
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	h.m.woken = append(h.m.woken, pid)
	return nil
}

type testWriter struct{ m *machine }

func (w testWriter) Write(p []byte) (int, error) {
	w.m.t.Logf("%s", p)
	w.m.mu.Lock()
	defer w.m.mu.Unlock()
	w.m.logged = append(w.m.logged, string(p))
	return len(p), nil
}

func fakeCompile(p *ir.Program) (*dfa.Image, error) {
	if len(p.Rules) == 0 {
		return nil, errors.New("no rules")
	}
	image := &dfa.Image{}
	for i := range p.Clauses {
		image.Clauses = append(image.Clauses, dfa.Clause{Clause: len(p.Clauses) - 1 - i})
	}
	return image, nil
}

// start runs an engine; stop ends it as a kill would: nothing is tidied up.
func (m *machine) start() (e *Engine, client api.EngineClient, stop func()) {
	m.t.Helper()
	return m.startWith(m.config())
}

func (m *machine) startWith(config Config) (e *Engine, client api.EngineClient, stop func()) {
	m.t.Helper()
	e, err := New(config)
	if err != nil {
		m.t.Fatal(err)
	}
	ready := make(chan struct{})
	e.config.Ready = func() { close(ready) }
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- e.Serve(ctx) }()
	<-ready
	client, connection, err := api.Dial(m.path("run/engine.sock"))
	if err != nil {
		m.t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		connection.Close()
		cancel()
		if err := <-served; err != nil {
			m.t.Errorf("serve: %v", err)
		}
	})
	m.t.Cleanup(stop)
	return e, client, stop
}

func testProgram(t testing.TB) []byte {
	program := ir.Program{
		Labels: []ir.Label{{Name: "AGENT"}, {Name: "SECRET"}},
		Rules:  []ir.Rule{{Name: "no-push", Because: "ask first"}, {Name: "quiet", Because: "too loud"}},
		Clauses: []ir.Clause{
			{Rule: 0, Effect: ir.Block, Op: ir.Exec, Text: "block exec git", Pos: "p.yaml:3:5", If: []ir.Term{{All: 2}}},
			{Rule: 1, Effect: ir.Notify, Op: ir.Write, Text: "notify write any", Pos: "p.yaml:5:5"},
		},
	}
	text, err := json.Marshal(program)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (m *machine) prepare(client api.EngineClient, id string) string {
	return m.prepareProgram(client, id, testProgram(m.t))
}

func (m *machine) prepareProgram(client api.EngineClient, id string, program []byte) string {
	m.t.Helper()
	response, err := client.Prepare(context.Background(), &api.PrepareRequest{
		Id: id, Program: program, Name: "name-" + id, Mode: "enforce",
		Layers:   []*api.Layer{{Name: "p.yaml", Text: []byte("version: 1\n")}},
		Warnings: []string{"p.yaml:1:1: careful"},
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return response.Directory
}

func (m *machine) attach(client api.EngineClient, id string, pid int) {
	m.t.Helper()
	_, err := client.Attach(context.Background(), &api.AttachRequest{Id: id, Pid: int64(pid), Rootfs: "/r"})
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) list(client api.EngineClient) map[string]*api.Scope {
	m.t.Helper()
	response, err := client.List(context.Background(), &api.ListRequest{})
	if err != nil {
		m.t.Fatal(err)
	}
	scopes := map[string]*api.Scope{}
	for _, s := range response.Scopes {
		scopes[s.Id] = s
	}
	return scopes
}

func (m *machine) directories() []string {
	entries, err := os.ReadDir(m.path("run/scopes"))
	if err != nil {
		m.t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	slices.Sort(names)
	return names
}

// deny lets the kernel report n denials.
func (m *machine) deny(slot kernel.Slot, n int) {
	for range n {
		m.kernel.set(func() {
			stats := m.kernel.stats[slot]
			stats.Denied++
			m.kernel.stats[slot] = stats
		})
		m.kernel.records <- kernel.Record{
			Slot: slot, Time: m.now(), Effect: ir.Block, Op: ir.Exec, Clause: 1, Object: "/usr/bin/git",
			Args: []string{"git", "push"}, PID: 5, Comm: "git", Process: kernel.Process{ID: 9, Labels: 3}, Carried: 3,
		}
	}
}
