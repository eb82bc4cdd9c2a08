// SPDX-License-Identifier: Apache-2.0

// Package agentfiles knows which files make coding agents call actplane-guest as
// their hook, and puts the hook into those that are there already: what it does not
// know stays. It reads and writes no files itself; an image's build and the runtime
// have their own ways to.
package agentfiles

import (
	"fmt"
	"slices"
	"strings"
)

// Guest is the program that the hooks run, as containers see it.
const Guest = "/run/actplane/bin/actplane-guest"

// Agent is a coding agent whose hooks can be set up.
type Agent struct {
	Name string
	// Programs are the commands by which a container's image is seen to have it.
	Programs []string
	// Folder is where the agent looks for what holds for all users of a machine, and
	// prompts and projects cannot change; empty if it has no such place.
	Folder string
	Files  []File
	// server is the file by which it starts the server of package feedback/mcp, which
	// may be one of Files; nil: none. See WithMCP.
	server *File
}

// File is one file of an agent's.
type File struct {
	// Path is relative to the agent's Folder, or else to the user's home.
	Path       string
	Executable bool
	// set returns the content with the hook in it, of a file that had the old one; nil
	// stands for no file. Content that has it already comes back as it is.
	set func(old []byte) ([]byte, error)
	// unset takes the hook out again; nil: nothing else was in it.
	unset func(old []byte) ([]byte, error)
}

// Set returns what the file is to hold, given what it holds (nil: it is not there).
func (f File) Set(old []byte) ([]byte, error) { return f.apply(f.set, old) }

// Unset returns the file's content without the hook, nil where nothing is left.
func (f File) Unset(old []byte) ([]byte, error) {
	if old == nil {
		return nil, nil
	}
	return f.apply(f.unset, old)
}

func (f File) apply(change func([]byte) ([]byte, error), old []byte) ([]byte, error) {
	changed, err := change(old)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path, err)
	}
	return changed, nil
}

// Find finds the agents of a list of names, such as "claude,codex", each once. The
// word "auto" stands for those that installed says are there.
func Find(list string, installed func(program string) bool) ([]Agent, error) {
	var found []Agent
	add := func(agent Agent) {
		if !slices.ContainsFunc(found, func(other Agent) bool { return other.Name == agent.Name }) {
			found = append(found, agent)
		}
	}
	known := Agents()
	for _, name := range strings.Split(list, ",") {
		name = strings.TrimSpace(name)
		if name == "auto" {
			for _, agent := range known {
				if slices.ContainsFunc(agent.Programs, installed) {
					add(agent)
				}
			}
			continue
		}
		i := slices.IndexFunc(known, func(agent Agent) bool { return agent.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("unknown agent %q; there are auto, %s", name, strings.Join(Names(), ", "))
		}
		add(known[i])
	}
	return found, nil
}

// Names are those of all agents.
func Names() []string {
	var names []string
	for _, agent := range Agents() {
		names = append(names, agent.Name)
	}
	return names
}

// command is what an agent runs. A container without ActPlane has no such program, and
// there the hook must be silent as well: Copilot CLI withholds a tool's result else.
func command(agent string) string {
	return "[ -x " + Guest + " ] && " + Guest + " hook --agent " + agent + "; exit 0"
}

// isOurs tells whether a hook's command is one that was set up here, or by hand in the
// same words.
func isOurs(command string) bool { return strings.Contains(command, Guest+" hook ") }
