// SPDX-License-Identifier: Apache-2.0

// Package bundle reads and writes what passes between a container manager and
// an OCI runtime on disk: a bundle's config.json and the process document of an
// exec. It also keeps the runtime's own record of each container.
//
// Everything that ActPlane does not edit stays as it was, byte for byte but for
// white space: structs of the OCI specification lose fields that are newer than
// they are. The package knows nothing of policies.
package bundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/internal/atomicfile"
)

// MaxSize bounds a document. Docker's config.json is about 20 KiB; a process
// with as much environment as execve accepts stays below 8 MiB.
const MaxSize = 16 << 20

// ConfigName is the document's name in a bundle.
const ConfigName = "config.json"

// File is a JSON document that was read from disk and can be written back.
type File struct {
	Root Object

	path     string
	mode     uint32
	uid, gid int
}

// Open reads the document at path, which must be a regular file: a symbolic
// link could be turned between reading and writing.
func Open(path string) (*File, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil, fmt.Errorf("open %q: it is a symbolic link, not a regular file", path)
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	file := os.NewFile(uintptr(fd), path)
	defer file.Close()
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return nil, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, fmt.Errorf("open %q: it is not a regular file", path)
	}
	data, err := io.ReadAll(io.LimitReader(file, MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("read document: %w", err)
	}
	if len(data) > MaxSize {
		return nil, fmt.Errorf("read %q: it is larger than %d MiB", path, MaxSize>>20)
	}
	var root Object
	if err := json.Unmarshal(data, &root); err != nil {
		return nil, fmt.Errorf("parse %q: %w", path, err)
	}
	if root == nil {
		return nil, fmt.Errorf("parse %q: it is null, not an object", path)
	}
	return &File{Root: root, path: path, mode: stat.Mode & 0o7777, uid: int(stat.Uid), gid: int(stat.Gid)}, nil
}

// Save writes the document back in one step: readers see the old one or the new
// one. Mode and owner stay.
func (f *File) Save() error {
	data, err := encode(f.Root)
	if err != nil {
		return fmt.Errorf("encode document: %w", err)
	}
	if len(data) > MaxSize {
		return fmt.Errorf("write %q: it is larger than %d MiB", f.path, MaxSize>>20)
	}
	options := atomicfile.Options{Mode: f.mode, Owner: &atomicfile.Owner{UID: f.uid, GID: f.gid}}
	if err := atomicfile.Write(f.path, data, options); err != nil {
		return fmt.Errorf("write document: %w", err)
	}
	return nil
}

// encode is json.Marshal without the escapes for HTML, which would change the
// bytes of untouched parts.
func encode(value any) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimRight(buffer.Bytes(), "\n"), nil
}
