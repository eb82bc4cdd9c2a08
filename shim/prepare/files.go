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
	"slices"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/policy"
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/pattern"
)

// containerFiles reads files by the paths that they will have in the container,
// from the host's side of its mounts. Links lead nowhere out of a mount.
type containerFiles struct{ spec *spec }

// resolveTries is how often the kernel may say that a rename was in the way.
const resolveTries = 32

// read returns the policy at a path in the container, or fs.ErrNotExist. A file
// that comes with the image is the image's, whoever names it.
func (c containerFiles) read(name string, from layer) (document, error) {
	if strings.ContainsRune(name, 0) {
		return document{}, errors.New("the path has a NUL in it")
	}
	mount, mounted := mountOf(c.spec.mounts, name)
	if mounted && !isBind(mount) {
		return document{}, fmt.Errorf("it is on a mount of type %q, which has no files before the container runs: %w", mount.Type, fs.ErrNotExist)
	}
	resolve := uint64(unix.RESOLVE_BENEATH)
	if !mounted {
		from, resolve = inside, unix.RESOLVE_IN_ROOT
	}
	base, below := c.place(mount, mounted, name)
	text, behind, err := readBeneath(base, below, resolve)
	if err != nil {
		return document{}, err
	}
	found := document{name: name, check: filepath.Join(base, below), text: text, layer: from,
		signature: func() ([]byte, error) { return c.readSignature(name) }}
	if !mounted {
		found.origins = []string{fromImage}
	}
	if mounted {
		if err := c.straight(destination(mount)); err != nil {
			return document{}, err
		}
		found.behind = path.Join(destination(mount), behind)
	}
	return found, nil
}

// place is where on the host a path of the container is: a directory that is not
// the container's to change, and the path below it.
func (c containerFiles) place(mount specs.Mount, mounted bool, name string) (base, below string) {
	if !mounted {
		return c.spec.rootfs, strings.TrimPrefix(name, "/")
	}
	base = mount.Source
	if !filepath.IsAbs(base) {
		base = filepath.Join(c.spec.bundle, base)
	}
	return base, strings.TrimPrefix(strings.TrimPrefix(name, destination(mount)), "/")
}

// straight refuses a path on whose way there will be a symbolic link in the
// container. What is mounted there or named by it has another path in the kernel,
// so that no pattern finds it: an image could lead a mount out of its policy.
func (c containerFiles) straight(name string) error {
	for end := 1; end <= len(name); end++ {
		if end < len(name) && name[end] != '/' {
			continue
		}
		at := name[:end]
		// What is mounted at this very path covers what the runtime looks up there.
		others := slices.DeleteFunc(slices.Clone(c.spec.mounts), func(m specs.Mount) bool { return destination(m) == at })
		mount, mounted := mountOf(others, at)
		if mounted && !isBind(mount) {
			continue
		}
		base, below := c.place(mount, mounted, at)
		link, err := hasLink(base, below)
		if err != nil {
			return err
		}
		if link {
			return fmt.Errorf("%q is a symbolic link, and policies go by the path behind it; use that path", at)
		}
	}
	return nil
}

// hasLink tells whether there is a symbolic link on a path below a directory.
func hasLink(base, below string) (bool, error) {
	if below == "" {
		return false, nil
	}
	directory, err := unix.Open(base, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err == nil {
		defer unix.Close(directory)
		var fd int
		if fd, err = openBeneath(directory, below, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_SYMLINKS); err == nil {
			unix.Close(fd)
		}
	}
	switch {
	case err == nil, errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return false, nil
	case errors.Is(err, unix.ELOOP):
		return true, nil
	}
	return false, &fs.PathError{Op: "look for links on", Path: filepath.Join(base, below), Err: err}
}

// redirected refuses directories that are mounted behind a link of the image and
// that the policy has patterns for.
func (c containerFiles) redirected(program *ir.Program) error {
	patterns := filePatterns(program)
	for _, mount := range c.spec.mounts {
		at := pattern.Literal(destination(mount))
		named := slices.ContainsFunc(patterns, func(text string) bool { return text == at || strings.HasPrefix(text, at+"/") })
		info, err := os.Stat(mount.Source)
		if !named || !isBind(mount) || err != nil || !info.IsDir() {
			continue // the policy may name a socket by both of its paths
		}
		if err := c.straight(destination(mount)); err != nil {
			return fmt.Errorf("mount %q: %w", destination(mount), err)
		}
	}
	return nil
}

// filePatterns are the texts of all patterns of the documents that may be paths.
func filePatterns(program *ir.Program) []string {
	var all []string
	add := func(p ir.Pattern) { all = append(all, strings.TrimPrefix(p.Text, "unix:")) }
	for _, source := range program.Sources {
		add(source.Pattern)
	}
	for _, lineage := range program.Lineages {
		add(lineage)
	}
	for _, gate := range program.Gates {
		for _, event := range append([]ir.Event{gate.After}, gate.Since...) {
			add(event.Pattern)
		}
	}
	for _, clause := range program.Clauses {
		if clause.Pos == policy.BuiltIn {
			continue
		}
		add(clause.Pattern)
		for _, target := range clause.Unless.Targets {
			add(target.Pattern)
		}
	}
	return all
}

func destination(mount specs.Mount) string { return path.Clean("/" + mount.Destination) }

// mountOf finds the mount on which a path will be. Later mounts cover earlier
// ones, so that the last one whose destination is a prefix is it; container
// managers sort them by depth, and then it is the longest one.
func mountOf(mounts []specs.Mount, name string) (specs.Mount, bool) {
	for _, mount := range slices.Backward(mounts) {
		at := destination(mount)
		if at == "/" || name == at || strings.HasPrefix(name, at+"/") {
			return mount, true
		}
	}
	return specs.Mount{}, false
}

func isBind(mount specs.Mount) bool {
	return mount.Type == "bind" || slices.Contains(mount.Options, "bind") || slices.Contains(mount.Options, "rbind")
}

// readBeneath reads a regular file below a directory, and tells its path without
// links; with an empty path the base is the file.
func readBeneath(base, below string, resolve uint64) (text []byte, behind string, err error) {
	// O_PATH opens nothing yet: a FIFO cannot hang it, a device does not notice.
	fd, err := unix.Open(base, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, "", &fs.PathError{Op: "open", Path: base, Err: err}
	}
	defer func() { unix.Close(fd) }()
	if below != "" {
		file, err := openBeneath(fd, below, resolve)
		if err != nil {
			return nil, "", explain(err, filepath.Join(base, below))
		}
		behind = below
		if root, path := linkless(fd), linkless(file); root != "" {
			if rest, ok := strings.CutPrefix(path, strings.TrimSuffix(root, "/")+"/"); ok {
				behind = rest
			}
		}
		unix.Close(fd)
		fd = file
	}
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return nil, "", &fs.PathError{Op: "stat", Path: base, Err: err}
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, "", errors.New("it is not a regular file")
	}
	if stat.Size > maxPolicy {
		return nil, "", fmt.Errorf("it is larger than %d MiB", maxPolicy>>20)
	}
	reader, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", fd), os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, "", fmt.Errorf("open file: %w", errors.Unwrap(err))
	}
	defer reader.Close()
	text, err = io.ReadAll(io.LimitReader(reader, maxPolicy+1))
	if err != nil {
		return nil, "", fmt.Errorf("read file: %w", err)
	}
	if len(text) > maxPolicy {
		return nil, "", fmt.Errorf("it is larger than %d MiB", maxPolicy>>20)
	}
	return text, behind, nil
}

// linkless is the path of an open file, as of now.
func linkless(fd int) string {
	name, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	return name
}

func openBeneath(directory int, below string, resolve uint64) (int, error) {
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: resolve | unix.RESOLVE_NO_MAGICLINKS}
	for try := 0; ; try++ {
		fd, err := unix.Openat2(directory, below, how)
		// EAGAIN: something was renamed meanwhile, so that ".." could have led out.
		if errors.Is(err, unix.EAGAIN) && try < resolveTries || errors.Is(err, unix.EINTR) {
			continue
		}
		return fd, err
	}
}

func explain(err error, name string) error {
	switch {
	case errors.Is(err, unix.EXDEV):
		return errors.New("a symbolic link leads out of the mount")
	case errors.Is(err, unix.ELOOP):
		return errors.New("its symbolic links cannot be followed")
	case errors.Is(err, unix.ENOTDIR):
		return &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &fs.PathError{Op: "open", Path: name, Err: err}
}
