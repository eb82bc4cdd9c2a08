// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/policy"
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/pattern"
)

// Bounds of what is warned of: the image may have written the policy.
const (
	maxWarnings = 20 // of the compiler
	maxWarning  = 400
)

// weaknesses tells of the capabilities of a container that take from its policy and are
// left to it; those that are stronger than any policy are in expose.go.
func (l *limits) weaknesses(capabilities []string, program *ir.Program) []string {
	left := func(names ...string) []string {
		return slices.DeleteFunc(names, func(name string) bool {
			return !keeps(l.filters, name) || !slices.ContainsFunc(capabilities, func(c string) bool { return canonical(c) == name })
		})
	}
	const remedy = "start it without, or take it away with limits: {capabilities: {drop: [%s]}} in a policy"
	var found []string
	if has := left("CAP_NET_RAW", "CAP_NET_ADMIN"); len(has) > 0 && governsNetwork(program) {
		found = append(found, fmt.Sprintf("the container has %s, by which its programs can send what no rule on connections sees; "+remedy,
			strings.Join(has, ", "), short(has)))
	}
	return found
}

// short lists capabilities as policies name them.
func short(names []string) string {
	return strings.ReplaceAll(strings.Join(names, ", "), "CAP_", "")
}

func governsNetwork(program *ir.Program) bool {
	return slices.ContainsFunc(program.Clauses, func(c ir.Clause) bool {
		return c.Pos != policy.BuiltIn && c.Effect >= ir.Block && (c.Op == ir.Connect || c.Op == ir.Send)
	})
}

// strayed tells of documents whose workspace will not be there, so that their
// patterns below it match nothing.
func (c containerFiles) strayed(compiled *policy.Policy) []string {
	patterns := filePatterns(compiled.Program)
	var found []string
	for _, workspace := range compiled.Workspaces {
		below := pattern.Literal(workspace.Path) + "/"
		if !slices.ContainsFunc(patterns, func(text string) bool { return strings.HasPrefix(text, below) }) {
			continue
		}
		if why := c.noFolder(workspace.Path); why != "" {
			found = append(found, bounded(fmt.Sprintf("policy %q: patterns below its workspace %q match nothing, because %s; the working directory is %q",
				workspace.Document, workspace.Path, why, c.spec.cwd)))
		}
	}
	return found
}

// noFolder tells why there will be no folder at a path when the container starts,
// and nothing if there will be one, or if that cannot be known yet.
func (c containerFiles) noFolder(name string) string {
	if err := c.straight(name); err != nil {
		return err.Error()
	}
	within := func(path string) bool { return path == name || strings.HasPrefix(path, name+"/") }
	if within(c.spec.cwd) {
		return "" // runc makes it
	}
	for _, mount := range c.spec.mounts {
		if at := destination(mount); within(at) && (at != name || !isBind(mount)) {
			return "" // and it makes this one for the mount
		}
	}
	mount, mounted := mountOf(c.spec.mounts, name)
	if mounted && !isBind(mount) {
		return "" // has what the container puts there
	}
	base, below := c.place(mount, mounted, name)
	folder, err := isFolder(base, below)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return "that does not exist"
	case err != nil:
		return fmt.Sprintf("that cannot be looked at: %v", err)
	case !folder:
		return "that is no folder"
	}
	return ""
}

// isFolder looks at what is below a directory, without following a link.
func isFolder(base, below string) (bool, error) {
	fd, err := unix.Open(base, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return false, err
	}
	defer func() { unix.Close(fd) }()
	if below != "" {
		at, err := openBeneath(fd, below, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_SYMLINKS)
		if err != nil {
			return false, err
		}
		unix.Close(fd)
		fd = at
	}
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return false, err
	}
	return stat.Mode&unix.S_IFMT == unix.S_IFDIR, nil
}

// StrayWorkspaces are sentences on the workspaces of a policy that are not there, for
// what runs in the host's own root directory.
func StrayWorkspaces(compiled *policy.Policy, cwd string) []string {
	return containerFiles{spec: &spec{rootfs: "/", cwd: cwd}}.strayed(compiled)
}

// CompilerWarnings are the compiler's, one sentence for each.
func CompilerWarnings(compiled *policy.Policy) []string {
	var found []string
	for i, warning := range compiled.Warnings {
		if i == maxWarnings {
			return append(found, fmt.Sprintf("%d more warnings; \"actplane check\" shows them", len(compiled.Warnings)-i))
		}
		found = append(found, bounded(warning.String()))
	}
	return found
}

// bounded cuts a sentence that has a container's words in it.
func bounded(sentence string) string {
	if len(sentence) <= maxWarning {
		return sentence
	}
	end := maxWarning
	for !utf8.RuneStart(sentence[end]) {
		end--
	}
	return sentence[:end] + "…"
}
