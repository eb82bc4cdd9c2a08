// SPDX-License-Identifier: Apache-2.0

package agentfiles

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/actplane/actplane/internal/bundle"
)

// whole is a file that is all ours. One that is there and somebody else's is not
// written over.
func whole(path, content string, executable bool) File {
	ours := func(old []byte) bool { return bytes.Contains(old, []byte("Written by actplane-guest setup")) }
	return File{
		Path: path, Executable: executable,
		set: func(old []byte) ([]byte, error) {
			if old != nil && !ours(old) {
				return nil, fmt.Errorf("there is such a file already, and not by actplane-guest setup; move it away")
			}
			return []byte(content), nil
		},
		unset: func(old []byte) ([]byte, error) {
			if !ours(old) {
				return old, nil
			}
			return nil, nil
		},
	}
}

// edited is a JSON file into which set puts the hook, and from which unset takes it.
func edited(path string, set, unset func(bundle.Object) error) File {
	change := func(old []byte, edits ...func(bundle.Object) error) ([]byte, error) {
		var root bundle.Object
		if len(bytes.TrimSpace(old)) > 0 {
			if err := json.Unmarshal(old, &root); err != nil {
				return nil, fmt.Errorf("it is no JSON that can be changed without loss (%w); put the hook in by hand", err)
			}
		}
		if root == nil {
			root = bundle.Object{}
		}
		for _, edit := range edits {
			if err := edit(root); err != nil {
				return nil, err
			}
		}
		return rewrite(old, root)
	}
	return File{
		Path: path,
		set:  func(old []byte) ([]byte, error) { return change(old, unset, set) },
		unset: func(old []byte) ([]byte, error) {
			left, err := change(old, unset)
			if err != nil || string(left) != "{}\n" {
				return left, err
			}
			return nil, nil
		},
	}
}

// rewrite is the document as text: the old text, byte for byte, where it means the same.
func rewrite(old []byte, root bundle.Object) ([]byte, error) {
	text, err := json.Marshal(root)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	var before, after any
	if json.Unmarshal(old, &before) == nil && json.Unmarshal(text, &after) == nil && reflect.DeepEqual(before, after) {
		return old, nil
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(root); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return out.Bytes(), nil
}

// hook is what of a hook's definition tells whose it is.
type hook struct{ Command, Bash string }

func ours(raw json.RawMessage) bool {
	var h hook
	return json.Unmarshal(raw, &h) == nil && (isOurs(h.Command) || isOurs(h.Bash))
}

// grouped is the form of Claude Code, Gemini CLI and Qwen Code: events hold groups of
// hooks. The time-out is in the agent's own unit. enable makes hooks run at all, and
// with false takes that back.
func grouped(path, agent string, timeout int, events []string, enable func(bundle.Object, bool) error) File {
	// Without a name: by that, Gemini CLI's users can switch a hook off.
	definition := map[string]any{"type": "command", "command": command(agent), "timeout": timeout}
	group := map[string]any{"hooks": []any{definition}}
	return edited(path, func(root bundle.Object) error {
		if err := enable(root, true); err != nil {
			return err
		}
		return addHooks(root, events, group)
	}, func(root bundle.Object) error {
		if dropped, err := dropHooks(root, dropFromGroup); err != nil || !dropped {
			return err
		}
		return enable(root, false)
	})
}

// flat is the form of Copilot CLI and Cursor: events hold hooks.
func flat(path string, events []string, definition map[string]any) File {
	return edited(path, func(root bundle.Object) error {
		if err := setUnless(root, "version", 1); err != nil {
			return err
		}
		return addHooks(root, events, definition)
	}, func(root bundle.Object) error {
		_, err := dropHooks(root, func(raw json.RawMessage) (json.RawMessage, bool) { return raw, !ours(raw) })
		if len(root) == 1 {
			delete(root, "version") // which alone says nothing
		}
		return err
	})
}

// plugins is OpenCode's configuration with a plugin in its list.
func plugins(path, plugin string) File {
	return edited(path, func(root bundle.Object) error {
		return root.Append("plugin", plugin)
	}, func(root bundle.Object) error {
		return filter(root, "plugin", func(raw json.RawMessage) (json.RawMessage, bool) {
			var name string
			return raw, json.Unmarshal(raw, &name) != nil || name != plugin
		})
	})
}

// addHooks puts a definition behind those of each event.
func addHooks(root bundle.Object, events []string, definition any) error {
	return root.Update("hooks", func(hooks bundle.Object) error {
		for _, event := range events {
			if err := hooks.Append(event, definition); err != nil {
				return err
			}
		}
		return nil
	})
}

// dropHooks filters the definitions of all events, takes away what is empty then, and
// tells whether anything was dropped.
func dropHooks(root bundle.Object, keep func(json.RawMessage) (json.RawMessage, bool)) (dropped bool, err error) {
	before := string(root["hooks"])
	if before == "" {
		return false, nil
	}
	err = root.Update("hooks", func(hooks bundle.Object) error {
		for _, event := range hooks.Keys() {
			if err := filter(hooks, event, func(raw json.RawMessage) (json.RawMessage, bool) {
				changed, stays := keep(raw)
				dropped = dropped || !stays || string(changed) != string(raw)
				return changed, stays
			}); err != nil {
				return err
			}
		}
		return nil
	})
	if dropped && string(root["hooks"]) == "{}" {
		delete(root, "hooks")
	}
	return dropped, err
}

// dropFromGroup takes our hooks out of a group, which goes as well where it has no other.
func dropFromGroup(raw json.RawMessage) (json.RawMessage, bool) {
	var group bundle.Object
	var hooks []json.RawMessage
	if json.Unmarshal(raw, &group) != nil {
		return raw, true
	}
	if found, err := group.Get("hooks", &hooks); err != nil || !found {
		return raw, true
	}
	others := slices.DeleteFunc(slices.Clone(hooks), ours)
	if len(others) == len(hooks) {
		return raw, true
	}
	if len(others) == 0 || group.Set("hooks", others) != nil {
		return nil, false
	}
	changed, err := json.Marshal(group)
	if err != nil {
		return raw, true
	}
	return changed, true
}

// filter edits the elements of the array that is a member. One that becomes empty goes;
// what is no array is somebody else's and stays.
func filter(object bundle.Object, key string, keep func(json.RawMessage) (json.RawMessage, bool)) error {
	var list, kept []json.RawMessage
	if json.Unmarshal(object[key], &list) != nil || len(list) == 0 {
		return nil
	}
	for _, raw := range list {
		if changed, stays := keep(raw); stays {
			kept = append(kept, changed)
		}
	}
	if len(kept) == 0 {
		delete(object, key)
		return nil
	}
	return object.Set(key, kept)
}

// setUnless sets a member that has another value.
func setUnless(object bundle.Object, key string, value any) error {
	text, err := json.Marshal(value)
	if err != nil || string(object[key]) == string(text) {
		return err
	}
	return object.Set(key, value)
}

// refuseTrue is for switches that somebody has set on purpose.
func refuseTrue(object bundle.Object, key string) error {
	var on bool
	if _, err := object.Get(key, &on); err != nil {
		return err
	}
	if on {
		return fmt.Errorf("it has %s, with which no hook runs; take that out", key)
	}
	return nil
}
