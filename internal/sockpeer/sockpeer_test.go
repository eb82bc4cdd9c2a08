// SPDX-License-Identifier: Apache-2.0

package sockpeer

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/actplane/actplane/internal/cgroup"
	"github.com/actplane/actplane/internal/proc"
	"github.com/actplane/actplane/internal/testenv"
)

// TestMain listens where it is told, for a test that wants another process to.
func TestMain(m *testing.M) {
	at := os.Getenv("ACTPLANE_TEST_LISTEN")
	if at == "" {
		os.Exit(m.Run())
	}
	// Whoever starts this has put it into a cgroup when a line comes.
	os.Stdin.Read(make([]byte, 1))
	network, address, _ := strings.Cut(at, " ")
	listener, err := net.Listen(network, address)
	if err != nil {
		os.Exit(1)
	}
	fmt.Println(listener.Addr())
	os.Stdin.Read(make([]byte, 1))
	os.Exit(0)
}

// Who listens is told, also before it has taken the connection.
func TestListener(t *testing.T) {
	testenv.RequireRoot(t)
	mounts, err := cgroup.Find(proc.Directory)
	if err != nil {
		t.Fatal(err)
	}
	for i, at := range []string{"tcp 127.0.0.1:0", "tcp [::1]:0", "unix " + filepath.Join(t.TempDir(), "s")} {
		name := "actplane-sockpeer-test-" + strconv.Itoa(os.Getpid()) + "-" + strconv.Itoa(i)
		directory := filepath.Join(mounts.Unified, name)
		if err := os.Mkdir(directory, 0o755); err != nil {
			t.Fatal(err)
		}
		network, address := listenIn(t, directory, at)
		conn, err := net.Dial(network, address)
		if err != nil {
			t.Fatal(err)
		}
		where, err := Cgroup(conn)
		if err != nil && network == "tcp" && strings.Contains(err.Error(), "no such file") {
			testenv.Lacks(t, "the module tcp_diag", err)
		}
		if err != nil || where != "/"+name {
			t.Errorf("%s: %q, %v", at, where, err)
		}
		conn.Close()
	}
}

// listenIn starts a process that listens in a cgroup, and ends it after the test.
func listenIn(t *testing.T, directory, at string) (network, address string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(self)
	command.Env = append(os.Environ(), "ACTPLANE_TEST_LISTEN="+at)
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); command.Wait(); os.Remove(directory) })
	if err := os.WriteFile(filepath.Join(directory, "cgroup.procs"), []byte(strconv.Itoa(command.Process.Pid)), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	address, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	network, _, _ = strings.Cut(at, " ")
	return network, strings.TrimSpace(address)
}

// What the kernel answers is read within its bounds.
func TestDiagAnswer(t *testing.T) {
	for n := range 200 {
		answer := make([]byte, n)
		if n > 4 {
			answer[0] = byte(n)
		}
		if n > 92 {
			answer[88] = 200
		}
		if _, err := diagCgroup(answer); err == nil {
			t.Errorf("%d bytes of nothing are an answer", n)
		}
	}
}
