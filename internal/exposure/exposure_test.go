// SPDX-License-Identifier: Apache-2.0

package exposure

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/internal/bundle"
	"github.com/actplane/actplane/internal/testenv"
)

// hostWorld is a directory that stands for a host's root, with what is of interest in it.
type hostWorld struct {
	root string
	*Host
}

func newHostWorld(t *testing.T, before func(root string)) *hostWorld {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"run/containerd/s", "run/podman", "run/actplane/scopes/x", "var/lib/docker/volumes/v/_data", "etc/actplane", "usr/bin", "home/agent/work", "sys/fs/bpf/actplane",
		"bundle/rootfs", "other", "opt/guarded"} {
		if err := os.MkdirAll(filepath.Join(root, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../run", filepath.Join(root, "var/run")); err != nil {
		t.Fatal(err)
	}
	listen(t, filepath.Join(root, "run/docker.sock"))
	for _, name := range []string{"usr/bin/runc", "home/agent/work/file"} {
		if err := os.WriteFile(filepath.Join(root, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if before != nil {
		before(root)
	}
	host, err := Look(Options{Prefix: root, Guarded: []string{"/opt/guarded"}})
	if err != nil {
		t.Fatal(err)
	}
	return &hostWorld{root, host}
}

func listen(t *testing.T, name string) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	// By a short name: paths of sockets are short.
	folder, err := unix.Open(filepath.Dir(name), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(folder)
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: fmt.Sprintf("/proc/self/fd/%d/%s", folder, filepath.Base(name))}); err != nil {
		t.Fatal(err)
	}
}

const ownNamespaces = `"namespaces":[{"type":"pid"},{"type":"mount"},{"type":"cgroup"}],"maskedPaths":["/proc/acpi","/proc/kcore","/proc/keys","/proc/latency_stats","/proc/sched_debug","/proc/scsi","/proc/timer_list","/sys/firmware"],"readonlyPaths":["/proc/bus","/proc/fs","/proc/irq","/proc/sys","/proc/sysrq-trigger"]`

// spec is a container that has nothing, but for what is given.
func spec(process, mounts, linux string) string {
	if linux != "" && !strings.Contains(linux, "namespaces") {
		linux = ownNamespaces + "," + linux
	} else if linux == "" {
		linux = ownNamespaces
	}
	return fmt.Sprintf(`{"process":{%s},"root":{"path":"rootfs"},"mounts":[%s],"linux":{%s}}`, process, mounts, linux)
}

func caps(names ...string) string {
	text, _ := json.Marshal(names)
	return fmt.Sprintf(`"capabilities":{"bounding":%s}`, text)
}

func bind(source, options string) string {
	return fmt.Sprintf(`{"destination":"/x","type":"bind","source":%q,"options":[%s]}`, source, options)
}

func (w *hostWorld) judge(t *testing.T, text string) []Finding {
	t.Helper()
	var root bundle.Object
	if err := json.Unmarshal([]byte(strings.ReplaceAll(text, "ROOT", w.root)), &root); err != nil {
		t.Fatal(err)
	}
	c, err := OfSpec(root, filepath.Join(w.root, "bundle"))
	if err != nil {
		t.Fatal(err)
	}
	return w.Judge(c)
}

func names(found []Finding) string {
	var list []string
	for _, f := range found {
		list = append(list, f.Kind.Name)
	}
	return strings.Join(list, " ")
}

func TestJudge(t *testing.T) {
	w := newHostWorld(t, func(root string) {
		testenv.MountTmpfs(t, filepath.Join(root, "run/podman"), 1<<20)
		listen(t, filepath.Join(root, "run/podman/podman.sock"))
	})
	link := func(target, name string) {
		if err := os.Symlink(target, filepath.Join(w.root, name)); err != nil {
			t.Fatal(err)
		}
	}
	link("../run/docker.sock", "other/harmless")
	link(fmt.Sprintf("/proc/%d/root%s/run", os.Getpid(), w.root), "other/magic")
	link(w.root, "other/all")
	if err := os.Link(filepath.Join(w.root, "run/docker.sock"), filepath.Join(w.root, "other/hard")); err != nil {
		t.Fatal(err)
	}
	const rw, ro = `"rbind","rprivate"`, `"rbind","ro"`
	all := caps("CAP_SYS_ADMIN", "CAP_BPF", "CAP_SYS_MODULE", "CAP_SYS_RAWIO", "CAP_SYS_BOOT", "CAP_DAC_READ_SEARCH", "CAP_SYS_PTRACE")
	for _, test := range []struct{ name, text, want string }{
		{"nothing", spec(caps("CAP_CHOWN", "CAP_NET_RAW", "CAP_SYS_PTRACE"), "", ""), ""},
		{"capabilities", spec(caps("sys_admin", "CAP_BPF"), "", ""), "cap-sys-admin cap-bpf"},
		{"ambient alone", spec(`"capabilities":{"ambient":["CAP_SYS_MODULE"]}`, "", ""), "cap-sys-module"},
		{"handles", spec(caps("CAP_DAC_READ_SEARCH"), "", ""), "cap-dac-read-search"},
		{"privileged", spec(all, `{"destination":"/sys/fs/cgroup","type":"cgroup","options":["rw"]}`, `"resources":{"devices":[{"allow":true,"access":"rwm"}]}`), "privileged"},
		{"privileged by an older manager", spec(strings.Replace(all, `"CAP_BPF",`, "", 1), "", ""), "privileged"},
		{"almost", spec(strings.Replace(all, `"CAP_SYS_BOOT",`, "", 1), "", ""), "cap-sys-admin cap-bpf cap-sys-module cap-sys-rawio cap-dac-read-search"},
		{"privileged with the socket", spec(all, bind("ROOT/run/docker.sock", rw), ""), "privileged docker-socket"},
		{"ptrace in the host's", spec(caps("CAP_SYS_PTRACE"), "", `"namespaces":[{"type":"mount"},{"type":"cgroup"}],"readonlyPaths":["/proc"],"maskedPaths":["/sys"]`), "cap-sys-ptrace host-pid"},
		{"ptrace with another", spec(caps("CAP_SYS_PTRACE"), "", strings.Replace(ownNamespaces, `{"type":"pid"}`, fmt.Sprintf(`{"type":"pid","path":"/proc/%d/ns/uts"}`, os.Getpid()), 1)), "cap-sys-ptrace"},
		{"host's by its path", spec("", "", strings.Replace(ownNamespaces, `{"type":"pid"}`, `{"type":"pid","path":"/proc/1/ns/pid"}`, 1)), "host-pid"},
		{"one that is not there", spec("", "", strings.Replace(ownNamespaces, `{"type":"pid"}`, `{"type":"pid","path":"/nonexistent"}`, 1)), "host-pid"},
		{"no mount namespace", spec("", "", strings.Replace(ownNamespaces, `{"type":"mount"},`, "", 1)), "host-root"},
		{"open paths", spec("", "", `"namespaces":[{"type":"pid"},{"type":"mount"},{"type":"cgroup"}],"readonlyPaths":[]`), "system-paths"},

		{"socket", spec("", bind("ROOT/run/docker.sock", rw), ""), "docker-socket"},
		{"socket, read-only", spec("", bind("ROOT/run/docker.sock", ro), ""), "docker-socket"},
		{"socket by another name", spec("", bind("ROOT/var/run/docker.sock", rw), ""), "docker-socket"},
		{"socket behind a link", spec("", bind("ROOT/other/harmless", rw), ""), "docker-socket"},
		{"socket by a hard link", spec("", bind("ROOT/other/hard", rw), ""), "docker-socket"},
		{"folder of the sockets", spec("", bind("ROOT/run", `"bind"`), ""), "docker-socket containerd-socket crio-socket systemd-socket host-system actplane-files"},
		{"by /proc/PID/root", spec("", bind("ROOT/other/magic/docker.sock", rw), ""), "docker-socket"},
		{"by /proc/self/root", spec("", bind("/proc/self/rootROOT/run/docker.sock", rw), ""), "docker-socket host-proc"},
		{"socket that is not there yet", spec("", bind("ROOT/run/crio/crio.sock", rw), ""), "crio-socket"},
		{"folder of one that is not there yet", spec("", bind("ROOT/run/crio", rw), ""), "crio-socket"},
		{"dots", spec("", bind("ROOT/home/../run/./docker.sock", rw), ""), "docker-socket"},
		{"relative", spec("", bind("../run/docker.sock", rw), ""), "docker-socket"},
		{"no options", spec("", `{"destination":"/x","type":"bind","source":"ROOT/run/docker.sock"}`, ""), "docker-socket"},
		{"a file system below", spec("", bind("ROOT/run/podman", rw), ""), "podman-socket"},
		{"a shim's sockets", spec("", bind("ROOT/run/containerd/s", ro), ""), "containerd-socket"},
		{"docker's data", spec("", bind("ROOT/var/lib/docker", rw), ""), "host-system"},
		{"docker's data, read-only", spec("", bind("ROOT/var/lib/docker", ro), ""), ""},
		{"a volume", spec("", bind("ROOT/var/lib/docker/volumes/v/_data", rw), ""), ""},
		{"the workspace", spec("", bind("ROOT/home/agent/work", rw)+","+bind("ROOT/home/agent/work/file", rw), ""), ""},
		{"programs", spec("", bind("ROOT/usr/bin", rw), ""), "host-system"},
		{"a program", spec("", bind("ROOT/usr/bin/runc", rw), ""), "host-system"},
		{"programs, read-only", spec("", bind("ROOT/usr/bin", ro), ""), ""},
		{"the pins", spec("", bind("ROOT/sys/fs/bpf/actplane", ro), ""), "bpf-files"},
		{"ActPlane's configuration", spec("", bind("ROOT/etc/actplane", rw), ""), "actplane-files"},
		{"and read-only", spec("", bind("ROOT/etc/actplane", ro), ""), ""},
		{"a file in it", spec("", bind("ROOT/etc/actplane/policy.d", rw), ""), "actplane-files"},
		{"ActPlane's state", spec("", bind("ROOT/run/actplane/scopes/x", ro), ""), "actplane-files"},
		{"guarded", spec("", bind("ROOT/opt", ro), ""), "guarded-path"},
		{"below guarded", spec("", bind("ROOT/opt/guarded/a", ro), ""), "guarded-path"},
		{"the host's root", spec("", bind("ROOT", ro), ""), "host-root"},
		{"the host's root behind a link", spec("", bind("ROOT/other/all/.", `"bind","ro"`), ""), "host-root"},
		{"as an overlay", spec("", `{"destination":"/x","type":"overlay","source":"overlay","options":["lowerdir=/a:ROOT/run","upperdir=/b"]}`, ""), "docker-socket containerd-socket crio-socket systemd-socket actplane-files"},
		{"to write through an overlay", spec("", `{"destination":"/x","type":"overlay","source":"overlay","options":["lowerdir+=/a","upperdir=ROOT/usr/bin"]}`, ""), "host-system"},
		{"below the programs", spec("", bind("ROOT/usr/bin/runc.d", rw), ""), "host-system"},
		{"all volumes", spec("", bind("ROOT/var/lib/docker/volumes", rw), ""), "host-system"},
		{"the host's root as its own", strings.Replace(spec("", "", ""), `"path":"rootfs"`, `"path":"ROOT"`, 1), "host-root"},
		{"the host's /proc", spec("", bind("/proc", ro), ""), "host-proc"},
		{"devices by their folder", spec("", bind("/dev", rw), ""), deviceFolder(t)},
		{"a harmless device", spec("", bind("/dev/null", rw), ""), ""},
		{"a loop", spec("", bind("ROOT/other/loop/x", rw), ""), "host-root"},

		{"cgroups", spec("", `{"destination":"/sys/fs/cgroup","type":"cgroup"}`, ""), "writable-cgroups"},
		{"cgroups, read-only", spec("", `{"destination":"/sys/fs/cgroup","type":"cgroup2","options":["rw","ro"]}`, ""), ""},
		{"the host's cgroups", spec("", `{"destination":"/sys/fs/cgroup","type":"cgroup2"}`, strings.Replace(ownNamespaces, `,{"type":"cgroup"}`, "", 1)), "host-cgroups"},
		{"the host's cgroups, read-only", spec("", `{"destination":"/sys/fs/cgroup","type":"cgroup2","options":["ro"]}`, strings.Replace(ownNamespaces, `,{"type":"cgroup"}`, "", 1)), ""},
		{"sysfs", spec("", `{"destination":"/sys","type":"sysfs","options":["nosuid"]}`, ""), "writable-sys"},
		{"tracing", spec("", `{"destination":"/t","type":"tracefs"}`, ""), "writable-sys"},

		{"a disk", spec("", "", `"devices":[{"path":"/dev/sda","type":"b","major":8,"minor":0}]`), "host-devices"},
		{"memory", spec("", "", `"devices":[{"path":"/dev/m","type":"c","major":1,"minor":1}]`), "host-devices"},
		{"the kernel's log", spec("", "", `"devices":[{"path":"/dev/kmsg","type":"c","major":1,"minor":11}]`), "host-devices"},
		{"another device", spec("", "", `"devices":[{"path":"/dev/fuse","type":"c","major":10,"minor":229}]`), ""},
		{"disks by a rule", spec("", "", `"resources":{"devices":[{"allow":false,"access":"rwm"},{"allow":true,"type":"b","access":"rw"}]}`), "host-devices"},
		{"to make nodes alone", spec("", "", `"resources":{"devices":[{"allow":false,"access":"rwm"},{"allow":true,"type":"b","access":"m"},{"allow":true,"type":"c","access":"m"}]}`), ""},
		{"docker's own rules", spec("", "", `"resources":{"devices":[{"allow":true,"access":"rwm"},{"allow":false,"access":"rwm"},{"allow":true,"type":"c","major":1,"minor":3,"access":"rwm"},{"allow":true,"type":"c","major":136,"access":"rwm"}]}`), ""},
		{"memory by a rule", spec("", "", `"resources":{"devices":[{"allow":true,"type":"c","major":1,"access":"r"}]}`), "host-devices"},
		{"taken back", spec("", "", `"resources":{"devices":[{"allow":true,"type":"c","major":1,"minor":1,"access":"r"},{"allow":false,"type":"c","major":1,"access":"rw"}]}`), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.name == "a loop" {
				link("loop", "other/loop")
			}
			found := w.judge(t, test.text)
			if got := names(found); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			for _, f := range found {
				if f.At == "" || f.Fact == "" || f.Fix == "" || strings.HasSuffix(f.Fact, ".") {
					t.Errorf("%+v", f)
				}
			}
		})
	}
}

// deviceFolder is what /dev is on this machine.
func deviceFolder(t *testing.T) string {
	t.Helper()
	var stat unix.Statfs_t
	if err := unix.Statfs("/dev", &stat); err != nil {
		t.Fatal(err)
	}
	mounts, err := mountinfo.GetMounts(mountinfo.SingleEntryFilter("/dev"))
	if err != nil || len(mounts) == 0 || mounts[len(mounts)-1].FSType != "devtmpfs" {
		return "" // a plain folder, whose devices are judged one by one
	}
	return "host-devices"
}

// The same thing mounted under another name is the same thing, and so it is below a
// directory that is bound with all that is mounted in it.
func TestOtherNames(t *testing.T) {
	w := newHostWorld(t, func(root string) {
		for _, name := range []string{"other/root", "other/run", "home/agent/work/deep/run"} {
			if err := os.MkdirAll(filepath.Join(root, name), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(root, "other/file"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		testenv.MountBind(t, root, filepath.Join(root, "other/root"))
		testenv.MountBind(t, filepath.Join(root, "run"), filepath.Join(root, "other/run"))
		testenv.MountBind(t, filepath.Join(root, "run/docker.sock"), filepath.Join(root, "other/file"))
		testenv.MountBind(t, filepath.Join(root, "run"), filepath.Join(root, "home/agent/work/deep/run"))
	})
	const sockets = "docker-socket containerd-socket crio-socket podman-socket systemd-socket"
	for _, test := range []struct{ source, options, want string }{
		{"other/root", `"bind","ro"`, "host-root"},
		{"other/root/run/docker.sock", `"bind"`, "docker-socket"},
		{"other/run", `"rbind","ro"`, sockets + " actplane-files"},
		{"other/file", `"bind","ro"`, "docker-socket"},
		{"home/agent/work", `"rbind","ro"`, sockets + " host-system actplane-files"}, // what is below stays writable
		{"home/agent/work", `"rbind"`, sockets + " host-system actplane-files"},
		{"home/agent/work", `"rbind","rro"`, sockets + " actplane-files"},
		{"home/agent/work", `"bind"`, ""}, // without what is mounted below
	} {
		if got := names(w.judge(t, spec("", bind("ROOT/"+test.source, test.options), ""))); got != test.want {
			t.Errorf("%s %s: got %q, want %q", test.source, test.options, got, test.want)
		}
	}
}

// What is really mounted is judged, whatever the specification said.
func TestJudgeMounted(t *testing.T) {
	w := newHostWorld(t, func(root string) {
		for _, name := range []string{"merged/work", "merged/run/actplane", "merged/proc"} {
			if err := os.MkdirAll(filepath.Join(root, name), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		testenv.MountTmpfs(t, filepath.Join(root, "merged/work"), 1<<20)
		testenv.MountBind(t, filepath.Join(root, "run/actplane/scopes/x"), filepath.Join(root, "merged/run/actplane"))
	})
	judge := func(own ...string) ([]Finding, error) {
		mounts, err := mountinfo.GetMounts(nil)
		if err != nil {
			t.Fatal(err)
		}
		return w.JudgeMounted(&Container{}, mounts, filepath.Join(w.root, "merged"), own)
	}
	scope := filepath.Join(w.root, "run/actplane/scopes/x")
	if found, err := judge(scope); err != nil || len(found) != 0 {
		t.Errorf("got %v, error %v", found, err)
	}
	if found, err := judge(); err != nil || names(found) != "actplane-files" {
		t.Errorf("the scope of another: got %v, error %v", found, err)
	}
	testenv.MountBind(t, filepath.Join(w.root, "run"), filepath.Join(w.root, "merged/work"))
	found, err := judge(scope)
	if err != nil || !strings.Contains(names(found), "docker-socket") || found[0].At != "/work" {
		t.Errorf("exchanged for the sockets' folder: got %v, error %v", found, err)
	}
	testenv.MountBind(t, "/proc", filepath.Join(w.root, "merged/proc"))
	if found, err = judge(scope); err != nil || !strings.Contains(names(found), "host-proc") {
		t.Errorf("the host's /proc: got %v, error %v", found, err)
	}
	testenv.MountBind(t, w.root, filepath.Join(w.root, "merged/work"))
	if found, err = judge(scope); err != nil || !strings.HasPrefix(names(found), "host-root") {
		t.Errorf("the host's root: got %v, error %v", found, err)
	}
	if _, err := w.JudgeMounted(&Container{}, nil, "/nonexistent", nil); err == nil {
		t.Error("a container without a root is fine")
	}
}

// Runtimes differ: crun makes mounts read-only after its hooks. What is below a mount is not made read-only with it.
func TestJudgeMountedByRuntimes(t *testing.T) {
	w := newHostWorld(t, nil)
	const info = "30 20 0:999 / ROOT rw - overlay overlay rw\n31 30 0:998 / ROOT/cg MODE - cgroup2 cgroup2 rw\n"
	for _, test := range []struct {
		name, info string
		mounts     []Mount
		want       string
	}{
		{"runc", strings.ReplaceAll(info, "MODE", "ro"), nil, ""},
		{"crun", strings.ReplaceAll(info, "MODE", "rw"), []Mount{{Destination: "/cg/", Type: "cgroup2", ReadOnly: true}}, ""},
		{"nobody makes it so", strings.ReplaceAll(info, "MODE", "rw"), nil, "writable-cgroups"},
		{"one of two", strings.ReplaceAll(info, "MODE", "rw"), []Mount{{Destination: "/cg", ReadOnly: true}, {Destination: "/cg"}}, "writable-cgroups"},
		{"below it", strings.ReplaceAll(strings.ReplaceAll(info, "MODE", "rw"), "/cg", "/cg/x"), []Mount{{Destination: "/cg", ReadOnly: true}}, "writable-cgroups"},
		{"cgroups of the first version", "30 20 0:999 / ROOT rw - overlay overlay rw\n31 30 0:998 / ROOT/cg/cpu rw - cgroup cgroup rw\n", []Mount{{Destination: "/cg", Type: "cgroup", ReadOnly: true}}, ""},
	} {
		mounts, err := mountinfo.GetMountsFromReader(strings.NewReader(strings.ReplaceAll(test.info, "ROOT", "/r")), nil)
		if err != nil {
			t.Fatal(err)
		}
		found, err := w.JudgeMounted(&Container{Mounts: test.mounts}, mounts, "/r", nil)
		if err != nil || names(found) != test.want {
			t.Errorf("%s: got %v, error %v, want %q", test.name, found, err, test.want)
		}
	}
}

// A mount of another namespace has no name here, and is refused.
func TestElsewhere(t *testing.T) {
	w := newHostWorld(t, nil)
	w.mounts = slices.DeleteFunc(slices.Clone(w.mounts), func(m *mountinfo.Info) bool { return m.Mountpoint == "/" })
	found := w.judge(t, spec("", bind("ROOT/home/agent/work", `"rbind"`), ""))
	if len(w.mounts) > 0 && names(found) != "host-root" {
		t.Skipf("the test's folder is on a mount of its own: %v", found)
	}
}

func TestRefusal(t *testing.T) {
	if err := Refusal("it", nil, "c"); err != nil {
		t.Error(err)
	}
	one := []Finding{{HostPID, "a", "it is wide open", "close it"}}
	if got := Refusal(`container "x"`, one, "/etc/c").Error(); got != `container "x" could get around its policy: it is wide open. Close it, or have the host allow it: allow: [host-pid] in /etc/c` {
		t.Error(got)
	}
	var many []Finding
	for i := range maxTold + 2 {
		many = append(many, Finding{HostPID, fmt.Sprint(i), "it is wide open" + strings.Repeat("é", 300), "close it"})
	}
	if got := Refusal("it", many, "c").Error(); strings.Count(got, "wide open") != maxTold || len(got) > 1000 || !utf8.ValidString(got) || !strings.Contains(got, "and 2 more") || !strings.Contains(got, "allow: [host-pid] in c") {
		t.Error(got)
	}
	w := newHostWorld(t, nil)
	if got := Refusal("it", w.judge(t, spec("", bind("ROOT/run", `"bind"`)+","+bind("ROOT/other", `"bind"`), "")), "c").Error(); strings.Count(got, "is mounted at") != 1 ||
		!strings.HasSuffix(got, "allow: [docker-socket, containerd-socket, crio-socket, podman-socket, systemd-socket, host-system, actplane-files] in c") {
		t.Error(got)
	}
	refused, allowed := Sort(append(one, Finding{Kind: HostRoot}), []string{"host-root"})
	if names(refused) != "host-pid" || names(allowed) != "host-root" {
		t.Errorf("refused %v, allowed %v", refused, allowed)
	}
}

// Names and codes are written into configurations: there is one of each.
func TestKinds(t *testing.T) {
	manual, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, kind := range Kinds() {
		if seen[kind.Code] || seen[kind.Name] || kind.Code == "" || kind.Name == "" {
			t.Errorf("%+v is there twice, or has no name", kind)
		}
		if !strings.Contains(string(manual), "`"+kind.Name+"`") {
			t.Errorf("docs/operations.md does not say what %q is", kind.Name)
		}
		seen[kind.Code], seen[kind.Name] = true, true
	}
}

func TestIsVM(t *testing.T) {
	for program, want := range map[string]bool{"/usr/bin/runc": false, "/usr/bin/crun": false, "/usr/local/bin/runsc": true, "kata-runtime": true, "/opt/kata/bin/kata-runtime": true,
		"containerd-shim-kata-v2": true, "krun": true, "": false, "/usr/bin/nvidia-container-runtime": false, "runscape": false} {
		if IsVM(program) != want {
			t.Errorf("%s: %v", program, !want)
		}
	}
}

// Drivers without a fixed number are found by their names.
func TestParseDevices(t *testing.T) {
	known := parseDevices([]byte("Character devices:\n  1 mem\n240 nvme\n241 other\n\nBlock devices:\n  8 sd\n250 nvme\n"))
	if known[number{240, Any}] == "" || known[number{250, Any}] != "" || known[number{241, Any}] != "" || known[number{1, 1}] == "" {
		t.Errorf("got %v", known)
	}
}
