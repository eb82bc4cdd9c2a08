// SPDX-License-Identifier: Apache-2.0

// Package compose reads compose files, of version 2 of compose and those of version 1
// that have services: what each service's container would be given, with the line that
// says so, and an override file that puts services under a policy. It starts nothing and
// asks neither Docker nor the engine.
package compose

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/sirupsen/logrus"
	"go.yaml.in/yaml/v3"
)

// maxFile bounds a compose file.
const maxFile = 4 << 20

// Project is what compose files say together.
type Project struct {
	*types.Project
	// Version is the files' `version:`, which compose 1 asks all of them for; empty without.
	Version string
	// Warnings are what the files leave open, such as variables that are not set.
	Warnings []string
	files    []file
}

type file struct {
	name string
	root *yaml.Node
}

// Load reads compose files, the later over the earlier, with the variables of an
// environment and of the .env file beside the first. All profiles count.
func Load(ctx context.Context, names, environment []string) (*Project, error) {
	p := &Project{}
	for _, name := range names {
		root, err := readFile(name)
		if err != nil {
			return nil, err
		}
		if err := p.addFile(name, root); err != nil {
			return nil, err
		}
	}
	options, err := cli.NewProjectOptions(names, cli.WithEnv(environment), cli.WithEnvFiles(), cli.WithDotEnv, cli.WithProfiles([]string{"*"}),
		cli.WithResolvedPaths(true), cli.WithoutEnvironmentResolution, cli.WithConsistency(false),
		cli.WithLoadOptions(func(o *loader.Options) { o.SkipResolveLabels = true }))
	if err != nil {
		return nil, fmt.Errorf("read compose file: %w", err)
	}
	listening := listen()
	p.Project, err = options.LoadProject(ctx)
	p.Warnings = listening.end()
	if err != nil {
		// The library's errors have paths in them, and these may have any character.
		return nil, fmt.Errorf("read compose file: %s", strings.Join(strings.Fields(err.Error()), " "))
	}
	return p, nil
}

func readFile(name string) (*yaml.Node, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("read compose file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read compose file: %q is not a regular file", name)
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("read compose file: %q is larger than %d MiB", name, maxFile>>20)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read compose file: %w", err)
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("read compose file %q: %w", name, err)
	}
	if len(document.Content) == 0 || document.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("read compose file %q: it has no services", name)
	}
	return document.Content[0], nil
}

func (p *Project) addFile(name string, root *yaml.Node) error {
	if value(root, "services") == nil && value(root, "include") == nil {
		return fmt.Errorf("%q has no services; files of compose's first format, with services at the top, have to be brought below \"services:\", since they know no runtimes", name)
	}
	if version := value(root, "version"); version != nil {
		if p.Version != "" && p.Version != version.Value {
			return fmt.Errorf("%q is of version %q, and a file before it of %q", name, version.Value, p.Version)
		}
		p.Version = version.Value
	}
	p.files = append(p.files, file{name, root})
	return nil
}

// listener hears what the library says to its log, which is the program's.
type listener struct {
	output io.Writer
	hooks  logrus.LevelHooks
	said   []string
}

func listen() *listener {
	l := &listener{output: logrus.StandardLogger().Out}
	l.hooks = logrus.StandardLogger().ReplaceHooks(logrus.LevelHooks{logrus.WarnLevel: {l}})
	logrus.SetOutput(io.Discard)
	return l
}

// Levels and Fire are logrus's interface of a hook.
func (l *listener) Levels() []logrus.Level { return []logrus.Level{logrus.WarnLevel} }

// Fire keeps a warning, once.
func (l *listener) Fire(entry *logrus.Entry) error {
	if !strings.Contains(entry.Message, "is obsolete") && !slices.Contains(l.said, entry.Message) {
		l.said = append(l.said, entry.Message)
	}
	return nil
}

func (l *listener) end() []string {
	logrus.SetOutput(l.output)
	logrus.StandardLogger().ReplaceHooks(l.hooks)
	return l.said
}

// Services are the names of those that are chosen, in order; none stands for all.
func (p *Project) Chosen(names []string) ([]string, error) {
	all := p.ServiceNames()
	slices.Sort(all)
	for _, name := range names {
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("there is no service %q; there are %s", name, strings.Join(all, ", "))
		}
	}
	if len(all) == 0 {
		return nil, errors.New("the compose file has no services")
	}
	if len(names) == 0 {
		return all, nil
	}
	return slices.Compact(slices.Sorted(slices.Values(names))), nil
}

// value is that of a key of a mapping, behind an alias; nil without.
func value(mapping *yaml.Node, key string) *yaml.Node {
	mapping = behind(mapping)
	if mapping == nil || mapping.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return behind(mapping.Content[i+1])
		}
	}
	return nil
}

func behind(node *yaml.Node) *yaml.Node {
	if node != nil && node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

// at is where a service's key is, FILE:LINE, and of a list the item that has a text. What
// comes from elsewhere (extends, include) is at the service.
func (p *Project) at(service, key, text string) string {
	place := ""
	for _, file := range slices.Backward(p.files) {
		node := value(value(file.root, "services"), service)
		if node == nil {
			continue
		}
		if place == "" {
			place = position(file.name, node)
		}
		list := value(node, key)
		if list == nil {
			continue
		}
		for _, item := range list.Content {
			if text != "" && holds(item, text, maxDepth) {
				return position(file.name, item)
			}
		}
		return position(file.name, list)
	}
	if place == "" && len(p.files) > 0 {
		place = position(p.files[0].name, p.files[0].root)
	}
	return place
}

func position(name string, node *yaml.Node) string {
	return fmt.Sprintf("%s:%d", filepath.ToSlash(name), node.Line)
}

const maxDepth = 8

// holds tells whether a text is in a node.
func holds(node *yaml.Node, text string, depth int) bool {
	if node = behind(node); node == nil || depth == 0 {
		return false
	}
	return strings.Contains(node.Value, text) ||
		slices.ContainsFunc(node.Content, func(n *yaml.Node) bool { return holds(n, text, depth-1) })
}
