// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Unit is the name of the daemon's systemd service.
const Unit = "actplaned.service"

// unit is a daemon that systemd starts. It keeps the time of the last question,
// since a question costs a process.
type unit struct {
	asked time.Time
}

const askInterval = 500 * time.Millisecond

// unitInstalled says whether systemd runs here and has the unit.
func unitInstalled() bool {
	if info, err := os.Stat("/run/systemd/system"); err != nil || !info.IsDir() {
		return false
	}
	for _, directory := range []string{
		"/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system",
		"/usr/lib/systemd/system", "/lib/systemd/system",
	} {
		if _, err := os.Stat(directory + "/" + Unit); err == nil {
			return true
		}
	}
	return false
}

// startUnit asks for a start and does not wait for the job: at boot a container
// may be started by a service that the unit is ordered after.
func startUnit(ctx context.Context) (*unit, error) {
	daemon := &unit{asked: time.Now()}
	output, err := systemctl(ctx, "start", "--no-block", Unit)
	if err != nil {
		return nil, &NotStarted{Reason: "systemctl start: " + output, Next: daemon.hint()}
	}
	return daemon, nil
}

func (u *unit) hint() string { return "systemctl status actplaned" }

// stop does nothing: the unit belongs to the host.
func (u *unit) stop() {}

func (u *unit) failed() error {
	if time.Since(u.asked) < askInterval {
		return nil
	}
	u.asked = time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), statusTimeout)
	defer cancel()
	state, err := systemctl(ctx, "show", "--property=ActiveState,SubState", Unit)
	if err != nil || !strings.Contains(state, "ActiveState=failed") && !strings.Contains(state, "SubState=auto-restart") {
		return nil
	}
	journal := exec.CommandContext(ctx, "journalctl", "--unit="+Unit, "--lines=20", "--output=cat",
		"--no-pager", "_COMM=actplaned")
	journal.Env = commandEnv()
	if output, err := journal.Output(); err == nil {
		lines := strings.Split(strings.TrimSpace(string(output)), "\n")
		if words := message(lines[len(lines)-1]); words != "" {
			return errors.New(words)
		}
	}
	return errors.New("its unit has failed")
}

// systemctl returns what the command says, on one line.
func systemctl(ctx context.Context, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "systemctl", append([]string{"--no-ask-password"}, args...)...)
	command.Env = commandEnv()
	restore := sealFiles()
	defer restore()
	output, err := command.CombinedOutput()
	return strings.Join(strings.Fields(string(output)), " "), err
}

func commandEnv() []string {
	return []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"}
}
