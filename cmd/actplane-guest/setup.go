// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/actplane/actplane/feedback"
	"github.com/actplane/actplane/internal/agentfiles"
	"github.com/actplane/actplane/internal/atomicfile"
)

// maxSettings bounds an agent's file that is read, in bytes.
const maxSettings = 4 << 20

// setupOptions are setup's flags.
type setupOptions struct {
	agents        string
	root          string
	print, remove bool
	mcp           bool
}

// setup writes the files by which agents call this program.
func (g guest) setup(args []string) int {
	flags := flag.NewFlagSet("setup", flag.ContinueOnError)
	var options setupOptions
	flags.StringVar(&options.agents, "agent", "", "")
	flags.StringVar(&options.root, "root", "/", "")
	flags.BoolVar(&options.print, "print", false, "")
	flags.BoolVar(&options.remove, "remove", false, "")
	flags.BoolVar(&options.mcp, "mcp", false, "")
	if code, ok := g.parse(flags, args); !ok {
		return code
	}
	agents, err := agentfiles.Find(options.agents, func(program string) bool { return g.installed(options.root, program) })
	switch {
	case options.agents == "":
		err = fmt.Errorf("name the agents with --agent; there are auto, %s", strings.Join(agentfiles.Names(), ", "))
	case options.print && options.remove:
		err = errors.New("--print and --remove exclude each other")
	}
	if err != nil {
		fmt.Fprintf(g.err, "actplane-guest setup: %v\n", err)
		return exitUsage
	}
	if len(agents) == 0 {
		fmt.Fprintln(g.err, "actplane-guest setup: there is no agent that it knows")
		return exitEnvironment
	}
	for _, agent := range agents {
		if options.mcp || options.remove { // whichever of the two is there
			with, there := agent.WithMCP()
			if agent = with; !there && !options.remove {
				fmt.Fprintf(g.err, "actplane-guest setup: %s has no place for MCP servers of all users that is known; its hook alone is set up\n", agent.Name)
			}
		}
		if err := g.setupAgent(agent, options); err != nil {
			fmt.Fprintf(g.err, "actplane-guest setup: %s: %s\n", agent.Name, feedback.Printable(err.Error()))
			return exitEnvironment
		}
	}
	return exitOK
}

// installed looks for a program in the folders of PATH, in a root.
func (g guest) installed(root, program string) bool {
	for _, folder := range filepath.SplitList(g.path) {
		info, err := os.Lstat(filepath.Join(root, folder, program))
		if err == nil && !info.IsDir() {
			return true
		}
	}
	return false
}

// setupAgent does an agent's files, or none of them: each is made up before the first
// is written.
func (g guest) setupAgent(agent agentfiles.Agent, options setupOptions) error {
	folder := agent.Folder
	if folder == "" {
		if !filepath.IsAbs(g.home) {
			return errors.New("its files are in the user's home, and HOME does not say where that is")
		}
		folder = g.home
	}
	var changes []func() error
	for _, file := range agent.Files {
		path := filepath.Join(options.root, folder, file.Path)
		old, err := readSettings(path)
		if err != nil {
			return err
		}
		change := file.Set
		if options.remove {
			change = file.Unset
		}
		content, err := change(old)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if options.print {
			fmt.Fprintf(g.out, "# %s\n%s\n", feedback.Printable(path), feedback.Printable(string(content)))
			continue
		}
		changes = append(changes, func() error { return g.write(path, old, content, file.Executable) })
	}
	for _, change := range changes {
		if err := change(); err != nil {
			return err
		}
	}
	return nil
}

// readSettings is a file's content, nil if it is not there.
func readSettings(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxSettings+1))
	if err == nil && len(text) > maxSettings {
		err = fmt.Errorf("%s is larger than %d MiB", path, maxSettings>>20)
	}
	if text == nil {
		text = []byte{}
	}
	return text, err
}

// write puts the content in the place of the old one; nil stands for no file.
func (g guest) write(path string, old, content []byte, executable bool) error {
	word := "wrote"
	switch {
	case content == nil && old == nil || content != nil && old != nil && bytes.Equal(old, content):
		word = "unchanged"
	case content == nil:
		if err := os.Remove(path); err != nil {
			return err
		}
		word = "removed"
	default:
		if err := replace(path, content, executable); err != nil {
			return err
		}
	}
	fmt.Fprintf(g.out, "%-9s %s\n", word, feedback.Printable(path))
	return nil
}

// replace keeps the mode and the owner of a file that is there, and the link to it.
func replace(path string, content []byte, executable bool) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	options := atomicfile.Options{Mode: 0o644}
	if executable {
		options.Mode = 0o755
	}
	if info, err := os.Stat(path); err == nil {
		options.Mode |= uint32(info.Mode().Perm())
	}
	return atomicfile.Write(path, content, options)
}
