// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/actplane/actplane/internal/version"
	"github.com/actplane/actplane/shim/prepare"
)

// checkGuest looks at the program that is mounted into containers of any image.
func checkGuest(*cli.Context) finding {
	self, err := os.Executable()
	if err != nil {
		return finding{warn, "guest", err.Error(), ""}
	}
	path := filepath.Join(filepath.Dir(self), "actplane-guest")
	program, err := elf.Open(path)
	if err != nil {
		return finding{warn, "guest", "no program " + path + ": agents get no hook", "actplane install"}
	}
	defer program.Close()
	for _, part := range program.Progs {
		if part.Type == elf.PT_INTERP {
			return finding{warn, "guest", path + " is linked dynamically and does not run in every image", "build it with CGO_ENABLED=0"}
		}
	}
	return finding{good, "guest", path + ", static", ""}
}

// checkPrograms compares the versions of the programs that belong together.
func checkPrograms(c *cli.Context) []finding {
	self, err := os.Executable()
	if err != nil {
		return []finding{{warn, "programs", err.Error(), ""}}
	}
	directory := filepath.Dir(self)
	var out []finding
	var other, missing []string
	for _, name := range requiredPrograms {
		path := filepath.Join(directory, name)
		if _, err := os.Stat(path); err != nil {
			missing = append(missing, name)
		} else if v := versionOf(c.Context, path); v != "" && v != version.String() {
			other = append(other, name+" "+v)
		}
	}
	if len(missing) > 0 {
		out = append(out, finding{warn, "programs", fmt.Sprintf("beside this program there is no %s", strings.Join(missing, ", ")), "sudo actplane install"})
	}
	if len(other) > 0 {
		out = append(out, finding{warn, "programs", fmt.Sprintf("this is %s, and beside it are %s", version.String(), strings.Join(other, ", ")), "install all of one version"})
	}
	for _, place := range []string{"/usr/local/bin", "/usr/bin"} {
		if second := filepath.Join(place, "actplane"); place != directory && isAnother(second, self) {
			out = append(out, finding{warn, "programs", fmt.Sprintf("this is %s, and there is %s too", self, second), "keep one: " + removalOf(place)})
		}
	}
	if len(out) == 0 {
		out = append(out, finding{good, "programs", fmt.Sprintf("in %s, all of version %s", directory, version.String()), ""})
	}
	return out
}

func isAnother(path, self string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	own, err := os.Stat(self)
	return err == nil && !os.SameFile(info, own)
}

func removalOf(place string) string {
	if place == "/usr/bin" {
		return "apt-get remove actplane"
	}
	return "sudo " + place + "/actplane uninstall"
}

// versionFlag asks a program of ours for its version. Those that stand for a runtime
// hand --version on to it.
const versionFlag = "--actplane-version"

// versionOf is "" if a program does not tell.
func versionOf(ctx context.Context, path string) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, versionFlag).Output()
	if err != nil || strings.Count(string(out), "\n") != 1 {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// checkNextRuntime looks for the runtime that ours hands containers on to.
func checkNextRuntime(*cli.Context) finding {
	path := prepare.DefaultHost().Config
	config, err := prepare.LoadConfig(path)
	if err != nil {
		return finding{warn, "runtime", "the next runtime is not known: " + err.Error(), ""}
	}
	for _, name := range config.Runtimes {
		if found, err := exec.LookPath(name); err == nil {
			return finding{good, "runtime", "containers are handed on to " + found, ""}
		}
	}
	return finding{warn, "runtime", fmt.Sprintf("none of %s is here: no container can start", strings.Join(config.Runtimes, ", ")), "install runc, or name another under runtimes in " + path}
}
