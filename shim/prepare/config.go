// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"reflect"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/actplane/actplane/internal/agentfiles"
	"github.com/actplane/actplane/internal/approval"
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
	// Mode and Feedback are as the annotations; without Feedback the policy decides.
	Mode     string `yaml:"mode"`
	Feedback string `yaml:"feedback"`
	// Agents is as the annotation, for every container.
	Agents string `yaml:"agents"`
	// MCP: those agents are also made to start the server of the Model Context Protocol.
	MCP bool `yaml:"mcp"`
	// Degraded is "allow" where the engine may use a tier that misses operations
	// under load; see docs/threat-model.md. Otherwise it is "refuse".
	Degraded string `yaml:"degraded"`
	// Narrowing is "allow" where containers may add rules to their own policies while they
	// run, which refuse more and never less; else "refuse".
	Narrowing string `yaml:"narrowing"`
	// Retention is for how long the engine keeps what a stopped container has done to
	// files and gates, in case it is started again.
	Retention time.Duration `yaml:"retention"`
	// Allow names what containers may have although it is stronger than a policy; see
	// exposure.Names. GuardedPaths are further paths of the host that none may have.
	Allow        []string `yaml:"allow"`
	GuardedPaths []string `yaml:"guarded_paths"`
	// RequireSignatures names the origins whose policies have to be signed by one of the host's
	// allowed signers; see signedOrigins. Annotations are the keys that the host permits as
	// annotations, "limits" for all of these; without it all are.
	RequireSignatures []string `yaml:"require_signatures"`
	Annotations       []string `yaml:"annotations"`
	// Exempt are annotations, KEY=VALUE, of containers that are put under no policy, whatever
	// else is required: those of the container engine itself.
	Exempt []string `yaml:"exempt"`
	// Approvers are asked before people are, Notifications are told of requests.
	Approvers     []approval.Approver     `yaml:"approvers"`
	Notifications []approval.Notification `yaml:"notifications"`
}

// LoadConfig reads the host's configuration; without the file it is the default.
func LoadConfig(file string) (*Config, error) {
	config := &Config{Runtimes: []string{"runc", "crun"}, RequirePolicy: true, Mode: modeEnforce, Degraded: "refuse", Narrowing: "allow", Retention: defaultRetention}
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
	if err := checkKeys(root, reflect.TypeFor[Config]()); err != nil {
		return err
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
	if config.Narrowing != "allow" && config.Narrowing != "refuse" {
		return fmt.Errorf(`narrowing: %q is neither "allow" nor "refuse"`, config.Narrowing)
	}
	if config.Retention < minRetention || config.Retention > maxRetention {
		return fmt.Errorf("retention: %s is not between %s and %s", config.Retention, minRetention, maxRetention)
	}
	if config.Workspace != "" && !path.IsAbs(config.Workspace) {
		return fmt.Errorf("workspace: %q is not an absolute path", config.Workspace)
	}
	if err := checkExposures(config); err != nil {
		return err
	}
	if err := checkOrigins(config); err != nil {
		return err
	}
	if err := checkMode(config.Mode); err != nil {
		return err
	}
	if config.Agents != "" {
		if _, err := agentfiles.Find(config.Agents, func(string) bool { return false }); err != nil {
			return fmt.Errorf("agents: %w", err)
		}
	}
	if err := approval.CheckAll(config.Approvers, config.Notifications); err != nil {
		return err
	}
	if config.Feedback == "" {
		return nil
	}
	return checkFeedback(config.Feedback)
}

// checkKeys says which keys of a document are none of the structure that it is read
// into, and of those in it.
func checkKeys(node *yaml.Node, into reflect.Type) error {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	switch {
	case into.Kind() == reflect.Slice && node.Kind == yaml.SequenceNode:
		for _, item := range node.Content {
			if err := checkKeys(item, into.Elem()); err != nil {
				return err
			}
		}
	case into.Kind() == reflect.Struct && node.Kind == yaml.MappingNode:
		fields := keysOf(into)
		for i := 0; i+1 < len(node.Content); i += 2 {
			key := node.Content[i]
			field, ok := fields[key.Value]
			if !ok {
				known := slices.Sorted(maps.Keys(fields))
				return fmt.Errorf("line %d: unknown key %q%s", key.Line, key.Value, didYouMean(key.Value, known))
			}
			if err := checkKeys(node.Content[i+1], field); err != nil {
				return err
			}
		}
	}
	return nil
}

// keysOf are the keys of a structure, with those of the structures that are part of it.
func keysOf(of reflect.Type) map[string]reflect.Type {
	keys := map[string]reflect.Type{}
	for i := range of.NumField() {
		field := of.Field(i)
		if name := field.Tag.Get("yaml"); name != ",inline" {
			keys[name] = field.Type
			continue
		}
		maps.Copy(keys, keysOf(field.Type))
	}
	return keys
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
