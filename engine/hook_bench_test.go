// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/bpf"
	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/internal/testenv"
	"github.com/actplane/actplane/policy/ir"
)

// ringKernel is a fakeKernel but for the ring buffer that its records come through, which is
// a real one. Whoever asks is a program of the agent's.
type ringKernel struct {
	*fakeKernel
	ring *ebpf.Map
	emit *ebpf.Program // sends a record, as the programs on hooks do
}

// agent is the number of the process that has started both the hook and what was refused.
const agent = 9

func newRingKernel(b *testing.B, fake *fakeKernel, sample []byte) *ringKernel {
	b.Helper()
	ring, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.RingBuf, MaxEntries: 1 << 20})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = ring.Close() })
	held, err := ebpf.NewMap(&ebpf.MapSpec{
		Type: ebpf.Array, KeySize: 4, ValueSize: uint32(len(sample)), MaxEntries: 1, Contents: []ebpf.MapKV{{Key: uint32(0), Value: sample}},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = held.Close() })
	emit, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.Syscall, Flags: unix.BPF_F_SLEEPABLE, License: "GPL", Instructions: asm.Instructions{
		asm.LoadMapValue(asm.R2, held.FD(), 0),
		asm.LoadMapPtr(asm.R1, ring.FD()),
		asm.Mov.Imm(asm.R3, int32(len(sample))),
		asm.Mov.Imm(asm.R4, 0),
		asm.FnRingbufOutput.Call(),
		asm.Return(),
	}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = emit.Close() })
	return &ringKernel{fakeKernel: fake, ring: ring, emit: emit}
}

func (k *ringKernel) Records(ctx context.Context, handle func(kernel.Record), gained func(kernel.Gain)) error {
	return kernel.ReadRecords(ctx, k.ring, func(record kernel.Record, _ uint32) { handle(record) }, gained)
}

func (k *ringKernel) Process(pid int) (kernel.Process, bool, error) {
	if pid == os.Getpid() {
		return kernel.Process{}, false, nil // the operator's client
	}
	return kernel.Process{ID: kernel.ProcessID(1000 + pid), Slot: benchSlot, Ancestors: []kernel.ProcessID{agent, agent, agent}}, true, nil
}

var benchSlot = kernel.Slot{Index: 1, Generation: 7}

// refuse counts a refused push, and reports it.
func (k *ringKernel) refuse(b *testing.B) {
	k.set(func() {
		stats := k.stats[benchSlot]
		stats.Denied++
		k.stats[benchSlot] = stats
	})
	if status, err := k.emit.Run(&ebpf.RunOptions{}); err != nil || status != 0 {
		b.Fatalf("%d %v", status, err)
	}
}

// refusedPush is the record of one.
func refusedPush(b *testing.B) []byte {
	const object, args = "/usr/bin/git", "git\x00push\x00origin\x00"
	raw := bpf.EnforcerRecord{
		Kind: 1, Effect: uint8(ir.Block), Op: uint8(ir.Exec), ObjectKind: 1, Process: 10, Labels: 3, Carried: 3, Ancestors: [16]uint64{agent},
		Scope: benchSlot.Index, Generation: benchSlot.Generation, Clause: 1, Tgid: 5, ObjectSize: uint32(len(object)), ArgsSize: uint32(len(args)),
	}
	var sample bytes.Buffer
	if err := binary.Write(&sample, binary.NativeEndian, &raw); err != nil {
		b.Fatal(err)
	}
	sample.WriteString(object + args)
	return sample.Bytes()
}

// From a record in the ring buffer to the reason on a hook's output, with the start of the
// hook and of the shell that an agent starts it with.
func BenchmarkRecordToHook(b *testing.B) {
	testenv.RequireBPF(b)
	guest := filepath.Join(b.TempDir(), "actplane-guest")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", guest, "../cmd/actplane-guest")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	m := newMachine(b)
	ring := newRingKernel(b, m.kernel, refusedPush(b))
	config := m.config()
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	config.Kernel, config.Log = ring, logrus.NewEntry(quiet)
	_, client, _ := m.startWith(config)
	m.container("c", 100)
	directory := m.prepare(client, "c")
	m.attach(client, "c", 100)

	var took []time.Duration
	once := func() {
		began := time.Now()
		ring.refuse(b)
		hook := exec.Command("sh", "-c", guest+" hook --agent claude; exit $?")
		hook.Env = []string{"ACTPLANE_SOCKET=" + filepath.Join(directory, "feedback.sock")}
		hook.Stdin = strings.NewReader(`{"session_id": "s", "hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_use_id": "1"}`)
		out, err := hook.Output()
		took = append(took, time.Since(began))
		if err != nil || strings.Count(string(out), "was blocked before it ran") != 1 {
			b.Fatalf("%v: %s", err, out)
		}
	}
	for b.Loop() {
		once()
	}
	for len(took) < 1000 { // or a hundredth of them is nothing
		once()
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, "max-ms")
}
