// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/bpf"
	"github.com/actplane/actplane/policy/dfa"
)

// ProbeHelperArg is the first argument with which the engine's own program is
// started to run ProbeHelper.
const ProbeHelperArg = "probe-helper"

// selfTestFile begins the names of the files that self-tests open.
const selfTestFile = "selftest-"

// SelfTest proves that the scope is enforced: a helper process enters the cgroup
// and opens a file that only this test knows; the open must be refused, be
// recorded for this scope, and have found the row that the policy's automaton has
// for its path. Records must be running.
func (k *Kernel) SelfTest(ctx context.Context, slot Slot, cgroup string) error {
	k.mu.Lock()
	known := k.scopes[slot.Index]
	k.mu.Unlock()
	if known.generation != slot.Generation || known.policy == nil {
		return fmt.Errorf("self-test: scope %d was not installed by this process", slot.Index)
	}
	file, err := os.CreateTemp(k.config.RunDir, selfTestFile)
	if err != nil {
		return fmt.Errorf("self-test: %w", err)
	}
	defer os.Remove(file.Name())
	defer file.Close()
	records := make(chan Record, 1)
	k.mu.Lock()
	k.probes[slot] = records
	k.mu.Unlock()
	defer func() {
		k.mu.Lock()
		delete(k.probes, slot)
		k.mu.Unlock()
	}()
	if err := k.setProbe(slot, file.Name()); err != nil {
		return fmt.Errorf("self-test: %w", err)
	}
	defer func() { _ = k.setProbe(slot, "") }()

	refused, err := runHelper(ctx, cgroup, file.Name())
	switch {
	case err != nil:
		return fmt.Errorf("self-test: %w", err)
	case !refused:
		return errors.New("self-test: a forbidden open went through, so this host does not enforce; run \"actplane doctor\"")
	}
	select {
	case record := <-records:
		return checkProbe(record, file.Name(), known.policy)
	case <-ctx.Done():
		return errors.New("self-test: the denial was not recorded; run \"actplane doctor\"")
	}
}

func checkProbe(record Record, path string, image *dfa.Image) error {
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return fmt.Errorf("self-test: %w", err)
	}
	if record.Object != resolved {
		return fmt.Errorf("self-test: the kernel took %q for %q", resolved, record.Object)
	}
	if want := pathRow(image, resolved); record.Clause != want {
		return fmt.Errorf("self-test: the kernel found row %d for %q, not %d", record.Clause, resolved, want)
	}
	return nil
}

func (k *Kernel) setProbe(slot Slot, path string) error {
	return k.updateFiles(slot, func(files *bpf.EnforcerScopeFiles) error {
		files.Probe = bpf.EnforcerFileId{}
		if path == "" {
			return nil
		}
		var err error
		files.Probe, err = fileID(path)
		return err
	})
}

// answerProbe hands a self-test its record; Clause carries the row.
func (k *Kernel) answerProbe(record Record, row uint32) {
	record.Clause = int(row)
	k.mu.Lock()
	defer k.mu.Unlock()
	if waiting := k.probes[record.Slot]; waiting != nil {
		select {
		case waiting <- record:
		default:
		}
	}
}

// runHelper starts the helper outside of the cgroup, moves it in, lets it open the
// file, and returns whether that was refused. It is moved after its exec, so that
// it is in setup and the policy's own rules do not concern it.
func runHelper(ctx context.Context, cgroup, path string) (refused bool, err error) {
	self, err := os.Executable()
	if err != nil {
		return false, err
	}
	helper := exec.CommandContext(ctx, self, ProbeHelperArg, path)
	helper.Env = []string{}
	stdin, err := helper.StdinPipe()
	if err != nil {
		return false, err
	}
	stdout, err := helper.StdoutPipe()
	if err != nil {
		return false, err
	}
	if err := helper.Start(); err != nil {
		return false, fmt.Errorf("start the helper: %w", err)
	}
	defer func() {
		_ = helper.Process.Kill()
		_ = helper.Wait()
	}()
	answers := bufio.NewReader(stdout)
	if _, err := answers.ReadString('\n'); err != nil {
		return false, fmt.Errorf("wait for the helper: %w", err)
	}
	procs := filepath.Join(cgroup, "cgroup.procs")
	if err := os.WriteFile(procs, []byte(strconv.Itoa(helper.Process.Pid)), 0); err != nil {
		return false, fmt.Errorf("move the helper: %w", err)
	}
	if _, err := io.WriteString(stdin, "go\n"); err != nil {
		return false, fmt.Errorf("tell the helper: %w", err)
	}
	answer, err := answers.ReadString('\n')
	if err != nil {
		return false, fmt.Errorf("hear from the helper: %w", err)
	}
	switch strings.TrimSpace(answer) {
	case "refused":
		return true, nil
	case "opened":
		return false, nil
	default:
		return false, fmt.Errorf("the helper says %q", strings.TrimSpace(answer))
	}
}

// ProbeHelper is what the helper runs: it reports, waits, opens the file that its
// second argument names, and reports again. It returns the exit status.
func ProbeHelper() int {
	if len(os.Args) != 3 {
		return 2
	}
	fmt.Println("ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return 1
	}
	fd, err := unix.Open(os.Args[2], unix.O_RDONLY|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.EPERM):
		fmt.Println("refused")
	case err != nil:
		fmt.Println(err)
	default:
		_ = unix.Close(fd)
		fmt.Println("opened")
	}
	return 0
}
