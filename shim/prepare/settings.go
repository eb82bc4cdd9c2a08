// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/actplane/actplane/policy/diag"
	"github.com/actplane/actplane/policy/ir"
)

// Prefix is that of all annotations and labels of ActPlane; EnvPrefix is that of
// the environment variables of the same names.
const (
	Prefix    = "dev.actplane."
	EnvPrefix = "ACTPLANE_"
)

// The keys, without their prefix. What follows keyLimits is in limits.go.
const (
	keyPolicy     = "policy"
	keyPolicyFile = "policy-file"
	keyWorkspace  = "workspace"
	keyMode       = "mode"
	keyFeedback   = "feedback"
	keyAgents     = "agents"
	keyMCP        = "mcp"
	keyLimits     = "limits."
)

const (
	modeEnforce    = "enforce"
	modeShadow     = "shadow"
	feedbackSocket = "socket"
	feedbackStderr = "socket,stderr"
	feedbackNone   = "none" // neither socket nor guest program, and no hooks
)

// origin is where a setting comes from.
type origin struct {
	noun    string // "annotation"
	prefix  string
	trusted bool // set by who starts the container: an image cannot
	layer   layer
	signed  string // of signedOrigins
}

// originSettings are the settings of one origin.
type originSettings struct {
	origin     origin
	policy     string
	policyFile string
	limits     ir.Limits
}

// settings are all settings of a container.
type settings struct {
	workspace string
	feedback  string           // "" leaves it to the policy
	agents    []string         // lists of agents that get their hooks, of all origins
	mcp       bool             // they get the MCP server as well
	layers    []originSettings // outermost first
}

func readSettings(spec *spec, docker *dockerFile, config *Config) (*settings, error) {
	all := &settings{workspace: config.Workspace, feedback: config.Feedback, mcp: config.MCP}
	if config.Agents != "" {
		all.agents = append(all.agents, config.Agents)
	}
	annotation := origin{noun: "annotation", prefix: Prefix, trusted: true, layer: operator, signed: fromAnnotation}
	annotations, err := spec.settings()
	if err != nil {
		return nil, err
	}
	if err := permitted(annotations, config); err != nil {
		return nil, err
	}
	if err := all.add(annotation, annotations); err != nil {
		return nil, err
	}
	if docker != nil {
		label := origin{noun: "label", prefix: Prefix, layer: inside, signed: fromLabel}
		if err := all.add(label, docker.Config.Labels); err != nil {
			return nil, err
		}
	}
	environment, err := readEnvironment(spec.env)
	if err != nil {
		return nil, err
	}
	if err := all.add(origin{noun: "environment variable", prefix: EnvPrefix, layer: inside, signed: fromEnvironment}, environment); err != nil {
		return nil, err
	}
	if all.workspace == "" {
		all.workspace = spec.cwd
	}
	if all.workspace == "" {
		all.workspace = "/"
	}
	if !path.IsAbs(all.workspace) || strings.ContainsRune(all.workspace, 0) {
		return nil, fmt.Errorf("workspace %q is not an absolute path", all.workspace)
	}
	all.workspace = path.Clean(all.workspace)
	if spec.isSandbox() {
		all.agents = nil // has none
	}
	return all, nil
}

// readEnvironment keeps the variables that are ours. A variable that is there
// twice is one to this program and another to the next.
func readEnvironment(env []string) (map[string]string, error) {
	found := map[string]string{}
	for _, entry := range env {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || !strings.HasPrefix(name, EnvPrefix) {
			continue
		}
		if other, twice := found[name]; twice && other != value {
			return nil, fmt.Errorf("environment variable %s has two values", name)
		}
		found[name] = value
	}
	return found, nil
}

// add takes the settings of one origin from what it holds.
func (s *settings) add(from origin, values map[string]string) error {
	layer := originSettings{origin: from}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !strings.HasPrefix(name, from.prefix) {
			continue
		}
		key, err := knownKey(name, from.prefix)
		if err == nil && key != "" {
			err = s.set(&layer, key, values[name])
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w", from.noun, name, err)
		}
	}
	s.layers = append(s.layers, layer)
	return nil
}

// knownKey is the key that a name stands for. Environment variables of other
// names may be an agent's own and give "", unless they look like a misspelling.
func knownKey(name, prefix string) (string, error) {
	var names []string
	for _, key := range keys() {
		full := fullName(prefix, key)
		if full == name {
			return key, nil
		}
		names = append(names, full)
	}
	hint := didYouMean(name, names)
	if prefix == EnvPrefix && hint == "" {
		return "", nil
	}
	return "", errors.New("unknown name" + hint)
}

// fullName is a key with its prefix, in the form of variables where it is theirs.
func fullName(prefix, key string) string {
	if prefix == EnvPrefix {
		key = strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(key))
	}
	return prefix + key
}

// keys returns all keys.
func keys() []string {
	known := []string{keyPolicy, keyPolicyFile, keyWorkspace, keyMode, keyFeedback, keyAgents, keyMCP}
	for _, limit := range limitKeys() {
		known = append(known, keyLimits+limit.name)
	}
	return known
}

func (s *settings) set(layer *originSettings, key, value string) error {
	trusted := layer.origin.trusted
	refuse := fmt.Errorf("it can be set only by an annotation or the host's configuration, since an image can set this; use --annotation %s%s=%s", Prefix, key, printable(value))
	switch key {
	case keyPolicy:
		layer.policy = value
	case keyPolicyFile:
		layer.policyFile = value
	case keyWorkspace:
		if !trusted {
			return refuse
		}
		if !path.IsAbs(value) {
			return fmt.Errorf("%q is not an absolute path", value)
		}
		s.workspace = value
	case keyMode:
		if err := checkMode(value); err != nil {
			return err
		}
	case keyFeedback:
		if !trusted {
			return refuse
		}
		if err := checkFeedback(value); err != nil {
			return err
		}
		s.feedback = value
	case keyAgents:
		// An image may ask for it as well: it brings texts, and takes nothing away.
		s.agents = append(s.agents, value)
	case keyMCP:
		if value != "true" && value != "false" {
			return fmt.Errorf("%q is neither \"true\" nor \"false\"", value)
		}
		if !trusted && value == "false" {
			return refuse
		}
		s.mcp = value == "true"
	default:
		return setLimit(&layer.limits, strings.TrimPrefix(key, keyLimits), value)
	}
	return nil
}

func checkMode(mode string) error {
	switch mode {
	case modeEnforce:
		return nil
	case modeShadow:
		return errors.New("mode shadow is not supported by this version; use enforce")
	}
	return fmt.Errorf("unknown mode %q%s", mode, didYouMean(mode, []string{modeEnforce, modeShadow}))
}

func checkFeedback(feedback string) error {
	known := []string{feedbackSocket, feedbackStderr, feedbackNone}
	if contains(known, feedback) {
		return nil
	}
	if hint := didYouMean(feedback, known); hint != "" {
		return fmt.Errorf("unknown feedback %q%s", feedback, hint)
	}
	return fmt.Errorf("unknown feedback %q; it is one of %q, %q and %q", feedback, known[0], known[1], known[2])
}

func didYouMean(word string, candidates []string) string {
	if suggestion := diag.Suggest(word, candidates); suggestion != "" {
		return fmt.Sprintf("; did you mean %q?", suggestion)
	}
	return ""
}

func contains(list []string, word string) bool { return slices.Contains(list, word) }

// printable shortens a value that goes into a sentence.
func printable(value string) string {
	value = strings.Join(strings.Fields(value), " ")
	if len(value) > 60 {
		return value[:60] + "…"
	}
	return value
}

// SettingName is a setting's annotation or label, and CheckSetting says what is wrong with
// one of a value, as an annotation or as a label.
func SettingName(key string) string { return Prefix + key }

// CheckSetting: see SettingName.
func CheckSetting(key, value string, label bool) error {
	from := origin{noun: "annotation", prefix: Prefix, trusted: !label}
	if label {
		from.noun = "label"
	}
	return new(settings).add(from, map[string]string{SettingName(key): value})
}
