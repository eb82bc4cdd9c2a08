// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/policy/pattern"
)

// keyContainer precedes NAME.KEY: a key of one container of a pod.
const keyContainer = "container."

// sandboxName is how the record names the policy of a pod's sandbox.
const sandboxName = "sandbox of a pod"

// isSandbox tells whether the container is what a pod's others share their namespaces
// with, and no more. Who is none and says so only gets the strictest of policies.
func (s *spec) isSandbox() bool {
	return s.annotations["io.kubernetes.cri.container-type"] == "sandbox" ||
		s.annotations["io.kubernetes.cri-o.ContainerType"] == "sandbox"
}

// containerName is its name in its pod; empty if it is in none.
func (s *spec) containerName() string {
	return s.firstAnnotation("io.kubernetes.cri.container-name", "io.kubernetes.container.name")
}

func (s *spec) firstAnnotation(keys ...string) string {
	for _, key := range keys {
		if value := s.annotations[key]; value != "" {
			return value
		}
	}
	return ""
}

// settings are the annotations that are for this container. Kubernetes knows only those
// of pods: one that names a container is for that one, and goes before one for all.
func (s *spec) settings() (map[string]string, error) {
	found := map[string]string{}
	own := map[string]string{}
	for name, value := range s.annotations {
		rest, named := strings.CutPrefix(name, Prefix+keyContainer)
		if !named {
			found[name] = value
			continue
		}
		container, key, _ := strings.Cut(rest, ".")
		if _, err := knownKey(Prefix+key, Prefix); err != nil || container == "" {
			return nil, fmt.Errorf("annotation %s: expected %sNAME.KEY, such as %[2]sagent.policy", name, Prefix+keyContainer)
		}
		if s.containerName() == "" && !s.isSandbox() {
			return nil, fmt.Errorf("annotation %s: this container is in no pod and has no name there; use %s", name, Prefix+key)
		}
		if container == s.containerName() {
			own[Prefix+key] = value
		}
	}
	for name, value := range own {
		found[name] = value
	}
	return found, nil
}

// sandboxPolicy lets a sandbox run its one program, and nothing else. Without a policy the
// sandbox would be a way out for the others where a pod shares its processes: whoever may
// trace it runs code in it.
func sandboxPolicy(spec *spec) (document, error) {
	if len(spec.args) == 0 || spec.args[0] == "" {
		return document{}, fmt.Errorf("the %s has no program", sandboxName)
	}
	program := containerFiles{spec: spec}.program(spec.args[0])
	if !utf8.ValidString(program) || strings.ContainsFunc(program, unicode.IsControl) {
		return document{}, fmt.Errorf("the program of the %s has a name that no policy can hold: %q", sandboxName, program)
	}
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(pattern.Literal(program))
	text := fmt.Sprintf(`version: 1
policy: |
  default block exec
  default block write
  default block append
  default block connect
  default block bind
  rule sandbox:
    allow exec "%s"
`, quoted)
	return document{name: sandboxName, text: []byte(text), layer: host}, nil
}

// program is the path without links at which the container will find a program.
func (c containerFiles) program(name string) string {
	var names []string
	if !strings.Contains(name, "/") {
		for _, folder := range c.searched() {
			names = append(names, path.Join("/", folder, name))
		}
	}
	if !path.IsAbs(name) {
		name = path.Join("/", c.spec.cwd, name)
	}
	names = append(names, path.Clean(name))
	for _, name := range names {
		mount, mounted := mountOf(c.spec.mounts, name)
		if mounted && !isBind(mount) {
			continue
		}
		base, below := c.place(mount, mounted, name)
		if found, ok := behindLinks(base, below); ok {
			if mounted {
				return path.Join(destination(mount), found)
			}
			return path.Join("/", found)
		}
	}
	return name // which the runtime will not find either
}

// behindLinks is the path below a directory of what a path below it leads to.
func behindLinks(base, below string) (string, bool) {
	if below == "" {
		return "", true
	}
	directory, err := unix.Open(base, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", false
	}
	defer unix.Close(directory)
	file, err := openBeneath(directory, below, unix.RESOLVE_IN_ROOT)
	if err != nil {
		return "", false
	}
	defer unix.Close(file)
	found, err := filepath.Rel(linkless(directory), linkless(file))
	return found, err == nil && filepath.IsLocal(found)
}
