// SPDX-License-Identifier: Apache-2.0

package task

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/containerd/containerd/api/types/runc/options"
	runtimeoptions "github.com/containerd/containerd/api/types/runtimeoptions/v1"
	"github.com/pelletier/go-toml/v2"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

const maxOptions = 256 << 10

// runcOptions are the options of a request, as runc's task service takes them: it ends
// the whole shim when they are others. Clients that know the runtime's name send runc's;
// CRI and Docker send those of a runtime that they don't know, TOML in a field or a file.
func runcOptions(given *anypb.Any) (*options.Options, error) {
	if len(given.GetValue()) == 0 {
		return &options.Options{}, nil
	}
	// containerd writes type names with and without a prefix.
	name := given.GetTypeUrl()
	name = name[strings.LastIndexByte(name, '/')+1:]
	runc, generic := &options.Options{}, &runtimeoptions.Options{}
	switch name {
	case nameOf(runc):
		if err := proto.Unmarshal(given.Value, runc); err != nil {
			return nil, fmt.Errorf("read runtime options: %w", err)
		}
		return runc, nil
	case nameOf(generic):
		if err := proto.Unmarshal(given.Value, generic); err != nil {
			return nil, fmt.Errorf("read runtime options: %w", err)
		}
		return fromTOML(generic)
	}
	return nil, fmt.Errorf("runtime options of type %q are not those of runc; use %s or TOML", name, nameOf(runc))
}

// pack is the reverse, under the type's name alone, as containerd writes and reads it.
func pack(options *options.Options) (*anypb.Any, error) {
	value, err := proto.Marshal(options)
	if err != nil {
		return nil, fmt.Errorf("encode runtime options: %w", err)
	}
	return &anypb.Any{TypeUrl: nameOf(options), Value: value}, nil
}

func nameOf(message proto.Message) string {
	return string(message.ProtoReflect().Descriptor().FullName())
}

// fromTOML reads options under the names that they have in containerd's configuration
// of runc.
func fromTOML(generic *runtimeoptions.Options) (*options.Options, error) {
	text, where := generic.ConfigBody, "runtime options"
	if generic.ConfigPath != "" {
		where = fmt.Sprintf("runtime options in %q", generic.ConfigPath)
		var err error
		if text, err = readOptions(generic.ConfigPath); err != nil {
			return nil, fmt.Errorf("read %s: %w", where, err)
		}
	}
	// containerd passes on the whole of its section, these two included.
	document := struct {
		*options.Options
		TypeUrl, ConfigPath string
	}{Options: &options.Options{}}
	decoder := toml.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&document)
	var unknown *toml.StrictMissingError
	if errors.As(err, &unknown) && len(unknown.Errors) > 0 {
		return nil, fmt.Errorf("%s: unknown key %q", where, strings.Join(unknown.Errors[0].Key(), "."))
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", where, err)
	}
	return document.Options, nil
}

// readOptions reads a file of the host's; a FIFO or device there cannot stop the shim.
func readOptions(path string) ([]byte, error) {
	if !filepath.IsAbs(path) {
		return nil, errors.New("it is not an absolute path")
	}
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	text, err := io.ReadAll(io.LimitReader(file, maxOptions+1))
	if err == nil && len(text) > maxOptions {
		err = fmt.Errorf("it is larger than %d KiB", maxOptions>>10)
	}
	return text, err
}

// isSystemd tells whether a cgroupsPath is one of systemd's, SLICE:PREFIX:NAME. Who
// writes that means systemd's driver; taken for a path it would be a cgroup of that name.
func isSystemd(path string) bool {
	parts := strings.Split(path, ":")
	return len(parts) == 3 && !strings.ContainsRune(path, '/') && parts[2] != "" &&
		(parts[0] == "" || strings.HasSuffix(parts[0], ".slice"))
}
