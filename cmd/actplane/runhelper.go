// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// runHelper is the first argument with which this program is started in the
// scope's cgroup: it waits for the policy and becomes the command.
//
//	actplane run-helper FLAGS COMMAND ARG0 [ARG…]
const runHelper = "run-helper"

// helperGate is the descriptor on which the helper is told to go on.
const helperGate = 3

// noNewPrivilegesFlag stands for FLAGS; "-" is none.
const noNewPrivilegesFlag = "no-new-privileges"

func runHelperMain(args []string, stderr io.Writer) int {
	if len(args) < 3 {
		fmt.Fprintln(stderr, "actplane: run-helper is for \"actplane run\" only")
		return exitUsage
	}
	gate := os.NewFile(helperGate, "gate")
	if n, _ := gate.Read(make([]byte, 1)); n != 1 {
		return exitNotRun // no policy, no command; the parent has said why
	}
	gate.Close()
	if args[0] == noNewPrivilegesFlag {
		if err := noNewPrivileges(); err != nil {
			fmt.Fprintf(stderr, "actplane: set no_new_privileges: %v\n", err)
			return exitNotRun
		}
	}
	err := syscall.Exec(args[1], args[2:], os.Environ())
	fmt.Fprintf(stderr, "actplane: run %s: %v", word(args[1]), err)
	if errors.Is(err, unix.EPERM) {
		fmt.Fprint(stderr, "; \"actplane events\" tells whether the policy refused it")
	}
	fmt.Fprintln(stderr)
	return exitNotRun
}

// noNewPrivileges sets the attribute on all threads: which one becomes the
// command is not ours to choose.
func noNewPrivileges() error {
	_, _, errno := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

type helperSpec struct {
	command         string
	args            []string // with the command's own name first
	noNewPrivileges bool
	socket          string
}

// helper is the started process.
type helper struct {
	command *exec.Cmd
	gate    *os.File // nil once the helper was told to go on, or ended
}

// startHelper starts this program in the cgroup from its first instruction on.
func startHelper(g *group, spec helperSpec) (*helper, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir, err := os.Open(g.dir)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	flags := "-"
	if spec.noNewPrivileges {
		flags = noNewPrivilegesFlag
	}
	command := exec.Command(self, append([]string{runHelper, flags, spec.command}, spec.args...)...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.ExtraFiles = []*os.File{read}
	command.Env = append(os.Environ(), "ACTPLANE_SOCKET="+spec.socket)
	command.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	if err := command.Start(); err != nil {
		write.Close()
		return nil, err
	}
	return &helper{command: command, gate: write}, nil
}

func (h *helper) pid() int { return h.command.Process.Pid }

// abandon ends a helper that was never told to go on.
func (h *helper) abandon() {
	if h.gate != nil {
		h.gate.Close()
		h.gate = nil
		_ = h.command.Wait()
	}
}

// wait lets the command run and gives its exit status as a shell would. Signals
// go to it; those of the terminal reach it without us.
func (h *helper) wait() error {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGHUP, unix.SIGUSR1, unix.SIGUSR2)
	defer signal.Stop(signals)
	_, terminalErr := unix.IoctlGetTermios(int(os.Stdin.Fd()), unix.TCGETS)
	terminal := terminalErr == nil
	_, err := h.gate.Write([]byte{1})
	h.gate.Close()
	h.gate = nil
	ended := make(chan error, 1)
	go func() { ended <- h.command.Wait() }()
	for {
		select {
		case s := <-signals:
			if !terminal || s != unix.SIGINT && s != unix.SIGQUIT {
				_ = h.command.Process.Signal(s)
			}
		case waitErr := <-ended:
			if err != nil {
				return environmentError("let the command go: %v", err)
			}
			return exitStatus(waitErr)
		}
	}
}

func exitStatus(err error) error {
	if err == nil {
		return nil
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return environmentError("wait for the command: %v", err)
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return &failure{code: 128 + int(status.Signal())}
	}
	return &failure{code: exit.ExitCode()}
}
