// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/containerd/ttrpc"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/internal/daemon/daemontest"
	"github.com/actplane/actplane/internal/proc"
	"github.com/actplane/actplane/internal/testenv"
)

// TestMain lets the test binary be the daemon: "fake-daemon SOCKET HOW".
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "fake-daemon" {
		fakeDaemon(os.Args[2], os.Args[3])
	}
	os.Exit(m.Run())
}

func fakeDaemon(socket, how string) {
	note := filepath.Join(filepath.Dir(socket), "started")
	file, _ := os.OpenFile(note, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	fmt.Fprintln(file, os.Getpid())
	file.Close()
	engine := &daemontest.Engine{About: api.StatusResponse{Tier: "lsm"}}
	switch how {
	case "die":
		fmt.Fprintln(os.Stderr, "noise")
		fmt.Fprintln(os.Stderr, `time="x" level=fatal msg="BPF LSM is not active; boot with \"lsm=...,bpf\""`)
		os.Exit(1)
	case "problem":
		engine.About = api.StatusResponse{Problem: "kernel 5.10 is too old"}
	case "hang":
		stay()
	}
	if _, err := engine.Serve(socket); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	stay()
	os.Exit(0)
}

// stay waits to be ended by the test, and ends by itself if the test was killed.
func stay() {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	<-ctx.Done()
}

func options(t *testing.T, how string) Options {
	t.Helper()
	directory := t.TempDir()
	socket := filepath.Join(directory, "engine.sock")
	t.Cleanup(func() {
		for _, pid := range pids(t, directory) {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return Options{Socket: socket, Directory: directory, Program: os.Args[0], Args: []string{"fake-daemon", socket, how},
		NoSystemd: true, NoCgroup: true}
}

func pids(t *testing.T, directory string) []int {
	t.Helper()
	data, _ := os.ReadFile(filepath.Join(directory, "started"))
	var list []int
	for _, word := range strings.Fields(string(data)) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, pid)
	}
	return list
}

func TestStartOnDemand(t *testing.T) {
	options := options(t, "serve")
	// A pipe such as runc's callers hand over must not stay open in the daemon.
	var pipe [2]int
	if err := unix.Pipe(pipe[:]); err != nil { // without O_CLOEXEC
		t.Fatal(err)
	}
	reader := os.NewFile(uintptr(pipe[0]), "pipe")
	defer reader.Close()

	var wait sync.WaitGroup
	for range 4 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			client, err := Ensure(t.Context(), options)
			if err != nil {
				t.Error(err)
				return
			}
			if client.Status.Tier != "lsm" {
				t.Errorf("tier %q", client.Status.Tier)
			}
			client.Close()
		}()
	}
	wait.Wait()
	started := pids(t, options.Directory)
	if len(started) != 1 {
		t.Fatalf("started %d daemons", len(started))
	}
	flags, err := unix.FcntlInt(uintptr(pipe[1]), unix.F_GETFD, 0)
	if err != nil || flags&unix.FD_CLOEXEC != 0 {
		t.Errorf("the pipe is no longer inherited: %v", err)
	}
	unix.Close(pipe[1])
	reader.SetReadDeadline(time.Now().Add(5 * time.Second))
	if n, err := reader.Read(make([]byte, 1)); n != 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the daemon holds the pipe: %d, %v", n, err)
	}
	checkDetached(t, started[0])
}

func checkDetached(t *testing.T, pid int) {
	t.Helper()
	stat, err := proc.ReadStat(proc.Directory, pid)
	if err != nil {
		t.Fatal(err)
	}
	if stat.Parent == os.Getpid() {
		t.Error("the daemon is our child")
	}
	own, _ := unix.Getsid(0)
	if session, err := unix.Getsid(pid); err != nil || session == own {
		t.Errorf("the daemon is in session %d (%v), and we are in %d", session, err, own)
	}
	if cwd, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid)); cwd != "/" {
		t.Errorf("the daemon is in %q", cwd)
	}
}

func TestDaemonThatDies(t *testing.T) {
	began := time.Now()
	_, err := Ensure(t.Context(), options(t, "die"))
	var failed *NotStarted
	if !errors.As(err, &failed) {
		t.Fatalf("error %v", err)
	}
	if want := `BPF LSM is not active; boot with "lsm=...,bpf"`; failed.Reason != want {
		t.Errorf("reason %q instead of %q", failed.Reason, want)
	}
	if spent := time.Since(began); spent > 20*time.Second {
		t.Errorf("it took %v to see that it is dead", spent)
	}
}

func TestDaemonOfNoUse(t *testing.T) {
	options := options(t, "problem")
	_, err := Ensure(t.Context(), options)
	var useless *CannotEnforce
	if !errors.As(err, &useless) {
		t.Fatalf("error %v", err)
	}
	if want := `actplane engine cannot enforce on this host: kernel 5.10 is too old; run "actplane doctor"`; err.Error() != want {
		t.Errorf("error %q", err)
	}
	for _, pid := range pids(t, options.Directory) {
		if stat, err := proc.ReadStat(proc.Directory, pid); err == nil && !stat.Ended() {
			t.Errorf("the daemon was left behind, in state %c", stat.State)
		}
	}
}

func TestDaemonThatHangs(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err := Ensure(ctx, options(t, "hang"))
	if err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("error %v", err)
	}
}

func TestNoProgram(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	options := options(t, "serve")
	options.Program = ""
	_, err := Ensure(t.Context(), options)
	if err == nil || !strings.Contains(err.Error(), `run "actplane install"`) {
		t.Errorf("error %v", err)
	}
}

// A daemon that others may not ask must not look like one that does not start.
func TestNotForOthers(t *testing.T) {
	if os.Getenv("ACTPLANE_TEST_SOCKET") != "" {
		_, err := Ensure(t.Context(), Options{Socket: os.Getenv("ACTPLANE_TEST_SOCKET"), Directory: "/none", NoSystemd: true})
		if err == nil || !strings.Contains(err.Error(), "only root may ask") {
			t.Errorf("error %v", err)
		}
		return
	}
	testenv.RequireRoot(t)
	directory, err := os.MkdirTemp("/tmp", "actplane")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(directory)
	socket, self := filepath.Join(directory, "engine.sock"), filepath.Join(directory, "test")
	engine := &daemontest.Engine{About: api.StatusResponse{Tier: "lsm"}}
	stop, err := engine.Serve(socket)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	program, err := os.ReadFile(os.Args[0])
	if err = errors.Join(err, os.WriteFile(self, program, 0o755), os.Chmod(socket, 0o600), os.Chmod(directory, 0o755)); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(self, "-test.run=^TestNotForOthers$")
	command.Dir, command.Env = "/", []string{"ACTPLANE_TEST_SOCKET=" + socket}
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}

func TestConnectStartsNothing(t *testing.T) {
	options := options(t, "serve")
	if _, err := Connect(t.Context(), options); err == nil {
		t.Error("connected to nothing")
	}
	if len(pids(t, options.Directory)) != 0 {
		t.Error("started a daemon")
	}
}

func TestMessage(t *testing.T) {
	for line, want := range map[string]string{
		`time="t" level=fatal msg="a \"b\"." err=x`: `a "b"`,
		`actplaned: no BTF`:                         "no BTF",
		` plain. `:                                  "plain",
		`x msg="broken`:                             `x msg="broken`,
		``:                                          "",
	} {
		if got := message(line); got != want {
			t.Errorf("%q: %q instead of %q", line, got, want)
		}
	}
}

func TestReason(t *testing.T) {
	for _, test := range []struct {
		err  error
		want string
	}{
		{status.Error(codes.NotFound, `scope "x" is not prepared`), `scope "x" is not prepared`},
		{context.DeadlineExceeded, "it does not answer in time"},
		{fmt.Errorf("call: %w", ttrpc.ErrClosed), `it has ended meanwhile; try again, or run "actplane doctor"`},
	} {
		if got := Reason(test.err); got != test.want {
			t.Errorf("Reason(%v) = %q, want %q", test.err, got, test.want)
		}
	}
}
