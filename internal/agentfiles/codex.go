// SPDX-License-Identifier: Apache-2.0

package agentfiles

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"

	"github.com/pelletier/go-toml/v2"
)

type table = map[string]any

// requirements is the file of Codex's that nobody overrules.
func requirements(path string, events []string) File {
	return tomlFile(path, func(root table) error { return setCodex(root, events) }, unsetCodex)
}

// tomlFile is a file into which set puts something, and from which unset takes it.
// Comments in one that is there get lost when it has to be changed; keys and values do
// not.
func tomlFile(path string, set, unset func(table) error) File {
	change := func(old []byte, edit func(root table) error) ([]byte, error) {
		root, before := table{}, table{}
		for _, into := range []*table{&root, &before} {
			if err := toml.Unmarshal(old, into); err != nil {
				return nil, fmt.Errorf("it is no TOML: %w", err)
			}
		}
		if err := edit(root); err != nil {
			return nil, err
		}
		if old != nil && reflect.DeepEqual(root, before) {
			return old, nil
		}
		if len(root) == 0 {
			return nil, nil
		}
		var out bytes.Buffer
		encoder := toml.NewEncoder(&out)
		if err := encoder.Encode(root); err != nil {
			return nil, fmt.Errorf("encode: %w", err)
		}
		return out.Bytes(), nil
	}
	return File{
		Path:  path,
		set:   func(old []byte) ([]byte, error) { return change(old, set) },
		unset: func(old []byte) ([]byte, error) { return change(old, unset) },
	}
}

// setCodex: without hooks among the features, the user's configuration has the say.
func setCodex(root table, events []string) error {
	if err := unsetCodex(root); err != nil {
		return err
	}
	features, err := child(root, "features")
	if err != nil {
		return err
	}
	hooks, err := child(root, "hooks")
	if err != nil {
		return err
	}
	features["hooks"] = true
	for _, event := range events {
		group := table{"hooks": []any{table{"type": "command", "command": command("codex"), "timeout": int64(timeout)}}}
		list, ok := hooks[event].([]any)
		if hooks[event] != nil && !ok {
			return fmt.Errorf("hooks.%s is no array of tables", event)
		}
		hooks[event] = append(list, group)
	}
	root["features"], root["hooks"] = features, hooks
	return nil
}

// unsetCodex leaves features.hooks on where other hooks stay.
func unsetCodex(root table) error {
	hooks, err := child(root, "hooks")
	if err != nil {
		return err
	}
	dropped := false
	for event, value := range hooks {
		groups, ok := value.([]any)
		if !ok {
			continue
		}
		kept := withoutOurs(groups)
		dropped = dropped || !reflect.DeepEqual(kept, groups)
		if hooks[event] = kept; len(kept) == 0 {
			delete(hooks, event)
		}
	}
	if len(hooks) > 0 || !dropped {
		return nil
	}
	delete(root, "hooks")
	if features, ok := root["features"].(table); ok {
		if delete(features, "hooks"); len(features) == 0 {
			delete(root, "features")
		}
	}
	return nil
}

// withoutOurs are the groups without our hooks, and those alone in which others are.
func withoutOurs(groups []any) []any {
	kept := []any{}
	for _, group := range groups {
		fields, ok := group.(table)
		hooks, isList := fields["hooks"].([]any)
		if !ok || !isList {
			kept = append(kept, group)
			continue
		}
		others := []any{}
		for _, hook := range hooks {
			definition, _ := hook.(table)
			if command, _ := definition["command"].(string); !isOurs(command) {
				others = append(others, hook)
			}
		}
		if len(others) > 0 || len(hooks) == 0 {
			fields["hooks"] = others
			kept = append(kept, fields)
		}
	}
	return kept
}

func child(root table, key string) (table, error) {
	switch value := root[key].(type) {
	case nil:
		return table{}, nil
	case table:
		return value, nil
	}
	return nil, errors.New(key + " is no table")
}
