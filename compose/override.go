// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
	"go.yaml.in/yaml/v3"
)

// runtimeName is ours in Docker's configuration.
const runtimeName = "actplane"

// Override is what services are to get besides what the files say.
type Override struct {
	Services []string
	// Settings are annotations, or where Labels says so labels: for compose 1, and for Docker
	// before 24, which know no annotations.
	Settings map[string]string
	Labels   bool
	// Comment stands at the head, without its #.
	Comment []string
}

// Write writes the override file. It is read behind the files that it is for.
func (p *Project) Write(o *Override) ([]byte, error) {
	if o.Labels {
		if err := checkVersion(p.Version); err != nil {
			return nil, err
		}
	}
	key := "annotations"
	if o.Labels {
		key = "labels"
	}
	services := &yaml.Node{Kind: yaml.MappingNode}
	for _, name := range o.Services {
		settings := &yaml.Node{Kind: yaml.MappingNode}
		for _, setting := range slices.Sorted(maps.Keys(o.Settings)) {
			// What compose would take for a variable is meant as it is.
			put(settings, setting, text(strings.ReplaceAll(o.Settings[setting], "$", "$$")))
		}
		service := &yaml.Node{Kind: yaml.MappingNode}
		put(service, "runtime", text(runtimeName))
		if len(o.Settings) > 0 {
			put(service, key, settings)
		}
		put(services, name, service)
	}
	root := &yaml.Node{Kind: yaml.MappingNode}
	if p.Version != "" {
		version := text(p.Version)
		version.Style = yaml.DoubleQuotedStyle // 3.8 is no number there
		put(root, "version", version)
	}
	put(root, "services", services)
	var out bytes.Buffer
	for _, line := range o.Comment {
		fmt.Fprintln(&out, strings.TrimSpace("# "+line))
	}
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(root); err != nil {
		return nil, fmt.Errorf("write override: %w", err)
	}
	return out.Bytes(), encoder.Close()
}

func text(value string) *yaml.Node {
	node := &yaml.Node{}
	node.SetString(value)
	return node
}

func put(mapping *yaml.Node, key string, value *yaml.Node) {
	mapping.Content = append(mapping.Content, text(key), value)
}

// checkVersion refuses a version of compose 1's file format that has no runtimes.
func checkVersion(version string) error {
	major, minor, _ := strings.Cut(version, ".")
	if number, err := strconv.Atoi(minor); major == "2" && (minor == "" || err == nil && number < 3) {
		return fmt.Errorf("version %q of compose files has no runtimes; write version: \"2.4\"", version)
	}
	return nil
}

// Doubts are what can be said beforehand against an override: a runtime that it replaces,
// a policy file that will not be there.
func (p *Project) Doubts(o *Override, policyFile string) []string {
	var found []string
	for _, name := range o.Services {
		service, err := p.GetService(name)
		if err != nil {
			continue
		}
		if service.Runtime != "" && service.Runtime != runtimeName {
			found = append(found, fmt.Sprintf("service %q: its runtime %q is replaced; name it under runtimes in /etc/actplane/config.yaml, so that actplane runs it", name, service.Runtime))
		}
		if policyFile != "" {
			if why := missing(&service, policyFile); why != "" {
				found = append(found, fmt.Sprintf("service %q: %s", name, why))
			}
		}
	}
	return found
}

// missing tells why a policy file will not be in a container, as far as is known here.
func missing(service *types.ServiceConfig, name string) string {
	if !path.IsAbs(name) {
		if service.WorkingDir == "" {
			return fmt.Sprintf("the policy file %q is in its working directory, which the file does not name; write an absolute path", name)
		}
		name = path.Join(service.WorkingDir, name)
	}
	name = path.Clean(name)
	var on *types.ServiceVolumeConfig
	for i, v := range service.Volumes {
		target := path.Clean(v.Target)
		if (name == target || strings.HasPrefix(name, target+"/")) && (on == nil || len(target) >= len(path.Clean(on.Target))) {
			on = &service.Volumes[i]
		}
	}
	switch {
	case on == nil:
		return fmt.Sprintf("nothing is mounted where the policy file %q is: unless the image has one there, it does not start", name)
	case on.Type != types.VolumeTypeBind:
		return "" // only its volume knows
	}
	source := filepath.Join(on.Source, strings.TrimPrefix(name, path.Clean(on.Target)))
	if _, err := os.Stat(source); errors.Is(err, fs.ErrNotExist) {
		return fmt.Sprintf("the policy file %q would be %q, which does not exist", name, source)
	}
	return ""
}
