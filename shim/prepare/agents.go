// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/internal/agentfiles"
	"github.com/actplane/actplane/internal/atomicfile"
	"github.com/actplane/actplane/internal/bundle"
)

// Bounds of what an image's folder of an agent may hold, since it is copied.
const (
	maxAgentFiles = 256
	maxAgentBytes = 4 << 20
	maxAgentDepth = 4
	// maxPathFolders bounds where programs are looked for: the image sets PATH.
	maxPathFolders = 64
)

// agentFolder is a folder of an agent's as the container is to see it: what is there,
// with the hook put into it.
type agentFolder struct {
	agent string
	path  string            // in the container
	files map[string][]byte // by path below it
}

// agentFolders makes up the folders of the agents that are asked for. They hold for
// all users of the container; of agents without such a folder nothing can be made up
// from outside. Of an agent that was found, and not named, trouble is but a warning.
func (c containerFiles) agentFolders(list string, mcp bool) (folders []agentFolder, warnings []string, err error) {
	if list == "" {
		return nil, nil, nil
	}
	agents, err := agentfiles.Find(list, c.installed)
	if err != nil {
		return nil, nil, err
	}
	for _, agent := range agents {
		if agent.Folder == "" && !named(list, agent.Name) {
			continue // the image may have done it
		}
		if mcp {
			with, there := agent.WithMCP()
			if agent = with; !there && named(list, agent.Name) {
				warnings = append(warnings, fmt.Sprintf("agent %s gets its hook and no MCP server: no place for that is known", agent.Name))
			}
		}
		folder, err := c.agentFolder(agent)
		switch {
		case err == nil:
			folders = append(folders, folder)
		case named(list, agent.Name):
			return nil, nil, fmt.Errorf("hooks of agent %s: %w", agent.Name, err)
		default:
			warnings = append(warnings, fmt.Sprintf("hooks of agent %s are not set up: %v", agent.Name, err))
		}
	}
	return folders, warnings, nil
}

// agentHooks are the folders that a container's settings ask for. Without feedback a hook
// would have nothing to tell; who asks for both should know.
func (c containerFiles) agentHooks(settings *settings) (folders []agentFolder, warnings []string, err error) {
	list := strings.Join(settings.agents, ",")
	if settings.feedback != feedbackNone || list == "" {
		return c.agentFolders(list, settings.mcp)
	}
	if _, err := agentfiles.Find(list, func(string) bool { return false }); err != nil {
		return nil, nil, err
	}
	return nil, []string{"no hooks of agents are set up, since its feedback is none"}, nil
}

func named(list, name string) bool {
	for _, word := range strings.Split(list, ",") {
		if strings.TrimSpace(word) == name {
			return true
		}
	}
	return false
}

// searched are the folders of the container's PATH, as many as are looked at.
func (c containerFiles) searched() []string {
	folders := "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	for _, entry := range c.spec.env {
		if value, found := strings.CutPrefix(entry, "PATH="); found {
			folders = value
		}
	}
	list := filepath.SplitList(folders)
	return list[:min(len(list), maxPathFolders)]
}

// installed looks for a program in the folders of the container's PATH.
func (c containerFiles) installed(program string) bool {
	for _, folder := range c.searched() {
		name := path.Join("/", folder, program)
		mount, mounted := mountOf(c.spec.mounts, name)
		if mounted && !isBind(mount) {
			continue
		}
		base, below := c.place(mount, mounted, name)
		// The link, if it is one: where it leads to, only the container knows.
		if found, err := thereIs(base, path.Dir(below), path.Base(below)); err == nil && found {
			return true
		}
	}
	return false
}

// thereIs tells whether a folder below another has an entry that is no folder.
func thereIs(base, below, entry string) (bool, error) {
	fd, err := openFolder(base, below, unix.RESOLVE_IN_ROOT)
	if err != nil {
		return false, err
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	if err := unix.Fstatat(fd, entry, &stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return false, err
	}
	return stat.Mode&unix.S_IFMT != unix.S_IFDIR, nil
}

func openFolder(base, below string, resolve uint64) (int, error) {
	directory, err := unix.Open(base, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil || below == "" || below == "." {
		return directory, err
	}
	defer unix.Close(directory)
	return openBeneath(directory, below, resolve)
}

// agentFolder copies what the container has there and puts the hook into it.
func (c containerFiles) agentFolder(agent agentfiles.Agent) (agentFolder, error) {
	folder := agentFolder{agent: agent.Name, path: agent.Folder, files: map[string][]byte{}}
	if agent.Folder == "" {
		return folder, fmt.Errorf("they are in the user's home, where only the image can put them: run \"actplane-guest setup --agent %s\" in it", agent.Name)
	}
	// Mounted behind a link it would cover something else.
	if err := c.straight(agent.Folder); err != nil {
		return folder, err
	}
	mount, mounted := mountOf(c.spec.mounts, agent.Folder)
	if !mounted || isBind(mount) {
		base, below := c.place(mount, mounted, agent.Folder)
		if err := copyFolder(base, below, folder.files); err != nil {
			return folder, fmt.Errorf("%s: %w", agent.Folder, err)
		}
	}
	// Mounts of single files there, which ours will cover.
	for _, mount := range c.spec.mounts {
		name, below := strings.CutPrefix(destination(mount), agent.Folder+"/")
		if !below {
			continue
		}
		found, err := c.read(destination(mount), inside)
		if err != nil {
			return folder, fmt.Errorf("mount %q in %s: %w", name, agent.Folder, err)
		}
		folder.files[name] = found.text
	}
	for _, file := range agent.Files {
		old, there := folder.files[file.Path]
		if !there {
			old = nil
		}
		content, err := file.Set(old)
		if err != nil {
			return folder, fmt.Errorf("%s: %w", agent.Folder, err)
		}
		folder.files[file.Path] = content
	}
	return folder, nil
}

// copyFolder reads all files below a folder, within the bounds; one that is not there
// is empty.
func copyFolder(base, below string, files map[string][]byte) error {
	size := 0
	var walk func(below, name string, depth int) error
	walk = func(below, name string, depth int) error {
		entries, err := entriesOf(base, below)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) && depth > 0 {
			return nil
		}
		if err != nil {
			return err
		}
		for _, entry := range entries {
			name, below := path.Join(name, entry.Name()), path.Join(below, entry.Name())
			if entry.IsDir() {
				if depth == maxAgentDepth {
					return fmt.Errorf("its folders are more than %d deep", maxAgentDepth)
				}
				if err := walk(below, name, depth+1); err != nil {
					return err
				}
				continue
			}
			text, _, err := readBeneath(base, below, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_SYMLINKS)
			if err != nil {
				return fmt.Errorf("%q: %w", name, err)
			}
			files[name] = text
			if size += len(text); size > maxAgentBytes || len(files) > maxAgentFiles {
				return fmt.Errorf("it holds more than %d files or %d MiB", maxAgentFiles, maxAgentBytes>>20)
			}
		}
		return nil
	}
	return walk(below, "", 0)
}

// entriesOf lists a folder, and follows no link on the way there.
func entriesOf(base, below string) ([]os.DirEntry, error) {
	fd, err := openFolder(base, below, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_SYMLINKS)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	// Nothing but a folder is opened: a FIFO would wait.
	folder, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", fd), os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	defer folder.Close()
	entries, err := folder.ReadDir(maxAgentFiles + 1)
	if err != nil && !errors.Is(err, io.EOF) { // EOF: it is empty
		return nil, err
	}
	if len(entries) > maxAgentFiles {
		return nil, fmt.Errorf("it holds more than %d files", maxAgentFiles)
	}
	return entries, nil
}

// writeAgents lays the folders beside the scope's other files, and says how they are
// mounted: read-only, since who is root in the container may write all else.
func writeAgents(directory string, folders []agentFolder) ([]specs.Mount, error) {
	var mounts []specs.Mount
	for _, folder := range folders {
		root := filepath.Join(directory, "agents", folder.agent)
		if err := folder.write(root); err != nil {
			return nil, fmt.Errorf("write hooks of agent %s: %w", folder.agent, err)
		}
		mounts = append(mounts, specs.Mount{
			Destination: folder.path, Type: "bind", Source: root,
			Options: []string{"bind", "ro", "nosuid", "nodev", "noexec", "rprivate"},
		})
	}
	return mounts, nil
}

// write lays the folder down for all users to read, whatever the umask is.
func (f agentFolder) write(root string) error {
	for name, text := range f.files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := atomicfile.Write(file, text, atomicfile.Options{Mode: 0o644}); err != nil {
			return err
		}
	}
	return filepath.WalkDir(filepath.Dir(root), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		return os.Chmod(name, 0o755)
	})
}

// mountAgents mounts the folders behind all that is there.
func mountAgents(mounts []specs.Mount) modifier {
	return modifier{"mount agents' hooks", "", func(root bundle.Object) error {
		for _, mount := range mounts {
			if err := root.Append("mounts", mount); err != nil {
				return err
			}
		}
		return nil
	}}
}
