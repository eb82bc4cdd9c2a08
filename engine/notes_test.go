// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/policy/ir"
)

// noted is a container under a policy that wants reasons on standard error, whose
// processes are real ones.
type noted struct {
	*machine
	engine *Engine
	slot   kernel.Slot
	pids   []string
}

func newNoted(t *testing.T, wanted bool) *noted {
	m := newMachine(t)
	e, client, _ := m.start()
	var program ir.Program
	if err := json.Unmarshal(testProgram(t), &program); err != nil {
		t.Fatal(err)
	}
	program.Feedback.Stderr = wanted
	text, err := json.Marshal(program)
	if err != nil {
		t.Fatal(err)
	}
	m.container("c", 1_000_000_000)
	m.prepareProgram(client, "c", text)
	m.attach(client, "c", 1_000_000_000)
	if err := os.Symlink("/proc/self/fd", m.path("proc/self/fd")); err != nil {
		t.Fatal(err)
	}
	return &noted{machine: m, engine: e, slot: kernel.Slot{Index: 1, Generation: 7}}
}

// member starts one of the container's processes, with a pipe's end as its standard error.
func (n *noted) member(id kernel.ProcessID, errors *os.File) (pid int, end func()) {
	n.t.Helper()
	cmd := exec.Command("sleep", "60")
	cmd.Stderr = errors
	if err := cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	end = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	n.t.Cleanup(end)
	pid = cmd.Process.Pid
	if err := os.Symlink(fmt.Sprintf("/proc/%d", pid), n.path(fmt.Sprintf("proc/%d", pid))); err != nil {
		n.t.Fatal(err)
	}
	n.pids = append(n.pids, fmt.Sprint(pid))
	n.write("cgroup/c/cgroup.procs", strings.Join(n.pids, "\n")+"\n")
	n.kernel.set(func() { n.kernel.processes[pid] = kernel.Process{ID: id, Slot: n.slot} })
	return pid, end
}

func (n *noted) denied(pid int, id kernel.ProcessID, file kernel.FileID, ancestors ...kernel.ProcessID) {
	n.kernel.records <- kernel.Record{
		Slot: n.slot, Time: n.now(), Effect: ir.Block, Op: ir.Exec, Clause: 1, Object: "/usr/bin/git", PID: pid, Comm: "sh",
		Stderr: file, Process: kernel.Process{ID: id, Labels: 3, Ancestors: ancestors},
	}
}

// says reads what comes next.
func (n *noted) says(r *os.File) string {
	n.t.Helper()
	if err := r.SetReadDeadline(time.Now().Add(deadline)); err != nil {
		n.t.Fatal(err)
	}
	text := make([]byte, 4096)
	count, err := r.Read(text)
	if err != nil {
		n.t.Errorf("nothing was written: %v", err)
	}
	return string(text[:count])
}

// empty tells that nothing is in a pipe once all that was recorded is written.
func (n *noted) empty(r *os.File) {
	n.t.Helper()
	n.kernel.records <- kernel.Record{Slot: n.slot, Probe: true} // taken when the last one is done with
	s := n.engine.scope("c")
	for writing := true; writing; time.Sleep(time.Millisecond) {
		s.notes.mu.Lock()
		writing = s.notes.writing
		s.notes.mu.Unlock()
	}
	if count, err := unix.IoctlGetInt(int(r.Fd()), unix.TIOCINQ); err != nil || count > 0 {
		n.t.Errorf("the pipe has %d bytes, %v", count, err)
	}
}

func pipe(t *testing.T) (r, w *os.File, file kernel.FileID) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	var stat unix.Stat_t
	if err := unix.Fstat(int(w.Fd()), &stat); err != nil {
		t.Fatal(err)
	}
	return r, w, kernel.FileID{Device: unix.Major(stat.Dev)<<20 | unix.Minor(stat.Dev), Inode: stat.Ino}
}

const reason = `ActPlane policy: exec "/usr/bin/git" was blocked before it ran, by rule "no-push" (the process carries label SECRET): ask first.` + "\n"

func TestNotes(t *testing.T) {
	n := newNoted(t, true)
	r, w, file := pipe(t)
	pid, _ := n.member(9, w)
	n.denied(pid, 9, file)
	if got := n.says(r); !strings.HasPrefix(got, reason[:len(reason)-1]) {
		t.Errorf("it says %q", got)
	}
}

// What must not be written, and then something that is: a line too many would come first.
func TestNotesToNobody(t *testing.T) {
	n := newNoted(t, true)
	r, w, file := pipe(t)
	otherR, otherW, otherFile := pipe(t)
	pid, _ := n.member(9, w)
	_, _ = n.member(10, otherW)
	n.denied(pid, 8, file)                       // the pid is another's by now
	n.denied(pid, 0, file)                       // unknown to the kernel
	n.denied(pid, 9, otherFile)                  // its standard error is another by now
	n.denied(pid, 9, kernel.FileID{})            // it had none
	n.denied(1_000_000_001, 11, otherFile, 9, 7) // it ended; the ancestor has another file
	n.denied(pid, 9, file)
	if got := n.says(r); strings.Count(got, "\n") != 1 {
		t.Errorf("it says %q", got)
	}
	n.empty(otherR)
}

// A command that ended at once: the shell that ran it has the same standard error.
func TestNotesOfEndedProcess(t *testing.T) {
	n := newNoted(t, true)
	r, w, file := pipe(t)
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	pid, end := n.member(9, w)
	end()
	_, _ = n.member(7, w)
	_, _ = n.member(8, null)
	n.denied(pid, 9, file, 8, 7)
	if got := n.says(r); strings.Count(got, "\n") != 1 {
		t.Errorf("it says %q", got)
	}
}

// Without the policy's leave nothing is written, and what is noted without refusing never.
func TestNotesUnwanted(t *testing.T) {
	n := newNoted(t, false)
	r, w, file := pipe(t)
	pid, _ := n.member(9, w)
	n.denied(pid, 9, file)
	n.empty(r)
}
