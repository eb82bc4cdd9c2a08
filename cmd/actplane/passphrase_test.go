// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/internal/frontend"
	"github.com/actplane/actplane/internal/testenv"
)

// terminal is a pseudo terminal and what was written to it.
type terminal struct {
	t      *testing.T
	master *os.File
	slave  *os.File

	mu    sync.Mutex
	shown bytes.Buffer // guarded by mu
}

func newTerminal(t *testing.T) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { slave.Close() })
	term := &terminal{t: t, master: master, slave: slave}
	go func() {
		buffer := make([]byte, 4096)
		for {
			n, err := master.Read(buffer)
			if err != nil {
				return
			}
			term.mu.Lock()
			term.shown.Write(buffer[:n])
			term.mu.Unlock()
		}
	}()
	return term
}

func (term *terminal) text() string {
	term.mu.Lock()
	defer term.mu.Unlock()
	return term.shown.String()
}

// start starts a command whose terminal this is.
func (term *terminal) start(command *exec.Cmd) {
	term.t.Helper()
	command.Stdin, command.Stdout, command.Stderr = term.slave, term.slave, term.slave
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := command.Start(); err != nil {
		term.t.Fatal(err)
	}
	term.t.Cleanup(func() { _ = command.Process.Kill() })
}

// expect waits until it was asked so many times, with the echo off, so that what is
// typed from then on is taken.
func (term *terminal) expect(asked int) {
	term.t.Helper()
	ok := frontend.Poll(term.t.Context(), 20*time.Second, func() bool {
		state, err := unix.IoctlGetTermios(int(term.slave.Fd()), unix.TCGETS)
		return err == nil && strings.Count(term.text(), "Passphrase of locked: ") == asked && state.Lflag&unix.ECHO == 0
	})
	if !ok {
		term.t.Fatalf("it does not ask: %q", term.text())
	}
}

func (term *terminal) write(text string) {
	term.t.Helper()
	if _, err := term.master.WriteString(text); err != nil {
		term.t.Fatal(err)
	}
}

// lockedKey is a folder with a policy and a key that has a passphrase, and the command
// that signs the one with the other.
func lockedKey(t *testing.T) *exec.Cmd {
	t.Helper()
	keygen := testenv.RequireProgram(t, "ssh-keygen", "openssh-client")
	dir := t.TempDir()
	make := exec.Command(keygen, "-q", "-t", "ed25519", "-N", "secret", "-f", "locked")
	make.Dir = dir
	if out, err := make.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(dir, "p.yaml"), []byte("version: 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "actplane") // this program goes by its name
	if err := os.Symlink(self, program); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, "sign", "--key", "locked", "p.yaml")
	command.Dir = dir
	command.Env = append(os.Environ(), "SSH_AUTH_SOCK=")
	return command
}

func TestPassphrase(t *testing.T) {
	command, term := lockedKey(t), newTerminal(t)
	term.start(command)
	term.expect(1)
	term.write("wrong\n")
	term.expect(2)
	term.write("secret\n")
	if err := command.Wait(); err != nil {
		t.Fatalf("%v: %q", err, term.text())
	}
	if out := term.text(); strings.Contains(out, "secret") || !exists(filepath.Join(command.Dir, "p.yaml.sig")) {
		t.Errorf("shown is %q", out)
	}
}

func TestWrongPassphrase(t *testing.T) {
	command, term := lockedKey(t), newTerminal(t)
	term.start(command)
	for try := range passphraseTries {
		term.expect(try + 1)
		term.write("wrong\n")
	}
	_ = command.Wait()
	if code := command.ProcessState.ExitCode(); code != exitEnvironment || !frontend.Poll(t.Context(), 5*time.Second, func() bool { return strings.Contains(term.text(), "the passphrase was wrong") }) {
		t.Errorf("exit code %d, %q", code, term.text())
	}
	if exists(filepath.Join(command.Dir, "p.yaml.sig")) {
		t.Error("it is signed")
	}
}

// Whoever gives up has a terminal that shows what is typed.
func TestPassphraseInterrupted(t *testing.T) {
	command, term := lockedKey(t), newTerminal(t)
	term.start(command)
	term.expect(1)
	term.write("\x03")
	_ = command.Wait()
	state, err := unix.IoctlGetTermios(int(term.slave.Fd()), unix.TCGETS)
	if code := command.ProcessState.ExitCode(); code != exitEnvironment || err != nil || state.Lflag&unix.ECHO == 0 {
		t.Errorf("exit code %d, echo %v, %v: %q", code, state.Lflag&unix.ECHO != 0, err, term.text())
	}
}

func TestPassphraseWithoutTerminal(t *testing.T) {
	command := lockedKey(t)
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, _ := command.CombinedOutput()
	if code := command.ProcessState.ExitCode(); code != exitEnvironment || !strings.Contains(string(out), "there is no terminal to ask for it: run ssh-add") {
		t.Errorf("exit code %d, %q", code, out)
	}
}
