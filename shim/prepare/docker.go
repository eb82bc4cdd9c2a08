// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// maxDockerFile bounds Docker's own file of a container, mostly some KiB.
const maxDockerFile = 8 << 20

// dockerFile is what of Docker's file of a container is of use.
type dockerFile struct {
	ID     string
	Name   string
	Config struct {
		Labels map[string]string
		Image  string // as its starter called it
	}
	// State is of the start before this one.
	State struct{ StartedAt, FinishedAt time.Time }

	home string // its folder, which goes with the container
}

// readDocker finds Docker's file of a container beside the files that Docker
// mounts into it, and gives nil where there is none. Labels are not in the
// bundle, and asking dockerd while it waits for us would deadlock.
func readDocker(id string, mounts []specs.Mount) (*dockerFile, error) {
	directory := dockerDirectory(id, mounts)
	if directory == "" {
		return nil, nil
	}
	name := filepath.Join(directory, "config.v2.json")
	data, err := readHostFile(name, maxDockerFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read docker labels: %w", err)
	}
	file := new(dockerFile)
	if err := json.Unmarshal(data, file); err != nil {
		return nil, fmt.Errorf("parse docker labels in %q: %w", name, err)
	}
	if file.ID != id {
		return nil, fmt.Errorf("read docker labels: %q is of container %q", name, file.ID)
	}
	file.home = directory
	file.Name = strings.TrimPrefix(file.Name, "/")
	return file, nil
}

// dockerDirectory is Docker's folder of a container. The files that are mounted
// may be those of another container, whose network this one shares; its own folder
// is beside that one's.
func dockerDirectory(id string, mounts []specs.Mount) string {
	for _, mount := range mounts {
		base := filepath.Base(mount.Destination)
		if filepath.Dir(mount.Destination) != "/etc" || filepath.Base(mount.Source) != base {
			continue
		}
		if base != "hosts" && base != "hostname" && base != "resolv.conf" {
			continue
		}
		containers := filepath.Dir(filepath.Dir(filepath.Clean(mount.Source)))
		own := filepath.Join(containers, id)
		if _, err := os.Stat(own); filepath.Base(containers) == "containers" && err == nil {
			return own
		}
	}
	return ""
}

// ended is when the container ended last; zero for one that has not run. Docker writes
// the year 1 for never.
func (d *dockerFile) ended() time.Time {
	if d == nil || d.State.StartedAt.Year() <= 1 {
		return time.Time{}
	}
	if d.State.FinishedAt.Before(d.State.StartedAt) { // the host went down
		return d.State.StartedAt
	}
	return d.State.FinishedAt
}
