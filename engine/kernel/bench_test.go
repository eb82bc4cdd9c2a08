// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/internal/testenv"
	"github.com/actplane/actplane/policy"
)

// bench is a scope under test.
type bench struct {
	t       *testing.T
	k       *Kernel
	slot    Slot
	cgroup  string
	dir     string // of the test's files; $D in a policy
	policy  *policy.Policy
	records chan Record
	gains   chan Gain
	// stopRecords ends the reading of records, and waits for its end.
	stopRecords func()
}

// tiers runs a test on the tier that this guest has: lsm, or in a guest without bpf
// in lsm= fmod_ret.
func tiers(t *testing.T, test func(t *testing.T, tier Tier)) {
	testenv.RequireKernel(t)
	tier, err := Probe(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]Tier{"bpf": LSM, "nobpf": FmodRet}[testenv.Tier()]; tier != want {
		t.Fatalf("the probe finds %s in a guest that has %s", tier, want)
	}
	t.Run(string(tier), func(t *testing.T) { test(t, tier) })
}

// shared is the kernel side of all benches, one after the other: to load it, and to detach
// its hooks, takes most of the time of a test. After a test that failed it is loaded afresh.
var shared sharedKernel

type sharedKernel struct {
	k      *Kernel // nil when it is to be loaded
	config Config
}

func (s *sharedKernel) open(t *testing.T, tier Tier) *Kernel {
	t.Helper()
	if s.config.PinDir == "" {
		s.config.PinDir = "/sys/fs/bpf/actplane-test"
		s.config.Linger = time.Hour
		runDir, err := os.MkdirTemp("", "actplane-test")
		if err != nil {
			t.Fatal(err)
		}
		s.config.RunDir = runDir
	}
	if s.k == nil {
		k, err := openTier(s.config, tier)
		if err != nil {
			t.Fatal(err)
		}
		s.k = k
	}
	return s.k
}

// giveBack takes the kernel side, or what has taken over from it, for the next test.
func (s *sharedKernel) giveBack(t *testing.T, k *Kernel) {
	t.Helper()
	s.k = k
	k.config = s.config
	if t.Failed() {
		if err := s.remove(); err != nil {
			t.Error(err)
		}
	}
}

// remove leaves nothing in the kernel.
func (s *sharedKernel) remove() error {
	if s.k == nil {
		return nil
	}
	err := errors.Join(s.k.Close(), Uninstall(s.config.PinDir))
	s.k = nil
	return err
}

// padding is added to the rules of newBench: see TestWide.
var padding string

// newBench makes a scope under rules, newBenchOf under a policy file.
func newBench(t *testing.T, tier Tier, text string) *bench {
	t.Helper()
	return newBenchOf(t, tier, "policy: |\n"+indent(text+padding))
}

func newBenchOf(t *testing.T, tier Tier, text string) *bench {
	t.Helper()
	dir := t.TempDir()
	text = strings.ReplaceAll(text, "$D", dir)
	compiled, err := policy.Compile([]policy.Document{{Name: "test", Text: []byte("version: 1\n" + text), Layer: policy.Host}},
		policy.Options{Workspace: dir})
	if err != nil {
		t.Fatal(err)
	}
	k := shared.open(t, tier)
	b := &bench{t: t, k: k, dir: dir, policy: compiled, records: make(chan Record, 1000), gains: make(chan Gain, 1000)}
	b.readRecords()
	b.cgroup = filepath.Join("/sys/fs/cgroup", "actplane-test-"+filepath.Base(dir))
	if err := os.MkdirAll(b.cgroup, 0o755); err != nil {
		t.Fatal(err)
	}
	b.slot, err = k.Install(Spec{Cgroup: b.cgroup, HostRoot: true, Image: compiled.Image})
	if err != nil {
		t.Fatal(err)
	}
	if err := k.DetachLingering(); err != nil { // of the test before: it must not help
		t.Error(err)
	}
	t.Cleanup(func() {
		for t.Failed() {
			select {
			case r := <-b.records:
				t.Logf("record %+v", r)
				continue
			default:
			}
			break
		}
		if err := b.k.Remove(b.slot); err != nil {
			t.Error(err)
		}
		for _, problem := range b.k.Problems() {
			t.Log(problem)
		}
		b.stopRecords()
		shared.giveBack(t, b.k)
		_ = os.Remove(b.cgroup)
	})
	if err := k.SelfTest(context.Background(), b.slot, b.cgroup); err != nil {
		t.Fatal(err)
	}
	return b
}

// readRecords reads records until stopRecords is called.
func (b *bench) readRecords() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	k := b.k
	go func() {
		defer close(done)
		_ = k.Records(ctx, func(r Record) { b.records <- r }, func(g Gain) { b.gains <- g })
	}()
	b.stopRecords = func() {
		cancel()
		<-done
	}
}

func indent(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString("  " + line)
	}
	return out.String()
}

// actor starts a process in the scope, past its setup.
func (b *bench) actor() *actor {
	b.t.Helper()
	fd, err := unix.Open(b.cgroup, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		b.t.Fatal(err)
	}
	defer unix.Close(fd)
	self, err := os.Executable()
	if err != nil {
		b.t.Fatal(err)
	}
	a := &actor{t: b.t, cmd: exec.Command(self, "actor")}
	a.cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: fd}
	a.cmd.Dir = b.dir
	a.cmd.Stderr = os.Stderr
	if a.stdin, err = a.cmd.StdinPipe(); err != nil {
		b.t.Fatal(err)
	}
	stdout, err := a.cmd.StdoutPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	a.out = bufio.NewReader(stdout)
	if err := a.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(a.end)
	return a
}

// file makes a file from outside of the scope and returns its path.
func (b *bench) file(name string) string {
	b.t.Helper()
	path := filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("text"), 0o644); err != nil {
		b.t.Fatal(err)
	}
	return path
}

// script makes a program from outside of the scope.
func (b *bench) script(name, text string) string {
	b.t.Helper()
	path := b.file(name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.Chmod(path, 0o755); err != nil {
		b.t.Fatal(err)
	}
	return path
}

// record waits for the next record.
func (b *bench) record() Record {
	b.t.Helper()
	select {
	case r := <-b.records:
		return r
	case <-time.After(10 * time.Second):
		b.t.Fatal("no record")
		return Record{}
	}
}
