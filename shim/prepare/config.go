// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/actplane/actplane/internal/agentfiles"
)

const maxConfig = 256 << 10

// Of Config.Retention.
const (
	defaultRetention = 24 * time.Hour
	minRetention     = time.Minute
	maxRetention     = 365 * 24 * time.Hour
)

// Config is the host's configuration of the runtime: /etc/actplane/config.yaml.
type Config struct {
	// Runtimes are the next runtimes, names or paths; the first that exists is it.
	Runtimes []string `yaml:"runtimes"`
	// RequirePolicy refuses containers for which no policy is found.
	RequirePolicy bool `yaml:"require_policy"`
	// Workspace is the root of relative patterns where no annotation says.
	Workspace string `yaml:"workspace"`
	// Mode and Feedback are as the annotations.
	Mode     string `yaml:"mode"`
	Feedback string `yaml:"feedback"`
	// Agents is as the annotation, for every container.
	Agents string `yaml:"agents"`
	// Degraded is "allow" where the engine may use a tier that misses operations
	// under load; see docs/threat-model.md. Otherwise it is "refuse".
	Degraded string `yaml:"degraded"`
	// Retention is for how long the engine keeps what a stopped container has done to
	// files and gates, in case it is started again.
	Retention time.Duration `yaml:"retention"`
}

// LoadConfig reads the host's configuration; without the file it is the default.
func LoadConfig(file string) (*Config, error) {
	config := &Config{Runtimes: []string{"runc", "crun"}, RequirePolicy: true, Mode: modeEnforce, Feedback: feedbackSocket, Degraded: "refuse", Retention: defaultRetention}
	data, err := readHostFile(file, maxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return config, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read host configuration: %w", err)
	}
	if err := decodeConfig(data, config); err != nil {
		return nil, fmt.Errorf("host configuration %s: %w", file, err)
	}
	return config, nil
}

func decodeConfig(data []byte, config *Config) error {
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil {
		return err
	}
	if len(document.Content) == 0 {
		return nil // only comments
	}
	root := document.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return nil
	}
	if root.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: expected keys and values", root.Line)
	}
	known := []string{"runtimes", "require_policy", "workspace", "mode", "feedback", "agents", "degraded", "retention"}
	for i := 0; i < len(root.Content); i += 2 {
		if key := root.Content[i]; !contains(known, key.Value) {
			return fmt.Errorf("line %d: unknown key %q%s", key.Line, key.Value, didYouMean(key.Value, known))
		}
	}
	if err := root.Decode(config); err != nil {
		return err
	}
	if len(config.Runtimes) == 0 {
		return errors.New("runtimes: name at least one")
	}
	for _, runtime := range config.Runtimes {
		if runtime == "" {
			return errors.New("runtimes: an empty name")
		}
	}
	if config.Degraded != "allow" && config.Degraded != "refuse" {
		return fmt.Errorf(`degraded: %q is neither "allow" nor "refuse"`, config.Degraded)
	}
	if config.Retention < minRetention || config.Retention > maxRetention {
		return fmt.Errorf("retention: %s is not between %s and %s", config.Retention, minRetention, maxRetention)
	}
	if config.Workspace != "" && !path.IsAbs(config.Workspace) {
		return fmt.Errorf("workspace: %q is not an absolute path", config.Workspace)
	}
	if err := checkMode(config.Mode); err != nil {
		return err
	}
	if config.Agents != "" {
		if _, err := agentfiles.Find(config.Agents, func(string) bool { return false }); err != nil {
			return fmt.Errorf("agents: %w", err)
		}
	}
	return checkFeedback(config.Feedback)
}

// readHostFile reads a regular file of the host's; links are the host's own.
func readHostFile(name string, limit int) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%q is not a regular file", name)
	}
	if info.Size() > int64(limit) {
		return nil, fmt.Errorf("%q is larger than %d KiB", name, limit>>10)
	}
	return os.ReadFile(name)
}
