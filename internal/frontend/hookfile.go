// SPDX-License-Identifier: Apache-2.0

package frontend

import (
	"encoding/json"
	"errors"
	"path/filepath"
)

// HooksFolder is the one folder of hooks that podman and CRI-O read unless they are told
// otherwise.
const HooksFolder = "/usr/share/containers/oci/hooks.d"

const (
	hookName    = "50-actplane.json"
	hookProgram = "actplane-hook"
)

// hookFile is the editor of the file by which podman and CRI-O call our hook where a
// container has one of our annotations and another runtime. It is one JSON document
// without comments: who changed it keeps the change, as long as it calls this hook.
type hookFile struct{ content, program string }

func (h hookFile) add(text []byte) ([]byte, error) {
	if text == nil {
		return h.fill()
	}
	switch path := hookPath(text); {
	case path == h.program:
		return text, nil
	case filepath.Base(path) == hookProgram:
		return h.fill() // of an installation in another place
	}
	return nil, errors.New("it is not ActPlane's")
}

func (hookFile) remove(text []byte) ([]byte, error) {
	if filepath.Base(hookPath(text)) != hookProgram {
		return text, nil
	}
	return nil, nil
}

// fill is the file with the hook's path.
func (h hookFile) fill() ([]byte, error) {
	text := []byte(h.content)
	root, err := parseConfig(text)
	if err != nil {
		return nil, err
	}
	hook, found := root.member("hook")
	if !found {
		return nil, errors.New("there is no hook in it")
	}
	inner, err := parseObject(text, hook.value)
	if err != nil {
		return nil, err
	}
	path, found := inner.member("path")
	if !found {
		return nil, errors.New("the hook has no path")
	}
	return splice(text, path.value, quote(h.program)), nil
}

// hookPath is the program that a file of hooks calls.
func hookPath(text []byte) string {
	var file struct {
		Hook struct {
			Path string `json:"path"`
		} `json:"hook"`
	}
	if json.Unmarshal(text, &file) != nil {
		return ""
	}
	return file.Hook.Path
}

// planHook is the edit of the hook's file; none if the programs come without one.
func (p Programs) planHook(folder string, remove bool) ([]*Edit, error) {
	if p.Hook == "" {
		return nil, nil
	}
	path := filepath.Join(folder, hookName)
	e, err := plan(&Edit{Path: path, target: path, mode: 0o644, removing: remove, dropIn: true}, hookFile{p.Hook, p.path(hookProgram)})
	if err != nil {
		return nil, err
	}
	return []*Edit{e}, nil
}
