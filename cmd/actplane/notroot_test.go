// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/actplane/actplane/internal/testenv"
)

// asNobody runs the command as a user who is nobody, with a Docker's client that
// answers what one answers whose server is not for this user.
func asNobody(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	testenv.RequireRoot(t)
	dir, err := os.MkdirTemp("/tmp", "actplane") // t.TempDir is only for this user
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	const docker = "#!/bin/sh\n" + `printf %s '{"ServerErrors":["permission denied while trying to connect to the Docker daemon socket at unix:///x\n"],"ClientInfo":{}}'` + "\n"
	for name, text := range map[string][]byte{"actplane": program, "docker": []byte(docker), "dockerd": []byte("#!/bin/sh\n")} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var out, errOut strings.Builder
	command := exec.Command(filepath.Join(dir, "actplane"), args...)
	command.Dir, command.Stdout, command.Stderr = dir, &out, &errOut
	command.Env = []string{"PATH=" + dir + ":/usr/bin:/bin", "HOME=/nonexistent"}
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	_ = command.Run() // the exit code tells
	return out.String(), errOut.String(), command.ProcessState.ExitCode()
}

func TestDoctorForOthers(t *testing.T) {
	out, _, _ := asNobody(t, "doctor", "--run-dir", "/nonexistent")
	if want := "warn  docker      only root and the group docker may ask it\n                  -> sudo actplane doctor\n"; !strings.Contains(out, want) {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
	if want := "warn  tier        not tried: that needs root\n"; !strings.Contains(out, want) {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
}

func TestInstallForOthers(t *testing.T) {
	for _, command := range []string{"install", "uninstall"} {
		for _, args := range [][]string{{}, {"--prefix", "p"}, {"--no-docker"}} {
			out, errOut, code := asNobody(t, append([]string{command}, args...)...)
			want := "actplane: " + command + " needs root: run \"sudo actplane " + command + "\"; --dry-run tells what it would do\n"
			if code != exitEnvironment || out != "" || errOut != want {
				t.Errorf("%s %q: %d\n%s%s", command, args, code, out, errOut)
			}
		}
	}
	if _, errOut, code := asNobody(t, "uninstall", "--dry-run", "--no-systemd"); code != 0 || errOut != "" {
		t.Errorf("dry run: %d\n%s", code, errOut)
	}
}
