// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"encoding/json"
	"errors"
	"io"
)

// maxEvent bounds the event that is read, in bytes; a tool's output is part of it.
const maxEvent = 32 << 20

// event is what an agent says to its hook: the top-level fields of a JSON object.
type event map[string]json.RawMessage

// readEvent reads one object; what comes behind it stays. Of one that breaks off it
// returns the fields that came before, with an error.
func readEvent(in io.Reader) (event, error) {
	e := event{}
	decoder := json.NewDecoder(in)
	if start, err := decoder.Token(); err != nil || start != json.Delim('{') {
		return e, errors.New("it is not a JSON object")
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return e, err
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return e, err
		}
		e[name.(string)] = value // within an object, a name is always a string
	}
	_, err := decoder.Token()
	return e, err
}

// has tells whether all of the fields are there.
func (e event) has(names ...string) bool {
	for _, name := range names {
		if _, there := e[name]; !there {
			return false
		}
	}
	return true
}

// text is the first of the fields that is a string with something in it.
func (e event) text(names ...string) string {
	for _, name := range names {
		var text string
		if json.Unmarshal(e[name], &text) == nil && text != "" {
			return text
		}
	}
	return ""
}

// is tells whether a field is exactly this, in JSON.
func (e event) is(name, value string) bool { return string(e[name]) == value }
