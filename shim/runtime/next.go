// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/actplane/actplane/shim/prepare"
)

// loopGuard is set for the next runtime: one that calls this program again, as
// its own next runtime, would do so for ever.
const loopGuard = "_ACTPLANE_RUNTIME"

// next becomes the next runtime with the command line as it is.
func (p *Program) next() error {
	path, err := p.findNext()
	if err != nil {
		return err
	}
	return p.become(path)
}

func (p *Program) become(path string) error {
	argv := append([]string{filepath.Base(path)}, p.Args...)
	err := p.Exec(path, argv, append(p.Env[:len(p.Env):len(p.Env)], loopGuard+"="+path))
	return fmt.Errorf("run next runtime %q: %w", path, err)
}

// findNext finds the first of the host's runtimes that exists and is not this
// program.
func (p *Program) findNext() (string, error) {
	if path, looping := p.variable(loopGuard); looping {
		return "", fmt.Errorf("the next runtime %q calls actplane-runtime again; take it out of runtimes in %s, or actplane-runtime out of its own configuration", path, p.Host.Config)
	}
	config, err := prepare.LoadConfig(p.Host.Config)
	if err != nil {
		return "", err
	}
	var self os.FileInfo
	if path, err := os.Executable(); err == nil {
		self, _ = os.Stat(path)
	}
	for _, name := range config.Runtimes {
		for _, candidate := range p.candidates(name) {
			info, err := os.Stat(candidate)
			if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
				continue
			}
			if self != nil && os.SameFile(self, info) {
				continue
			}
			return candidate, nil
		}
	}
	return "", fmt.Errorf("no next runtime found: none of %s is in PATH; install runc, or name another under runtimes in %s",
		strings.Join(config.Runtimes, ", "), p.Host.Config)
}

// candidates are the paths that a runtime's name stands for. Services have short
// PATHs, so that the usual folders come after it.
func (p *Program) candidates(name string) []string {
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			return nil // would depend on the bundle's directory
		}
		return []string{name}
	}
	path, _ := p.variable("PATH")
	directories := append(filepath.SplitList(path),
		"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
	var list []string
	for _, directory := range directories {
		if filepath.IsAbs(directory) {
			list = append(list, filepath.Join(directory, name))
		}
	}
	return list
}

func (p *Program) variable(name string) (string, bool) {
	for _, entry := range p.Env {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value, true
		}
	}
	return "", false
}
