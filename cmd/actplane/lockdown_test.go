// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/actplane/actplane/engine/api"
)

// locking is an engine that has locks.
type locking struct {
	standing
	locks    []*api.Lock
	lockdown *api.LockdownRequest
	unlock   *api.UnlockRequest
}

func (l *locking) Lockdown(_ context.Context, req *api.LockdownRequest) (*api.LockdownResponse, error) {
	l.lockdown = req
	return &api.LockdownResponse{Locks: l.locks}, nil
}

func (l *locking) Unlock(_ context.Context, req *api.UnlockRequest) (*api.UnlockResponse, error) {
	l.unlock = req
	return &api.UnlockResponse{Locks: l.locks}, nil
}

func TestLockdownCommand(t *testing.T) {
	since := time.Now().Add(-time.Minute)
	l := &locking{locks: []*api.Lock{
		{Id: strings.Repeat("a", 64), Name: "web\x1b[2J", SinceUnixMs: since.UnixMilli(), By: "ann\x07", Because: "why", Frozen: true, Running: true, Refused: 7},
		{Id: "b", By: "bob"},
	}}
	dir := serveEngine(t, l)
	t.Setenv("SUDO_UID", "4242")
	command := commands(t, dir)
	want := "web\\x1b[2J is locked: everything that it does is refused, and its processes are stopped\nb is locked: it does not run, and cannot be started\n"
	if got := command("lockdown", "web", "--because", "a reason", "--freeze"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if r := l.lockdown; r.Scope != "web" || r.All || !r.Freeze || r.Because != "a reason" || r.By.Uid != 4242 || r.By.Via != "cli" {
		t.Errorf("asked for %v", r)
	}
	got := command("unlock", "--all")
	if !strings.HasPrefix(got, "web\\x1b[2J, locked by ann\\x07 1m") || !strings.Contains(got, " ago, is unlocked; 7 operations were refused\nb is unlocked\n") || !l.unlock.All || l.unlock.By.Uid != 4242 {
		t.Errorf("got\n%s", got)
	}
	var lines []lockLine
	if err := json.Unmarshal([]byte(command("lockdown", "--all", "--format", "json")), &lines); err != nil || len(lines) != 2 || lines[0].Refused != 7 || lines[1].Since != nil || !l.lockdown.All {
		t.Errorf("%+v %v", lines, err)
	}
	l.locks = nil
	if got := command("lockdown", "--all"); got != "nothing runs under a policy\n" {
		t.Errorf("got %q", got)
	}
	if got := command("unlock", "--all", "--format", "json"); got != "[]\n" {
		t.Errorf("got %q", got)
	}
}
