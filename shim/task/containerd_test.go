// SPDX-License-Identifier: Apache-2.0

package task

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/internal/testenv"
)

// daemonConfig leaves out what would look at the machine's own disks and networks.
const daemonConfig = `version = 2
root = "DIR/root"
state = "/run/containerd"
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.aufs", "io.containerd.internal.v1.opt"]
`

// daemonScript starts containerd where /run and /etc are its own: what the shim and the
// runtime find and leave there is not the machine's.
const daemonScript = `set -e
mount -t tmpfs tmpfs /run
mkdir /run/upper /run/work
mount -t overlay overlay -o lowerdir=/etc,upperdir=/run/upper,workdir=/run/work /etc
rm -rf /etc/actplane
mkdir /etc/actplane
exec containerd -c "$DIR/config.toml" > "$DIR/log" 2>&1
`

// containerd is a daemon of a test's own, with the shim, the runtime and the hook, and
// without an engine.
type containerd struct {
	directory string
	pid       int
}

func startContainerd(t *testing.T) *containerd {
	t.Helper()
	testenv.RequireRoot(t)
	testenv.RequireProgram(t, "containerd", "containerd")
	testenv.RequireProgram(t, "runc", "runc")
	busybox := testenv.RequireProgram(t, "busybox", "busybox-static")
	c := &containerd{directory: t.TempDir()}
	for _, name := range []string{"bin", "rootfs/bin", "rootfs/proc", "rootfs/sys", "rootfs/dev", "rootfs/tmp"} {
		if err := os.MkdirAll(filepath.Join(c.directory, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-o", c.directory+"/bin/", "../../cmd/containerd-shim-actplane-v2", "../../cmd/actplane-runtime", "../../cmd/actplane-hook")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	program, err := os.ReadFile(busybox)
	if err != nil {
		t.Fatal(err)
	}
	c.write(t, "rootfs/bin/busybox", string(program))
	if err := os.Symlink("busybox", c.directory+"/rootfs/bin/sh"); err != nil {
		t.Fatal(err)
	}
	c.write(t, "config.toml", strings.ReplaceAll(daemonConfig, "DIR", c.directory))
	daemon := exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-c", daemonScript)
	daemon.Env = append(os.Environ(), "DIR="+c.directory, "PATH="+c.directory+"/bin:"+os.Getenv("PATH"))
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	c.pid = daemon.Process.Pid
	t.Cleanup(func() {
		for _, id := range strings.Fields(c.ctr("containers", "list", "-q").out) {
			c.ctr("tasks", "delete", "-f", id)
		}
		daemon.Process.Signal(unix.SIGTERM)
		daemon.Wait()
	})
	if !eventually(func() bool { return c.ctr("version").status == 0 }) {
		log, _ := os.ReadFile(c.directory + "/log")
		t.Fatalf("containerd does not answer: %s", log)
	}
	return c
}

func eventually(yes func() bool) bool {
	for deadline := time.Now().Add(30 * time.Second); !yes(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

func (c *containerd) write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(c.directory, name)
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

type result struct {
	out    string // both streams, without logs
	status int
}

// within runs a command where containerd is.
func (c *containerd) within(args ...string) result {
	command := exec.Command("nsenter", append([]string{"--mount", "--target", fmt.Sprint(c.pid)}, args...)...)
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	err := command.Run()
	if err != nil && command.ProcessState == nil {
		return result{err.Error(), -1}
	}
	// A newer ctr logs what it thinks of the machine.
	var said strings.Builder
	for line := range strings.Lines(out.String()) {
		if !strings.HasPrefix(line, "time=") {
			said.WriteString(line)
		}
	}
	return result{said.String(), command.ProcessState.ExitCode()}
}

func (c *containerd) ctr(args ...string) result { return c.within(append([]string{"ctr"}, args...)...) }

func (c *containerd) run(id, script string, options ...string) result {
	args := append([]string{"run", "--runtime", Runtime}, options...)
	return c.ctr(append(args, "--rootfs", c.directory+"/rootfs", id, "/bin/sh", "-c", script)...)
}

func (c *containerd) configure(t *testing.T, text string) {
	t.Helper()
	file := c.write(t, "actplane.yaml", text)
	if got := c.within("cp", file, "/etc/actplane/config.yaml"); got.status != 0 {
		t.Fatal(got.out)
	}
}

const goodPolicy = "dev.actplane.policy=policy: |\n  rule r: block exec \"wget\"\n"

// What cannot be put under policy is refused in one sentence that ctr's user reads, and
// leaves nothing.
func TestContainerdRefusals(t *testing.T) {
	c := startContainerd(t)
	options := c.write(t, "options.toml", `BinaryName = "/usr/sbin/runc"`)
	for _, test := range []struct {
		name, want string
		options    []string
	}{
		{"none", "no policy found", nil},
		{"broken", "actplane check", []string{"--annotation", "dev.actplane.policy=policy: {"}},
		{"engine", "actplane engine cannot be started", []string{"--annotation", goodPolicy}},
		{"sandbox", "actplane engine cannot be started", []string{"--annotation", "io.kubernetes.cri.container-type=sandbox"}},
		{"option", "would leave the policy out", []string{"--annotation", goodPolicy, "--runtime-config-path", options}},
		{"privileged", "privileged", []string{"--annotation", goodPolicy, "--privileged"}},
	} {
		got := c.run(test.name, "echo it runs", append(test.options, "--rm")...)
		if got.status != 1 || !strings.HasPrefix(got.out, "ctr: failed to create shim task: ") ||
			!strings.Contains(got.out, "actplane: ") || !strings.Contains(got.out, test.want) || strings.Count(got.out, "\n") != 1 {
			t.Errorf("%s: status %d, %q", test.name, got.status, got.out)
		}
	}
	if got := c.ctr("tasks", "list", "-q"); got.out != "" {
		t.Errorf("tasks %q", got.out)
	}
	if !eventually(func() bool { return len(c.shims(t)) == 0 }) {
		t.Errorf("shims %v", c.shims(t))
	}
	if got := c.within("sh", "-c", "ls -A /run/actplane/runtime /run/containerd/io.containerd.runtime.v2.task/default"); strings.Contains(got.out, "json") || strings.Contains(got.out, "engine\n") {
		t.Errorf("left: %s", got.out)
	}
}

// A container that the host lets run without a policy has the limits of its annotations,
// from its start to the end of its shim.
func TestContainerdLimits(t *testing.T) {
	c := startContainerd(t)
	c.configure(t, "require_policy: false\n")
	limits := []string{"--annotation", "dev.actplane.limits.capabilities.drop=ALL", "--annotation", "dev.actplane.limits.no_new_privileges=true"}
	// In one read: the kernel makes the text anew for each.
	const show = `/bin/busybox grep -E "^(CapBnd|NoNewPrivs):" /proc/self/status`
	const limited = "CapBnd:\t0000000000000000\nNoNewPrivs:\t1\n"
	if got := c.run("one", show+"; exit 7", append(limits, "--rm")...); got.out != limited || got.status != 7 {
		t.Errorf("status %d, %q", got.status, got.out)
	}
	if got := c.run("two", "while :; do read -t 100 x; done", append(limits, "-d")...); got.out != "" || got.status != 0 {
		t.Fatalf("status %d, %q", got.status, got.out)
	}
	if got := c.ctr("tasks", "exec", "--exec-id", "x", "two", "/bin/sh", "-c", show); got.out != limited {
		t.Errorf("exec: status %d, %q", got.status, got.out)
	}
	shims := c.shims(t)
	if len(shims) != 1 {
		t.Fatalf("shims %v", shims)
	}
	unix.Kill(shims[0], unix.SIGKILL)
	if !eventually(func() bool { return c.ctr("tasks", "list", "-q").out == "" }) {
		t.Errorf("tasks %q", c.ctr("tasks", "list").out)
	}
}

// shims are the processes that serve this containerd's containers.
func (c *containerd) shims(t *testing.T) []int {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		t.Fatal(err)
	}
	var found []int
	for _, link := range links {
		program, err := os.Readlink(link)
		if errors.Is(err, fs.ErrNotExist) || program != c.directory+"/bin/containerd-shim-actplane-v2" {
			continue
		}
		var pid int
		if _, err := fmt.Sscanf(link, "/proc/%d/exe", &pid); err != nil {
			t.Fatal(err)
		}
		found = append(found, pid)
	}
	return found
}
