// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/internal/testenv"
)

// benchPolicy has rules about files, programs and connections, of which none matches; with
// labels, the connections are about what was read.
func benchPolicy(rules int, labels bool) string {
	var text strings.Builder
	condition := ""
	if labels {
		text.WriteString("source SECRET = file \"**/.env\"\n")
		condition = " if SECRET"
	}
	for i := range rules {
		clauses := []string{
			fmt.Sprintf("block write file \"/srv/none-%d/**\"", i),
			fmt.Sprintf("block exec \"none-%d\" \"push\"", i),
			fmt.Sprintf("block connect \"192.0.%d.%d:443\"%s", 2+i/250, i%250, condition),
		}
		if i > 0 { // the first needs all hooks
			clauses = clauses[i%3 : i%3+1]
		}
		fmt.Fprintf(&text, "rule r%d:\n  %s\n", i, strings.Join(clauses, "\n  "))
	}
	return text.String()
}

var measured = []string{"open+close", "read 64 B", "stat", "fork+exec", "connect"}

// TestInstructions prints what operations cost in guest instructions, for which the
// guest's clock has to count them (ICOUNT=1): "make bench".
func TestInstructions(t *testing.T) {
	if os.Getenv("ACTPLANE_BENCH") == "" {
		t.Skip("a measurement, and no test: make bench")
	}
	testenv.RequireKernel(t)
	row := func(name string, a *actor) {
		fmt.Printf("bench %s", name)
		for _, op := range measured {
			answer := a.do("measure", op)
			if _, err := strconv.Atoi(answer); err != nil {
				t.Errorf("%s: %s: %s", name, op, answer)
			}
			fmt.Printf("\t%s", answer)
		}
		fmt.Println()
	}
	dir := t.TempDir()
	fmt.Printf("bench (instructions)\t%s\n", strings.Join(measured, "\t"))
	t.Run("none", func(t *testing.T) {
		for range 3 { // a guest that has just booted is still busy with that
			for _, op := range measured {
				plainActor(t, dir).do("measure", op)
			}
		}
		row("nothing attached", plainActor(t, dir))
	})
	tier, err := Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, labels := range []bool{false, true} {
		kind := map[bool]string{false: "", true: ", labels"}[labels]
		t.Run("outside", func(t *testing.T) {
			newBench(t, tier, benchPolicy(10, labels))
			row("outside any scope"+kind, plainActor(t, dir))
		})
		for _, rules := range []int{1, 10, 100, 1000} {
			t.Run(strconv.Itoa(rules), func(t *testing.T) {
				b := newBench(t, tier, benchPolicy(rules, labels))
				row(fmt.Sprintf("inside, rules: %d%s", rules, kind), b.actor())
			})
		}
	}
	t.Run("wide", func(t *testing.T) {
		row("inside, 300 names and directories", newBench(t, tier, wide(300)).actor())
	})
}

// plainActor is one outside of every scope.
func plainActor(t *testing.T, dir string) *actor {
	b := &bench{t: t, dir: dir, cgroup: filepath.Join("/sys/fs/cgroup", "actplane-plain")}
	if err := os.MkdirAll(b.cgroup, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(b.cgroup) }) // after the actor's end, which is cleaned up before
	return b.actor()
}

// samples is of how many measurements the median is told, after as many that warm up.
const samples = 21

// measure is the actor's step: it prints the median of what an operation takes.
func measure(op string) error {
	runtime.LockOSThread()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	once, rounds, done, err := operation(op)
	if err != nil {
		return err
	}
	defer done()
	var took []int
	for range 2 * samples {
		start := time.Now()
		for range rounds {
			if err := once(); err != nil {
				return err
			}
		}
		took = append(took, int(time.Since(start).Nanoseconds())/rounds)
	}
	took = took[samples:]
	slices.Sort(took)
	return errors.New(strconv.Itoa(took[samples/2])) // an actor answers with the text of an error
}

// operation gives what is measured and how often it is done in one measurement.
func operation(op string) (once func() error, rounds int, done func(), err error) {
	done = func() {}
	path, err := unix.BytePtrFromString("measured-file-with-a-name-of-some-length")
	if err != nil {
		return nil, 0, nil, err
	}
	if err := os.WriteFile(unix.BytePtrToString(path), make([]byte, 4096), 0o644); err != nil {
		return nil, 0, nil, err
	}
	at := uintptr(unsafe.Pointer(path))
	cwd := unix.AT_FDCWD
	open := func() (uintptr, error) {
		fd, _, errno := unix.RawSyscall6(unix.SYS_OPENAT, uintptr(cwd), at, unix.O_RDONLY, 0, 0, 0)
		return fd, number0(errno)
	}
	switch op {
	case "open+close":
		return func() error {
			fd, err := open()
			if err == nil {
				_, _, errno := unix.RawSyscall(unix.SYS_CLOSE, fd, 0, 0)
				err = number0(errno)
			}
			return err
		}, 32, done, nil
	case "read 64 B":
		fd, err := open()
		buffer := make([]byte, 64)
		return func() error {
			_, _, errno := unix.RawSyscall6(unix.SYS_PREAD64, fd, uintptr(unsafe.Pointer(&buffer[0])), 64, 0, 0, 0)
			return number0(errno)
		}, 64, done, err
	case "stat":
		var stat unix.Stat_t
		return func() error {
			_, _, errno := unix.RawSyscall6(unix.SYS_NEWFSTATAT, uintptr(cwd), at, uintptr(unsafe.Pointer(&stat)), 0, 0, 0)
			return number0(errno)
		}, 64, done, nil
	case "fork+exec":
		return func() error {
			pid, err := syscall.ForkExec("/bin/true", []string{"true", "argument"}, &syscall.ProcAttr{})
			if err == nil {
				_, err = unix.Wait4(pid, nil, 0, nil)
			}
			return err
		}, 4, done, nil
	case "connect":
		return connecting()
	}
	return nil, 0, nil, fmt.Errorf("no operation %q", op)
}

func number0(errno syscall.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}

// connecting is a TCP connection to a listener of one's own, made, accepted and closed.
func connecting() (once func() error, rounds int, done func(), err error) {
	listener, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, 0, nil, err
	}
	address := &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: 4000}
	if err := errors.Join(unix.SetsockoptInt(listener, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1), unix.Bind(listener, address), unix.Listen(listener, 8)); err != nil {
		return nil, 0, nil, err
	}
	return func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		if err := unix.Connect(fd, address); err != nil {
			return err
		}
		peer, _, err := unix.Accept4(listener, unix.SOCK_CLOEXEC)
		if err != nil {
			return err
		}
		// The end that closes first keeps its port for a while: reset instead.
		_ = unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
		return errors.Join(unix.Close(fd), unix.Close(peer))
	}, 8, func() { _ = unix.Close(listener) }, nil
}
