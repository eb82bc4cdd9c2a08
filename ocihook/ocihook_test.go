// SPDX-License-Identifier: Apache-2.0

package ocihook

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/actplane/actplane/internal/bundle"
	"github.com/actplane/actplane/internal/daemon"
	"github.com/actplane/actplane/internal/daemon/daemontest"
)

type world struct {
	engine *daemontest.Engine
	hook   *Hook
	bundle string
	stderr bytes.Buffer
}

func newWorld(t *testing.T, config string) *world {
	t.Helper()
	directory, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(directory, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	w := &world{bundle: directory}
	var socket string
	w.engine, socket = daemontest.Start(t)
	w.hook = &Hook{Stderr: &w.stderr, Records: bundle.Records(filepath.Join(directory, "runtime")),
		Engine: daemon.Options{Socket: socket, Directory: t.TempDir(), Program: "/bin/false", NoSystemd: true, NoCgroup: true}}
	return w
}

func (w *world) state(pid int) string {
	return fmt.Sprintf(`{"ociVersion":"1.0.2","id":"one","status":"creating","pid":%d,"bundle":%q,"annotations":{"a":"b"}}`, pid, w.bundle)
}

func (w *world) run(state string, args ...string) int {
	w.stderr.Reset()
	w.hook.Stdin = strings.NewReader(state)
	return w.hook.Run(args)
}

func TestCreateRuntime(t *testing.T) {
	for path, want := range map[string]string{"rootfs": "BUNDLE/rootfs", "/var/lib/x/merged/": "/var/lib/x/merged", "../r": "BUNDLE/../r"} {
		w := newWorld(t, fmt.Sprintf(`{"root":{"path":%q}}`, path))
		record := &bundle.Record{ID: "one", Bundle: w.bundle}
		if err := w.hook.Records.Save(record); err != nil {
			t.Fatal(err)
		}
		if status := w.run(w.state(os.Getpid()), "createRuntime"); status != 0 || w.stderr.Len() != 0 {
			t.Fatalf("status %d, stderr %q", status, &w.stderr)
		}
		attached := w.engine.Attached()
		want = filepath.Clean(strings.ReplaceAll(want, "BUNDLE", w.bundle))
		if len(attached) != 1 || attached[0].Id != "one" || attached[0].Pid != int64(os.Getpid()) || attached[0].Rootfs != want {
			t.Errorf("attached %v", attached)
		}
		record, err := w.hook.Records.Load("one")
		if err != nil || record.Pid != os.Getpid() || record.PidStarted == 0 {
			t.Errorf("record %+v, error %v", record, err)
		}
	}
}

func TestCreateRuntimeFails(t *testing.T) {
	const config = `{"root":{"path":"rootfs"}}`
	for _, test := range []struct {
		name, config, want string
		break_             func(*world)
		state              func(*world) string
	}{
		{name: "attach", config: config, want: `policy of container "one" cannot be enforced: the self-test failed`,
			break_: func(w *world) { w.engine.AttachErr = errors.New("the self-test\nfailed") }},
		{name: "engine", config: config, want: "cannot be started", break_: func(w *world) { w.hook.Engine.Socket += ".none" }},
		{name: "no root", config: `{}`, want: "no root.path"},
		{name: "no config", config: `nonsense`, want: "parse"},
		{name: "pid", config: config, want: "no process", state: func(w *world) string { return w.state(0) }},
		{name: "state", config: config, want: "read container state", state: func(*world) string { return "nonsense" }},
		{name: "empty state", config: config, want: "read container state", state: func(*world) string { return "" }},
		{name: "id", config: config, want: "container id", state: func(w *world) string { return `{"id":"../x","pid":1}` }},
		{name: "relative bundle", config: config, want: "not an absolute path", state: func(w *world) string { return `{"id":"one","pid":1,"bundle":"b"}` }},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, test.config)
			if test.break_ != nil {
				test.break_(w)
			}
			state := w.state(os.Getpid())
			if test.state != nil {
				state = test.state(w)
			}
			status := w.run(state, "createRuntime")
			if status != 1 || !strings.Contains(w.stderr.String(), test.want) || strings.Contains(w.stderr.String(), "\n") {
				t.Errorf("status %d, stderr %q", status, &w.stderr)
			}
		})
	}
}

func TestPoststop(t *testing.T) {
	w := newWorld(t, `{}`)
	save := func(directory string) {
		if err := w.hook.Records.Save(&bundle.Record{ID: "one", Bundle: directory}); err != nil {
			t.Fatal(err)
		}
	}
	save("/another")
	if status := w.run(w.state(0), "poststop"); status != 0 || len(w.engine.Closed()) != 0 {
		t.Errorf("status %d, closed %q: the scope is another container's", status, w.engine.Closed())
	}
	save(w.bundle)
	if status := w.run(w.state(0), "poststop"); status != 0 || len(w.engine.Closed()) != 1 || w.stderr.Len() != 0 {
		t.Errorf("status %d, closed %q, stderr %q", status, w.engine.Closed(), &w.stderr)
	}
	if _, err := w.hook.Records.Load("one"); err == nil {
		t.Error("the record is still there")
	}
	// Errors are told and break nothing.
	w.engine.CloseErr = errors.New("busy")
	if status := w.run(w.state(0), "poststop"); status != 0 || !strings.Contains(w.stderr.String(), "busy") {
		t.Errorf("status %d, stderr %q", status, &w.stderr)
	}
	w.hook.Engine.Socket += ".none"
	save(w.bundle)
	if status := w.run(w.state(0), "poststop"); status != 0 {
		t.Errorf("status %d", status)
	}
	if _, err := w.hook.Records.Load("one"); err == nil {
		t.Error("the record is still there")
	}
	if status := w.run("nonsense", "poststop"); status != 0 || w.stderr.Len() == 0 {
		t.Errorf("status %d, stderr %q", status, &w.stderr)
	}
}

func TestUsage(t *testing.T) {
	w := newWorld(t, `{}`)
	for _, args := range [][]string{{}, {"frob"}, {"poststop", "x"}} {
		if status := w.run("", args...); status != 2 {
			t.Errorf("%q: status %d", args, status)
		}
	}
}
