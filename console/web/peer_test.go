// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/internal/cgroup"
	"github.com/actplane/actplane/internal/proc"
	"github.com/actplane/actplane/internal/testenv"
)

// TestMain connects where it is told, for a test that wants another process to.
func TestMain(m *testing.M) {
	if to := os.Getenv("ACTPLANE_TEST_CONNECT"); to != "" {
		network, address, _ := strings.Cut(to, " ")
		// Whoever starts this has put it into a cgroup when a line comes.
		os.Stdin.Read(make([]byte, 1))
		conn, err := net.Dial(network, address)
		if err != nil {
			os.Exit(1)
		}
		conn.Read(make([]byte, 1))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// connectFrom connects from a process in a cgroup of its own, and gives the other end.
func connectFrom(t *testing.T, listener net.Listener, directory string) net.Conn {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(self)
	command.Env = append(os.Environ(), "ACTPLANE_TEST_CONNECT="+listener.Addr().Network()+" "+listener.Addr().String())
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(directory, "cgroup.procs"), []byte(strconv.Itoa(command.Process.Pid)), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(); in.Close(); command.Wait(); os.Remove(directory) })
	return conn
}

// A process of a scope gets no connection, by whichever way it comes; one beside it does.
func TestPeerInScope(t *testing.T) {
	testenv.RequireRoot(t)
	mounts, err := cgroup.Find(proc.Directory)
	if err != nil {
		t.Fatal(err)
	}
	name := "actplane-web-test-" + strconv.Itoa(os.Getpid())
	unixListener, err := ListenUnix(filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer unixListener.Close()
	tcpListener, err := ListenLoopback("127.0.0.1:0")
	if err != nil {
		if strings.Contains(err.Error(), "no connection could be told") {
			testenv.Lacks(t, "the module tcp_diag", err)
		}
		t.Fatal(err)
	}
	defer tcpListener.Close()
	for i, listener := range []net.Listener{unixListener, tcpListener} {
		directory := filepath.Join(mounts.Unified, name+strconv.Itoa(i))
		if err := os.Mkdir(directory, 0o755); err != nil {
			t.Fatal(err)
		}
		conn := connectFrom(t, listener, directory)
		for _, test := range []struct {
			scope  *api.Scope
			inside bool
		}{
			{&api.Scope{State: "enforcing", Cgroup: "/" + name + strconv.Itoa(i)}, true},
			{&api.Scope{State: "failed", Cgroup: "/" + name + strconv.Itoa(i)}, true},
			{&api.Scope{State: "enforcing"}, true}, // where it is, is not known
			{&api.Scope{State: "unknown"}, true},
			{&api.Scope{State: "closed", Cgroup: "/" + name + strconv.Itoa(i)}, false},
			{&api.Scope{State: "staged"}, false},
			{&api.Scope{State: "enforcing", Cgroup: "/" + name}, false},
			{&api.Scope{State: "enforcing", Cgroup: "/" + name + strconv.Itoa(i) + "/below"}, false},
		} {
			p := peers{func(context.Context) ([]*api.Scope, error) { return []*api.Scope{test.scope}, nil }}
			if err := p.check(t.Context(), conn); errors.Is(err, errInside) != test.inside || err != nil && !test.inside {
				t.Errorf("%s, %v: %v", listener.Addr().Network(), test.scope, err)
			}
		}
		p := peers{func(context.Context) ([]*api.Scope, error) { return nil, errors.New("not known") }}
		if err := p.check(t.Context(), conn); err == nil {
			t.Error("let in, though no scope is known")
		}
	}
}

func TestListen(t *testing.T) {
	for _, address := range []string{"", "8700", ":8700", "0.0.0.0:0", "[::]:0", "192.168.1.1:0", "localhost:0", "127.0.0.1", "127.0.0.1:70000", "[::1%lo]:0", "example.com:80"} {
		if l, err := ListenLoopback(address); err == nil {
			l.Close()
			t.Errorf("listens on %q", address)
		}
	}
	path := filepath.Join(t.TempDir(), "web.sock")
	listener, err := ListenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if _, err := ListenUnix(path); err == nil || !strings.Contains(err.Error(), "another process serves it") {
		t.Errorf("%v", err)
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	listener.Close() // as a kill would leave it
	if listener, err = ListenUnix(path); err != nil {
		t.Fatal(err)
	}
	listener.Close()
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ListenUnix(path); err == nil {
		t.Error("replaces a file")
	}
}
