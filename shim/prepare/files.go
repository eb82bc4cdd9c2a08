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
	base, below, resolve := c.spec.rootfs, strings.TrimPrefix(name, "/"), uint64(unix.RESOLVE_IN_ROOT)
	mount, mounted := mountOf(c.spec.mounts, name)
	if mounted {
		if !isBind(mount) {
			return document{}, fmt.Errorf("it is on a mount of type %q, which has no files before the container runs: %w", mount.Type, fs.ErrNotExist)
		}
		base = mount.Source
		if !filepath.IsAbs(base) {
			base = filepath.Join(c.spec.bundle, base)
		}
		below = strings.TrimPrefix(strings.TrimPrefix(name, path.Clean("/"+mount.Destination)), "/")
		resolve = unix.RESOLVE_BENEATH
	} else {
		from = inside
	}
	text, err := readBeneath(base, below, resolve)
	if err != nil {
		return document{}, err
	}
	return document{name: name, check: filepath.Join(base, below), text: text, layer: from}, nil
}

// mountOf finds the mount on which a path will be. Later mounts cover earlier
// ones, so that the last one whose destination is a prefix is it; container
// managers sort them by depth, and then it is the longest one.
func mountOf(mounts []specs.Mount, name string) (specs.Mount, bool) {
	for _, mount := range slices.Backward(mounts) {
		destination := path.Clean("/" + mount.Destination)
		if destination == "/" || name == destination || strings.HasPrefix(name, destination+"/") {
			return mount, true
		}
	}
	return specs.Mount{}, false
}

func isBind(mount specs.Mount) bool {
	return mount.Type == "bind" || slices.Contains(mount.Options, "bind") || slices.Contains(mount.Options, "rbind")
}

// readBeneath reads a regular file below a directory; with an empty path the base
// is the file.
func readBeneath(base, below string, resolve uint64) ([]byte, error) {
	// O_PATH opens nothing yet: a FIFO cannot hang it, a device does not notice.
	fd, err := unix.Open(base, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: base, Err: err}
	}
	defer func() { unix.Close(fd) }()
	if below != "" {
		file, err := openBeneath(fd, below, resolve)
		if err != nil {
			return nil, explain(err, filepath.Join(base, below))
		}
		unix.Close(fd)
		fd = file
	}
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: base, Err: err}
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, errors.New("it is not a regular file")
	}
	if stat.Size > maxPolicy {
		return nil, fmt.Errorf("it is larger than %d MiB", maxPolicy>>20)
	}
	reader, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", fd), os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, fmt.Errorf("open file: %w", errors.Unwrap(err))
	}
	defer reader.Close()
	text, err := io.ReadAll(io.LimitReader(reader, maxPolicy+1))
	if err != nil {
		return nil, fmt.Errorf("read file: %w", err)
	}
	if len(text) > maxPolicy {
		return nil, fmt.Errorf("it is larger than %d MiB", maxPolicy>>20)
	}
	return text, nil
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
