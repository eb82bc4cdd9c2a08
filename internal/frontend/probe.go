// SPDX-License-Identifier: Apache-2.0

package frontend

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// A throw-away container needs no image: its root is an empty folder, and its program is
// the one that the runtime mounts into every container.
const (
	probeVariable = "ACTPLANE_POLICY"
	probePolicy   = "version: 1\npolicy: |\n  rule probe: block exec \"/nothing\"\n"
	probeTime     = 2 * time.Minute
)

var probeFolders = []string{"run", "proc", "sys", "dev", "etc", "tmp"}

var probeCommand = []string{"/run/actplane/bin/actplane-guest", "status"}

// Probe is how a container is tried.
type Probe struct {
	// Able tells why this host cannot enforce a policy, or nil.
	Able func(ctx context.Context) error
}

// run starts what command makes of a root folder. The container ends with 0 if its
// policy is enforced.
func (p Probe) run(ctx context.Context, command func(ctx context.Context, root string) *exec.Cmd) error {
	if err := p.able(ctx); err != nil {
		return err
	}
	root, err := os.MkdirTemp("", "actplane-probe-")
	if err != nil {
		return fmt.Errorf("make a root folder: %w", err)
	}
	defer os.RemoveAll(root)
	for _, name := range probeFolders {
		if err := os.Mkdir(filepath.Join(root, name), 0o755); err != nil {
			return fmt.Errorf("make a root folder: %w", err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	return told(command(ctx, root))
}

func (p Probe) able(ctx context.Context) error {
	if p.Able == nil {
		return nil
	}
	if err := p.Able(ctx); err != nil {
		return &UntriedError{"this host cannot enforce: " + err.Error()}
	}
	return nil
}

// told runs a command; its error has what the command wrote.
func told(command *exec.Cmd) error {
	command.WaitDelay = time.Second
	out, err := command.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return fmt.Errorf("it ended with %d: %s", exit.ExitCode(), oneLine(string(out)))
	}
	return err
}
