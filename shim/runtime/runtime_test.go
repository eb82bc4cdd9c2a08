// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/actplane/actplane/internal/bundle"
	"github.com/actplane/actplane/internal/daemon"
	"github.com/actplane/actplane/internal/daemon/daemontest"
	"github.com/actplane/actplane/internal/proc"
	"github.com/actplane/actplane/shim/prepare"
)

const good = "version: 1\npolicy: |\n  rule r:\n    block exec \"git\" \"push\"\n"

// errExec is how an exec that works looks to a test.
var errExec = errors.New("execed")

type world struct {
	*prepare.Host
	engine *daemontest.Engine
	root   string
	socket string

	stderr bytes.Buffer
	path   string
	argv   []string
	env    []string
	fail   bool // exec fails
}

func newWorld(t *testing.T, annotations map[string]string) *world {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{root: root}
	w.engine, w.socket = daemontest.Start(t)
	w.Host = host(root, w.socket)
	text, _ := json.Marshal(annotations)
	w.write(t, "bundle/config.json", fmt.Sprintf(`{"process":{"cwd":"/src","capabilities":{"bounding":["CAP_CHOWN","CAP_KILL"]}},"root":{"path":"rootfs"},`+
		`"mounts":[{"destination":"/src","type":"bind","source":"%s/src"}],"annotations":%s,"linux":{"namespaces":[{"type":"pid"},{"type":"mount"}]}}`, root, text))
	w.write(t, "src/actplane.yaml", good)
	w.write(t, "bin/runc", "#!/bin/sh\nfor a; do printf '%s\\n' \"$a\"; done > \"$0.argv\"\necho out\necho err >&2\nexit 42\n")
	if err := os.Chmod(filepath.Join(root, "bin/runc"), 0o755); err != nil {
		t.Fatal(err)
	}
	return w
}

func host(root, socket string) *prepare.Host {
	return &prepare.Host{
		Config: filepath.Join(root, "config.yaml"), Floor: filepath.Join(root, "policy.d"), Policies: filepath.Join(root, "policies"),
		Records: bundle.Records(filepath.Join(root, "runtime")), Hook: "/usr/local/bin/actplane-hook",
		Engine: daemon.Options{Socket: socket, Directory: filepath.Join(root, "run"), Program: "/bin/false", NoSystemd: true, NoCgroup: true},
	}
}

func (w *world) write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(w.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// call runs a command line and says whether the next runtime was reached.
func (w *world) call(args ...string) bool {
	w.path, w.argv, w.env = "", nil, nil
	w.stderr.Reset()
	program := &Program{Args: args, Env: []string{"PATH=" + w.root + "/bin"}, Stderr: &w.stderr, Host: w.Host}
	reached := false
	program.Exec = func(path string, argv, env []string) error {
		w.path, w.argv, w.env = path, argv, env
		if w.fail {
			return syscall.ENOEXEC
		}
		reached = true
		panic(errExec) // as an exec, it does not return
	}
	func() {
		defer func() {
			if r := recover(); r != nil && r != errExec {
				panic(r)
			}
		}()
		if status := program.Run(); status != 1 {
			panic(fmt.Sprintf("exit status %d", status))
		}
	}()
	return reached
}

func (w *world) bundle() string { return filepath.Join(w.root, "bundle") }

func TestPassesThroughUntouched(t *testing.T) {
	w := newWorld(t, nil)
	for _, line := range []string{
		"", "--version", "--help", "-v", "help", "start", "start --help", "--root /r state create", "kill --all one 9", "delete --force one", "pause one", "resume one",
		"update", "update --help", "events --stats one", "ps --format json one", "list", "spec", "features", "checkpoint one",
		"state --what-is-this one", "exec --help", "create --help", "exec",
	} {
		args := strings.Fields(line)
		if !w.call(args...) {
			t.Errorf("%q: refused: %s", line, &w.stderr)
			continue
		}
		if w.path != w.root+"/bin/runc" || !cmp.Equal(w.argv, append([]string{"runc"}, args...)) {
			t.Errorf("%q: execed %q with %q", line, w.path, w.argv)
		}
	}
	if len(w.engine.Prepared()) != 0 {
		t.Error("prepared a container")
	}
}

func TestRefusesSubcommands(t *testing.T) {
	w := newWorld(t, nil)
	for line, want := range map[string]string{
		"restore one":     "restore is not supported under ActPlane",
		"frob create one": `unknown subcommand "frob"`,
		"mounts add one":  `unknown subcommand "mounts"`,
		"--frob create x": `unknown option "--frob"`,
		"create":          "create needs one container id",
		"create ../x":     "container id",
		"run -f x one":    "only the bundle's config.json",
	} {
		if w.call(strings.Fields(line)...) || !strings.Contains(w.stderr.String(), want) {
			t.Errorf("%q: %q instead of %q", line, &w.stderr, want)
		}
		if strings.Count(w.stderr.String(), "\n") != 1 {
			t.Errorf("%q: not one line: %q", line, &w.stderr)
		}
	}
}

func TestCreate(t *testing.T) {
	for _, args := range [][]string{
		{"--root", "/r", "create", "--bundle", "BUNDLE", "--pid-file", "/p", "create"},
		{"--root=/r", "run", "-b=BUNDLE", "create"},
	} {
		w := newWorld(t, nil)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "BUNDLE", w.bundle())
		}
		if !w.call(args...) {
			t.Fatalf("%q: %s", args, &w.stderr)
		}
		if !cmp.Equal(w.argv, append([]string{"runc"}, args...)) {
			t.Errorf("argv %q", w.argv)
		}
		if prepared := w.engine.Prepared(); len(prepared) != 1 || prepared[0].Id != "create" {
			t.Errorf("prepared %v", prepared)
		}
		if record, err := w.Records.Load("create"); err != nil || record.Root != "/r" {
			t.Errorf("record %v, error %v", record, err)
		}
		config, _ := os.ReadFile(filepath.Join(w.bundle(), "config.json"))
		if !bytes.Contains(config, []byte("createRuntime")) {
			t.Error("no hook")
		}
	}
}

func TestCreateInWorkingDirectory(t *testing.T) {
	w := newWorld(t, nil)
	t.Chdir(w.bundle())
	if !w.call("create", "one") {
		t.Fatal(w.stderr.String())
	}
}

func TestFailedExecTakesBack(t *testing.T) {
	w := newWorld(t, nil)
	w.fail = true
	if w.call("create", "-b", w.bundle(), "one") || !strings.Contains(w.stderr.String(), "exec format error") {
		t.Errorf("stderr %q", &w.stderr)
	}
	if !cmp.Equal(w.engine.Closed(), []string{"one"}) {
		t.Errorf("closed %q", w.engine.Closed())
	}
	if _, err := w.Records.Load("one"); err == nil {
		t.Error("the record is still there")
	}
}

func TestNextRuntime(t *testing.T) {
	w := newWorld(t, nil)
	other := w.write(t, "opt/nvidia-container-runtime", "#!/bin/sh\n")
	os.Chmod(other, 0o755)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w.write(t, "config.yaml", "runtimes: [none-such, "+self+", "+other+", runc]\n")
	if !w.call("list") || w.path != other {
		t.Errorf("execed %q: %s", w.path, &w.stderr)
	}
	w.write(t, "config.yaml", "runtimes: [none-such, relative/runc]\n")
	if w.call("list") || !strings.Contains(w.stderr.String(), "none of none-such, relative/runc is in PATH") {
		t.Errorf("stderr %q", &w.stderr)
	}
	w.write(t, "config.yaml", "runtimes: runc\n")
	if w.call("list") || !strings.Contains(w.stderr.String(), "host configuration") {
		t.Errorf("stderr %q", &w.stderr)
	}
	w.write(t, "config.yaml", "")
	program := &Program{Args: []string{"list"}, Env: []string{loopGuard + "=/usr/bin/loop"}, Stderr: &w.stderr, Host: w.Host}
	w.stderr.Reset()
	if program.Run() != 1 || !strings.Contains(w.stderr.String(), `"/usr/bin/loop" calls actplane-runtime again`) {
		t.Errorf("stderr %q", &w.stderr)
	}
}

func TestExecLimits(t *testing.T) {
	w := newWorld(t, map[string]string{"dev.actplane.limits.capabilities.drop": "ALL", "dev.actplane.limits.capabilities.add": "KILL",
		"dev.actplane.limits.no_new_privileges": "true"})
	if !w.call("--root", "/r", "create", "-b", w.bundle(), "one") {
		t.Fatal(w.stderr.String())
	}
	const process = `{"args":["sh"],"x":1.0,"capabilities":{"bounding":["CAP_SYS_ADMIN","CAP_KILL"],"ambient":["CAP_SYS_ADMIN"]}}`
	const limited = `{"args":["sh"],"capabilities":{"ambient":[],"bounding":["CAP_KILL"]},"noNewPrivileges":true,"x":1.0}`
	for _, form := range [][]string{{"--process", "FILE"}, {"--process=FILE"}, {"-p", "FILE"}, {"-p=FILE"}, {"-process", "FILE"}} {
		file := w.write(t, "process.json", process)
		args := []string{"--root", "/r", "exec", "--detach", "--pid-file", "/p"}
		for _, word := range form {
			args = append(args, strings.ReplaceAll(word, "FILE", file))
		}
		if !w.call(append(args, "one")...) {
			t.Errorf("%q: %s", form, &w.stderr)
			continue
		}
		if got, _ := os.ReadFile(file); string(got) != limited {
			t.Errorf("%q: process %s", form, got)
		}
	}
	for line, want := range map[string]string{
		"one sh -c true":                            "",
		"--cap CAP_KILL one sh":                     "",
		"--no-new-privs one sh":                     "",
		"--cap CAP_SYS_ADMIN one sh":                "drops this capability",
		"-c CAP_KILL -c SYS_ADMIN one sh":           "drops this capability",
		"--no-new-privs=false one sh":               "requires it",
		"--no-new-privs=perhaps one sh":             "expected true or false",
		"--process /none/such one":                  "no such file",
		"--process /dev/null one":                   "not a regular file",
		"--frob one sh":                             "unknown option",
		"two sh":                                    "no record",
		"one sh --cap CAP_SYS_ADMIN --process /x y": "",
	} {
		reached := w.call(append([]string{"--root", "/r", "exec"}, strings.Fields(line)...)...)
		if reached != (want == "") || !strings.Contains(w.stderr.String(), want) {
			t.Errorf("%q: %q instead of %q", line, &w.stderr, want)
		}
	}
	if w.call("--root", "/other", "exec", "one", "sh") {
		t.Error("exec with the record of another container")
	}
}

// A next runtime that runs no hooks creates a container that nothing has put under policy.
func TestStart(t *testing.T) {
	w := newWorld(t, nil)
	if !w.call("--root", "/r", "create", "-b", w.bundle(), "one") {
		t.Fatal(w.stderr.String())
	}
	for line, want := range map[string]string{
		"--root /r start one":        "has not run the hook createRuntime",
		"--root /other start one":    "no record",
		"start two":                  "no record",
		"--root /r start --frob one": "unknown option",
		"--root /r start one two":    "more than one container id",
		"start ../one":               "container id",
	} {
		if w.call(strings.Fields(line)...) || !strings.Contains(w.stderr.String(), want) {
			t.Errorf("%q: %q instead of %q", line, &w.stderr, want)
		}
	}
	record, err := w.Records.Load("one")
	if err != nil {
		t.Fatal(err)
	}
	record.Pid, record.PidStarted = os.Getpid(), 1 // as the hook does
	if err := w.Records.Save(record); err != nil {
		t.Fatal(err)
	}
	if err := w.Records.Save(&bundle.Record{ID: "free", Root: "/r", Unmanaged: true}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"one", "free"} {
		if !w.call("--root", "/r", "start", id) || !cmp.Equal(w.argv, []string{"runc", "--root", "/r", "start", id}) {
			t.Errorf("%s: execed %q: %s", id, w.argv, &w.stderr)
		}
	}
}

// Without any limit of the policy's, a process that would be stronger than the policy
// does not start, unless the host allows that.
func TestExecExposed(t *testing.T) {
	w := newWorld(t, nil)
	if !w.call("create", "-b", w.bundle(), "one") {
		t.Fatal(w.stderr.String())
	}
	every := `"CAP_SYS_ADMIN","CAP_BPF","CAP_SYS_MODULE","CAP_SYS_RAWIO","CAP_SYS_BOOT","CAP_DAC_READ_SEARCH","CAP_SYS_PTRACE"`
	for _, test := range []struct{ capabilities, arguments, config, want string }{
		{`"CAP_CHOWN","CAP_SYS_PTRACE"`, "", "", ""},
		{every, "", "", "it is privileged: it has every capability. Start it without --privileged, or have the host allow it: allow: [privileged] in"},
		{every, "", "allow: [cap-sys-admin]", "it is privileged"},
		{every, "", "allow: [privileged]", ""},
		{`"CAP_SYS_ADMIN"`, "", "allow: [privileged]", "allow: [cap-sys-admin] in"},
		{`"CAP_BPF"`, "", "allow: [cap-bpf]", ""},
		{`"CAP_BPF"`, "", "allow: [cap-bfp]", `"cap-bfp" is nothing that can be allowed; did you mean "cap-bpf"?`},
		{"", "--cap CAP_SYS_MODULE", "", "it has CAP_SYS_MODULE"},
		{"", "-c sys_module", "allow: [cap-sys-module]", ""},
	} {
		w.write(t, "config.yaml", test.config+"\n")
		const process = `{"args":["sh"],"capabilities":{"permitted":[%s]}}`
		file := w.write(t, "process.json", fmt.Sprintf(process, test.capabilities))
		args := append([]string{"exec", "--process", file}, strings.Fields(test.arguments)...)
		reached := w.call(append(args, "one")...)
		if reached != (test.want == "") || !strings.Contains(w.stderr.String(), test.want) {
			t.Errorf("%+v: %q", test, &w.stderr)
		}
		if got, _ := os.ReadFile(file); string(got) != fmt.Sprintf(process, test.capabilities) {
			t.Errorf("%+v: the process is now %s", test, got)
		}
	}
	w.write(t, "config.yaml", "")
	record, err := w.Records.Load("one")
	if err != nil {
		t.Fatal(err)
	}
	record.SharedPID = true
	if err := w.Records.Save(record); err != nil {
		t.Fatal(err)
	}
	if w.call("exec", "--cap", "SYS_PTRACE", "one", "sh") || !strings.Contains(w.stderr.String(), "CAP_SYS_PTRACE and shares its process namespace") {
		t.Errorf("%q", &w.stderr)
	}
	record.Unmanaged = true
	if err := w.Records.Save(record); err != nil {
		t.Fatal(err)
	}
	if !w.call("exec", "--cap", "SYS_ADMIN", "one", "sh") {
		t.Errorf("of a container without a policy: %q", &w.stderr)
	}
}

func TestDelete(t *testing.T) {
	w := newWorld(t, nil)
	w.call("--root", "/r", "create", "-b", w.bundle(), "one")
	if !w.call("--root", "/other", "delete", "one") || len(w.engine.Closed()) != 0 {
		t.Errorf("closed %q", w.engine.Closed())
	}
	if !w.call("--root", "/r", "delete", "--force", "one") || !cmp.Equal(w.engine.Closed(), []string{"one"}) {
		t.Errorf("closed %q", w.engine.Closed())
	}
	if _, err := w.Records.Load("one"); err == nil {
		t.Error("the record is still there")
	}
	// A container that runs keeps its record: runc may refuse to delete it.
	stat, _ := proc.ReadStat(proc.Directory, os.Getpid())
	w.Records.Save(&bundle.Record{ID: "two", Pid: os.Getpid(), PidStarted: stat.Started})
	if !w.call("delete", "two") {
		t.Fatal(w.stderr.String())
	}
	if _, err := w.Records.Load("two"); err != nil {
		t.Error(err)
	}
	// An engine that is down is no reason not to delete.
	w.Engine.Socket += ".none"
	if !w.call("delete", "three") {
		t.Fatal(w.stderr.String())
	}
}

func TestLog(t *testing.T) {
	w := newWorld(t, map[string]string{"dev.actplane.mode": "shadow"})
	const want = "actplane: annotation dev.actplane.mode: mode shadow is not supported by this version; use enforce"
	for format, before := range map[string]string{"json": `{"level":"warning","msg":"earlier","time":"t"}`, "text": "", "": "earlier\n"} {
		path := w.write(t, "log", before)
		args := []string{"--log", path, "--log-format", format, "create", "-b", w.bundle(), "one"}
		if format == "" {
			args = args[:2]
			args = append(args, "create", "-b", w.bundle(), "one")
		}
		if w.call(args...) {
			t.Fatal("not refused")
		}
		if w.stderr.String() != want+"\n" {
			t.Errorf("stderr %q", &w.stderr)
		}
		data, _ := os.ReadFile(path)
		lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
		last := lines[len(lines)-1]
		if !strings.HasPrefix(string(data), before) || strings.Count(string(data), want) != 1 {
			t.Errorf("log %q", data)
		}
		if format != "json" {
			if !strings.HasPrefix(last, `time="`) || !strings.HasSuffix(last, `" level=error msg="`+want+`"`) {
				t.Errorf("record %q", last)
			}
			continue
		}
		var entry struct{ Level, Msg, Time string }
		if err := json.Unmarshal([]byte(last), &entry); err != nil || entry.Level != "error" || entry.Msg != want {
			t.Errorf("record %q: %v", last, err)
		}
		if _, err := time.Parse(time.RFC3339, entry.Time); err != nil {
			t.Error(err)
		}
	}
	// A log that cannot be written does not hide the reason.
	w.call("--log", "/none/such/log", "create", "-b", w.bundle(), "one")
	if got := w.stderr.String(); !strings.HasPrefix(got, want+" (write log: ") {
		t.Errorf("stderr %q", got)
	}
}

func TestOneLine(t *testing.T) {
	for in, want := range map[string]string{"a\nb\x1b[31m\x00c": "a b [31m c", "\xff": "?", "ä…": "ä…"} {
		if got := oneLine(in); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
	if got := oneLine(strings.Repeat("x", 5000)); len(got) > maxMessage+3 {
		t.Errorf("%d bytes", len(got))
	}
}

// TestMain lets the test binary be the runtime, with a real exec at its end.
func TestMain(m *testing.M) {
	if root := os.Getenv("RUNTIME_TEST_ROOT"); root != "" {
		program := &Program{Args: os.Args[1:], Env: []string{"PATH=" + root + "/bin:/bin:/usr/bin"}, Stdin: os.Stdin, Stderr: os.Stderr,
			Host: host(root, os.Getenv("RUNTIME_TEST_SOCKET")), Exec: syscall.Exec}
		os.Exit(program.Run())
	}
	os.Exit(m.Run())
}

func TestBecomesTheNextRuntime(t *testing.T) {
	w := newWorld(t, nil)
	run := func(args ...string) (stdout, stderr string, status int) {
		command := exec.Command(os.Args[0], args...)
		command.Env = []string{"RUNTIME_TEST_ROOT=" + w.root, "RUNTIME_TEST_SOCKET=" + w.socket}
		var out, errs bytes.Buffer
		command.Stdout, command.Stderr = &out, &errs
		err := command.Run()
		if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return out.String(), errs.String(), command.ProcessState.ExitCode()
	}
	stdout, stderr, status := run("create", "--bundle", w.bundle(), "one")
	if stdout != "out\n" || stderr != "err\n" || status != 42 {
		t.Errorf("stdout %q, stderr %q, status %d", stdout, stderr, status)
	}
	argv, _ := os.ReadFile(filepath.Join(w.root, "bin/runc.argv"))
	if string(argv) != "create\n--bundle\n"+w.bundle()+"\none\n" {
		t.Errorf("argv %q", argv)
	}
	os.Remove(filepath.Join(w.root, "src/actplane.yaml"))
	stdout, stderr, status = run("create", "--bundle", w.bundle(), "two")
	if stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "no policy found") || status != 1 {
		t.Errorf("stdout %q, stderr %q, status %d", stdout, stderr, status)
	}
}
