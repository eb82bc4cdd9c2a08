// SPDX-License-Identifier: Apache-2.0

package frontend

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// ContainerdConfig is where containerd's configuration is.
const ContainerdConfig = "/etc/containerd/config.toml"

// DropIn is the name of the files of ours that front ends read beside their own.
const (
	dropInTOML = "50-actplane.toml"
	dropInConf = "50-actplane.conf"
)

const containerdSocket = "/run/containerd/containerd.sock"

// Containerd is containerd, where it serves the CRI: a runtime handler "actplane" for
// Kubernetes and crictl. Its other clients (ctr, nerdctl) name the runtime themselves
// and need no configuration.
type Containerd struct {
	Programs Programs
	Config   string // its main file
	Named    bool   // the user named the file: then its CRI is taken to be used
	Probe    Probe  // how a container is tried
}

func (c *Containerd) Name() string { return "containerd" }

// sections are the tables of the CRI's runtimes, by the version of the configuration.
var sections = map[int64][]string{
	1: {"plugins", "cri", "containerd", "runtimes"},
	2: {"plugins", "io.containerd.grpc.v1.cri", "containerd", "runtimes"},
	3: {"plugins", "io.containerd.cri.v1.runtime", "containerd", "runtimes"},
}

// containerdFile is one file of its configuration.
type containerdFile struct {
	path    string
	content map[string]any
}

func (f *containerdFile) version() int64 {
	if v, ok := f.content["version"].(int64); ok && v > 0 {
		return v
	}
	return 1
}

func (f *containerdFile) strings(key string) []string {
	list, _ := f.content[key].([]any)
	var out []string
	for _, item := range list {
		if text, ok := item.(string); ok {
			out = append(out, text)
		}
	}
	return out
}

// maxImports bounds the files that are read.
const maxImports = 256

// files reads the main file and what it imports, as containerd does: the main file
// first, without it there are none.
func (c *Containerd) files() ([]*containerdFile, error) {
	var out []*containerdFile
	pending, seen := []string{c.Config}, map[string]bool{}
	for len(pending) > 0 {
		path := pending[0]
		pending = pending[1:]
		if seen[path] {
			continue
		}
		if seen[path] = true; len(seen) > maxImports {
			return nil, fmt.Errorf("%s imports more than %d files", c.Config, maxImports)
		}
		e := &Edit{Path: path}
		if err := e.read(); err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		if e.Before == nil {
			if path == c.Config {
				return nil, nil
			}
			continue
		}
		content, err := decode(e.Before)
		if err != nil {
			return nil, fmt.Errorf("%s:%w; it was not changed", path, err)
		}
		file := &containerdFile{path: path, content: content}
		out = append(out, file)
		for _, pattern := range importsOf(file) {
			matches, _ := filepath.Glob(pattern)
			pending = append(pending, matches...)
		}
	}
	return out, nil
}

func importsOf(file *containerdFile) []string {
	var out []string
	for _, pattern := range file.strings("imports") {
		if !filepath.IsAbs(pattern) {
			pattern = filepath.Join(filepath.Dir(file.path), pattern)
		}
		out = append(out, filepath.Clean(pattern))
	}
	return out
}

// binary is what is known of the program.
func (c *Containerd) binary(ctx context.Context) (version string, here bool) {
	if _, err := exec.LookPath("containerd"); err != nil {
		return "", exists(c.Config)
	}
	out, _ := output(ctx, "containerd", "--version")
	fields := strings.Fields(out) // containerd github.com/containerd/containerd v1.7.24 …
	if len(fields) > 2 {
		version = strings.TrimPrefix(fields[2], "v")
	}
	return version, true
}

// mergesTables tells whether this containerd adds the tables of an imported file to
// those that it has. Before version 2 a plugin's table took the place of all that the
// other files say of that plugin.
func mergesTables(version string) bool {
	return version != "" && !strings.HasPrefix(version, "1.") && !strings.HasPrefix(version, "0.")
}

// disabled tells whether the CRI is switched off.
func disabled(files []*containerdFile) (string, bool) {
	for _, file := range files {
		for _, plugin := range file.strings("disabled_plugins") {
			if plugin == "cri" || plugin == "io.containerd.grpc.v1.cri" || plugin == "io.containerd.cri.v1.runtime" {
				return file.path, true
			}
		}
	}
	return "", false
}

// criUsers are programs that use the CRI.
var criUsers = []string{"kubelet", "crictl", "k0s", "microk8s"}

// needless tells why there is nothing to configure.
func (c *Containerd) needless(files []*containerdFile) (why, hint string) {
	if path, off := disabled(files); off {
		return "its CRI is off (disabled_plugins in " + path + "), and nothing else needs configuration",
			"run --runtime " + c.directRuntime() + ", with ctr and nerdctl"
	}
	if c.Named || slices.ContainsFunc(criUsers, func(name string) bool { _, err := exec.LookPath(name); return err == nil }) {
		return "", ""
	}
	return "nothing here uses its CRI, and nothing else needs configuration",
		"run --runtime " + c.directRuntime() + ", with ctr and nerdctl; for the CRI: actplane install --containerd-config " + c.Config
}

// directRuntime is what ctr and nerdctl take for --runtime.
func (c *Containerd) directRuntime() string {
	if c.hasShim() {
		return "io.containerd.actplane.v2"
	}
	return "io.containerd.runc.v2 --runc-binary " + c.Programs.path(runtimeProgram)
}

// hasShim tells whether the shim is installed, or will be with the other programs.
func (c *Containerd) hasShim() bool {
	return exists(c.Programs.path(shimProgram)) ||
		c.Programs.Source != "" && exists(filepath.Join(c.Programs.Source, shimProgram))
}

// Look implements FrontEnd.
func (c *Containerd) Look(ctx context.Context) State {
	var s State
	if s.Version, s.Here = c.binary(ctx); !s.Here {
		return s
	}
	files, err := c.files()
	if err != nil {
		s.Unfit, s.Remedy = err.Error(), "mend the file; containerd does not start with it"
		return s
	}
	for _, file := range files {
		if table, ok := lookUp(file.content, append(slices.Clone(section(file)), runtimeName)).(map[string]any); ok {
			s.Files = append(s.Files, file.path)
			s.Program = c.program(table)
		}
	}
	if len(s.Files) == 0 {
		if s.Needless, s.Hint = c.needless(files); s.Needless != "" {
			return s
		}
	}
	s.CgroupDriver = "cgroupfs"
	if usesSystemdCgroup(files) {
		s.CgroupDriver = "systemd"
	}
	s.Running, s.Knows, s.Unsure = criKnows(ctx, c.socket(files))
	return s
}

// program is what a runtime's table says is run.
func (c *Containerd) program(table map[string]any) string {
	for _, keys := range [][]string{{"runtime_path"}, {"options", "BinaryName"}} {
		if path, ok := lookUp(table, keys).(string); ok && path != "" {
			return path
		}
	}
	return ""
}

func section(file *containerdFile) []string {
	if keys, ok := sections[file.version()]; ok {
		return keys
	}
	return sections[3]
}

func (c *Containerd) socket(files []*containerdFile) string {
	for _, file := range files {
		if path, ok := lookUp(file.content, []string{"grpc", "address"}).(string); ok && path != "" {
			return path
		}
	}
	return containerdSocket
}

// Plan implements FrontEnd.
func (c *Containerd) Plan(ctx context.Context, remove bool) ([]*Edit, error) {
	files, err := c.files()
	if err != nil {
		return nil, err
	}
	version, _ := c.binary(ctx)
	main := &containerdFile{path: c.Config, content: map[string]any{}}
	if len(files) > 0 {
		main = files[0]
	}
	if main.version() > 3 {
		return nil, fmt.Errorf("%s is of version %d, which this version does not know", c.Config, main.version())
	}
	if remove {
		if err := c.checkDefault(files); err != nil {
			return nil, err
		}
	}
	dropIn := ""
	if !remove {
		dropIn = c.dropIn(files, version)
	}
	var edits []*Edit
	for _, path := range c.places(files) {
		var e *Edit
		ed := c.editor(files, version)
		if path == c.Config {
			e, err = planEdit(path, ed, remove || dropIn != "")
		} else {
			e, err = planDropIn(path, ed, remove || dropIn != path)
		}
		if err != nil {
			return nil, err
		}
		edits = append(edits, e)
	}
	// What comes in goes first: at no time is the runtime in none of the files.
	slices.SortStableFunc(edits, func(a, b *Edit) int {
		switch {
		case a.removing == b.removing:
			return 0
		case b.removing:
			return -1
		}
		return 1
	})
	return edits, nil
}

func (c *Containerd) checkDefault(files []*containerdFile) error {
	for _, file := range files {
		keys := append(slices.Clone(section(file)[:3]), "default_runtime_name")
		if lookUp(file.content, keys) == runtimeName {
			return fmt.Errorf("%s: \"default_runtime_name\" is actplane, and containerd's CRI would not start without it; change that first", file.path)
		}
	}
	return nil
}

// places are the files in which our table can be.
func (c *Containerd) places(files []*containerdFile) []string {
	places := []string{c.Config}
	for _, file := range files {
		for _, pattern := range importsOf(file) {
			directory, name := filepath.Split(pattern)
			if ok, _ := filepath.Match(name, dropInTOML); !ok || strings.ContainsAny(directory, "*?[") {
				continue
			}
			if path := directory + dropInTOML; !slices.Contains(places, path) {
				places = append(places, path)
			}
		}
	}
	return places
}

// dropIn is the file beside the main one that can take our table; "" if there is none.
func (c *Containerd) dropIn(files []*containerdFile, version string) string {
	places := c.places(files)
	if len(places) == 1 {
		return ""
	}
	if mergesTables(version) {
		return places[1]
	}
	for _, file := range files {
		if file.path != places[1] && lookUp(file.content, section(file)[:2]) != nil {
			return "" // it would replace what that file says
		}
	}
	return places[1]
}

// editor adds our table. A file of our own has to be of the same version as the main one.
func (c *Containerd) editor(files []*containerdFile, version string) *block {
	v := int64(2)
	if mergesTables(version) {
		v = 3
	}
	if len(files) > 0 && len(files[0].content) > 0 {
		v = files[0].version()
	}
	b := &block{table: append(slices.Clone(sections[v]), runtimeName)}
	header := tableHeader(b.table)
	if v > 1 {
		b.version = v
	}
	options := map[string]any{}
	value := map[string]any{
		"runtime_type":          "io.containerd.runc.v2",
		"pod_annotations":       []any{"dev.actplane.*"},
		"container_annotations": []any{"dev.actplane.*"},
	}
	if c.hasShim() {
		value["runtime_type"] = "io.containerd.actplane.v2"
		if !onServicePath(c.Programs.Directory) {
			value["runtime_path"] = c.Programs.path(shimProgram)
		}
	} else {
		options["BinaryName"] = c.Programs.path(runtimeProgram)
	}
	if usesSystemdCgroup(files) {
		options["SystemdCgroup"] = true
	}
	b.body += tableText(header, value)
	if len(options) > 0 {
		b.body += tableText(tableHeader(append(slices.Clone(b.table), "options")), options)
		value["options"] = options
	}
	b.value = value
	return b
}

// onServicePath tells whether systemd's services find programs in a folder.
func onServicePath(directory string) bool {
	return slices.Contains([]string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}, directory)
}

// usesSystemdCgroup tells what the other runtimes do: the kubelet's cgroup paths are in
// one form or the other for all of them.
func usesSystemdCgroup(files []*containerdFile) bool {
	for _, file := range files {
		runtimes, _ := lookUp(file.content, section(file)).(map[string]any)
		for name := range runtimes {
			if name != runtimeName && lookUp(runtimes, []string{name, "options", "SystemdCgroup"}) == true {
				return true
			}
		}
	}
	return false
}

// Apply implements FrontEnd.
func (c *Containerd) Apply(_ context.Context, edits []*Edit) error { return applyAll(edits) }

// Settle implements FrontEnd.
func (c *Containerd) Settle(ctx context.Context, want, restart bool) (string, error) {
	files, err := c.files()
	if err != nil {
		return "", err
	}
	return settleCRI(ctx, "containerd", c.socket(files), want, restart)
}

// Try implements FrontEnd.
func (c *Containerd) Try(ctx context.Context) error {
	if _, err := exec.LookPath("ctr"); err != nil {
		return &UntriedError{"there is no ctr"}
	}
	return c.Probe.run(ctx, func(ctx context.Context, root string) *exec.Cmd {
		runtime := []string{"--runtime", "io.containerd.actplane.v2"}
		if !c.hasShim() {
			runtime = []string{"--runtime", "io.containerd.runc.v2", "--runc-binary", c.Programs.path(runtimeProgram)}
		}
		args := append([]string{"--namespace", "actplane-probe", "run", "--rm"}, runtime...)
		args = append(args, "--env", probeVariable+"="+probePolicy, "--rootfs", root, fmt.Sprintf("actplane-probe-%d", os.Getpid()))
		return exec.CommandContext(ctx, "ctr", append(args, probeCommand...)...)
	})
}

func applyAll(edits []*Edit) error {
	var errs []error
	for _, e := range edits {
		errs = append(errs, e.apply())
	}
	return errors.Join(errs...)
}
