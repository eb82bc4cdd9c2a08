// SPDX-License-Identifier: Apache-2.0

package frontend

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// Docker's daemon.json belongs to others. It is edited as text: what is not the
// runtime's entry stays byte for byte, with its order, numbers and layout.

// daemonJSON is the editor of Docker's configuration.
type daemonJSON struct{ path string } // of the runtime

func (d daemonJSON) add(text []byte) ([]byte, error)  { return addRuntime(text, d.path) }
func (daemonJSON) remove(text []byte) ([]byte, error) { return removeRuntime(text) }

// addRuntime returns the configuration with runtimes.actplane.path set. It is
// the same bytes if that was so.
func addRuntime(text []byte, path string) ([]byte, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}\n")
	}
	root, err := parseConfig(text)
	if err != nil {
		return nil, err
	}
	runtimes, found := root.member("runtimes")
	if !found {
		return root.add(text, "runtimes", func(l layout) string {
			return l.object("actplane", l.deeper().object("path", quote(path)))
		}), nil
	}
	inner, err := parseObject(text, runtimes.value)
	if err != nil {
		return nil, fmt.Errorf("\"runtimes\" %w", err)
	}
	own, found := inner.member(runtimeName)
	if !found {
		return inner.add(text, runtimeName, func(l layout) string { return l.object("path", quote(path)) }), nil
	}
	entry, err := parseObject(text, own.value)
	if err != nil {
		return nil, fmt.Errorf("\"runtimes.actplane\" %w", err)
	}
	current, found := entry.member("path")
	if !found || !isOurs(text[current.value.from:current.value.to]) {
		return nil, errors.New("\"runtimes.actplane\" is already there and is not ActPlane's")
	}
	if string(text[current.value.from:current.value.to]) == quote(path) {
		return text, nil
	}
	return splice(text, current.value, quote(path)), nil
}

// removeRuntime returns the configuration without our runtime, and without
// "runtimes" if nothing else is in it; the same bytes if it is not there.
func removeRuntime(text []byte) ([]byte, error) { return takeOut(text, false) }

// emptyRuntimes is removeRuntime that leaves an empty "runtimes".
func emptyRuntimes(text []byte) ([]byte, error) { return takeOut(text, true) }

func takeOut(text []byte, keepEmpty bool) ([]byte, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return text, nil
	}
	root, err := parseConfig(text)
	if err != nil {
		return nil, err
	}
	runtimes, found := root.member("runtimes")
	if !found {
		return text, nil
	}
	inner, err := parseObject(text, runtimes.value)
	if err != nil {
		return nil, fmt.Errorf("\"runtimes\" %w", err)
	}
	own, found := inner.member(runtimeName)
	if !found {
		return text, nil
	}
	entry, err := parseObject(text, own.value)
	if err != nil {
		return text, nil // not ours
	}
	if path, found := entry.member("path"); !found || !isOurs(text[path.value.from:path.value.to]) {
		return text, nil
	}
	if standard, found := root.member("default-runtime"); found && string(text[standard.value.from:standard.value.to]) == quote(runtimeName) {
		return nil, errors.New("\"default-runtime\" is actplane, and Docker would not start without it; change that first")
	}
	if len(inner.members) == 1 && !keepEmpty {
		return root.remove(text, runtimes), nil
	}
	return inner.remove(text, own), nil
}

// runtimePath is the program that Docker takes for the runtime.
func runtimePath(text []byte) string {
	var config struct {
		Runtimes map[string]struct {
			Path string `json:"path"`
		} `json:"runtimes"`
	}
	if json.Unmarshal(text[firstByte(text):], &config) != nil {
		return ""
	}
	return config.Runtimes[runtimeName].Path
}

func isOurs(value []byte) bool {
	var path string
	return json.Unmarshal(value, &path) == nil && filepath.Base(path) == runtimeProgram
}

func quote(text string) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a string always encodes
	return strings.TrimSuffix(out.String(), "\n")
}

// span is a part of the text.
type span struct{ from, to int }

func splice(text []byte, at span, with string) []byte {
	out := append([]byte{}, text[:at.from]...)
	out = append(out, with...)
	return append(out, text[at.to:]...)
}

// object is where a JSON object and its members are in the text.
type object struct {
	span
	lead    string // the white space before the first member
	members []member
}

type member struct {
	name  string
	key   span
	value span
}

func (o *object) member(name string) (member, bool) {
	for _, m := range o.members {
		if m.name == name {
			return m, true
		}
	}
	return member{}, false
}

// layout is how an object's members are set: each on a line of its own after
// indent, or all on one line.
type layout struct {
	newline string // empty: on one line
	indent  string // of the members
	unit    string
}

func (l layout) deeper() layout {
	l.indent += l.unit
	return l
}

// object is the text of an object with one member, in this layout's next level.
func (l layout) object(name, value string) string {
	if l.newline == "" {
		return "{" + quote(name) + ":" + value + "}"
	}
	return "{" + l.newline + l.indent + l.unit + quote(name) + ": " + value + l.newline + l.indent + "}"
}

// layoutOf finds how the text is laid out at an object.
func layoutOf(text []byte, o *object) layout {
	l := layout{unit: "    "}
	if bytes.IndexByte(text, '\n') < 0 && len(o.members) > 0 {
		return l
	}
	l.newline = "\n"
	if bytes.Contains(text, []byte("\r\n")) {
		l.newline = "\r\n"
	}
	line := text[bytes.LastIndexByte(text[:o.from], '\n')+1 : o.from]
	outer := string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
	if i := strings.LastIndexByte(o.lead, '\n'); i >= 0 {
		l.indent = o.lead[i+1:]
		if unit, ok := strings.CutPrefix(l.indent, outer); ok && unit != "" {
			l.unit = unit
		}
		return l
	}
	if root, err := parseObject(text, span{firstByte(text), len(text)}); err == nil && root.from != o.from {
		if i := strings.LastIndexByte(root.lead, '\n'); i >= 0 && root.lead[i+1:] != "" {
			l.unit = root.lead[i+1:]
		}
	}
	l.indent = outer + l.unit
	return l
}

// add inserts a member at the end of the object.
func (o *object) add(text []byte, name string, value func(layout) string) []byte {
	l := layoutOf(text, o)
	separator := ": "
	if l.newline == "" {
		separator = ":"
	}
	entry := quote(name) + separator + value(l)
	if len(o.members) == 0 {
		outer := strings.TrimSuffix(l.indent, l.unit)
		return splice(text, o.span, "{"+l.newline+l.indent+entry+l.newline+outer+"}")
	}
	end := o.members[len(o.members)-1].value.to
	lead := o.lead
	if l.newline != "" && !strings.Contains(lead, "\n") {
		lead = l.newline + l.indent
	}
	return splice(text, span{end, end}, ","+lead+entry)
}

// remove takes a member out, with the comma and the white space that it had.
func (o *object) remove(text []byte, gone member) []byte {
	for i, m := range o.members {
		switch {
		case m.key != gone.key:
		case i > 0:
			return splice(text, span{o.members[i-1].value.to, m.value.to}, "")
		case len(o.members) > 1:
			return splice(text, span{m.key.from, o.members[1].key.from}, "")
		default:
			return splice(text, o.span, "{}")
		}
	}
	return text
}
