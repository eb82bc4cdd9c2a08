// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Object is a JSON object whose members stay raw until somebody edits them.
type Object map[string]json.RawMessage

// UnmarshalJSON refuses names that come twice or differ only in case: runc and
// crun would each take another one of them than we.
func (o *Object) UnmarshalJSON(data []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	start, err := decoder.Token()
	if err != nil {
		return err
	}
	if start == nil {
		*o = nil
		return nil
	}
	if start != json.Delim('{') {
		return fmt.Errorf("expected an object, found %s", kindOf(data))
	}
	object := Object{}
	seen := map[string]string{}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return err
		}
		name := token.(string) // within an object, a name is always a string
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return fmt.Errorf("%q: %w", name, err)
		}
		folded := strings.ToLower(name)
		if other, ok := seen[folded]; ok {
			return fmt.Errorf("ambiguous keys %q and %q", other, name)
		}
		seen[folded] = name
		object[name] = value
	}
	*o = object
	return nil
}

func kindOf(data []byte) string {
	switch first := bytes.TrimLeft(data, " \t\r\n"); {
	case len(first) == 0:
		return "nothing"
	case first[0] == '[':
		return "an array"
	case first[0] == '"':
		return "a string"
	default:
		return "a number or a boolean"
	}
}

// lookup finds a member. A name in another case is an error: Go programs such as
// runc take it for this one.
func (o Object) lookup(key string) (json.RawMessage, error) {
	if value, ok := o[key]; ok {
		if string(value) == "null" {
			return nil, nil
		}
		return value, nil
	}
	for name := range o {
		if strings.EqualFold(name, key) {
			return nil, fmt.Errorf("ambiguous key %q: write %q", name, key)
		}
	}
	return nil, nil
}

// Get decodes a member into a value; a missing or null member leaves it alone
// and gives false.
func (o Object) Get(key string, into any) (bool, error) {
	raw, err := o.lookup(key)
	if err != nil || raw == nil {
		return false, err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return false, fmt.Errorf("parse %q: %w", key, err)
	}
	return true, nil
}

// Set replaces a member, or adds it.
func (o Object) Set(key string, value any) error {
	if _, err := o.lookup(key); err != nil {
		return err
	}
	raw, err := encode(value)
	if err != nil {
		return fmt.Errorf("encode %q: %w", key, err)
	}
	o[key] = raw
	return nil
}

// Update edits the object that is a member; a missing one is made, and stays
// missing when the edit leaves it empty.
func (o Object) Update(key string, edit func(Object) error) error {
	var child Object
	found, err := o.Get(key, &child)
	if err != nil {
		return err
	}
	if child == nil {
		child = Object{}
	}
	if err := edit(child); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	if !found && len(child) == 0 {
		return nil
	}
	return o.Set(key, child)
}

// Append adds elements to the array that is a member.
func (o Object) Append(key string, values ...any) error {
	var list []json.RawMessage
	if _, err := o.Get(key, &list); err != nil {
		return err
	}
	for _, value := range values {
		raw, err := encode(value)
		if err != nil {
			return fmt.Errorf("encode %q: %w", key, err)
		}
		list = append(list, raw)
	}
	return o.Set(key, list)
}

// Filter removes the elements of the array that is a member for which drop says
// so, and leaves the others as they are.
func (o Object) Filter(key string, drop func(json.RawMessage) bool) error {
	var list []json.RawMessage
	if found, err := o.Get(key, &list); err != nil || !found {
		return err
	}
	kept := slices.DeleteFunc(slices.Clone(list), drop)
	if len(kept) == len(list) {
		return nil
	}
	return o.Set(key, kept)
}

// Keys are the names of the members, sorted.
func (o Object) Keys() []string {
	return slices.Sorted(maps.Keys(o))
}
