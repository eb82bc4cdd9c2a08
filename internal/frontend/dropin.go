// SPDX-License-Identifier: Apache-2.0

package frontend

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/actplane/actplane/internal/plain"
)

// planOurs plans a file of our own beside others. A runtime of the same name in them
// that is not ours is refused; on the way out, so is one that is the default.
func planOurs(dropIn string, others []string, ed *block, standard []string, remove bool) ([]*Edit, error) {
	for _, path := range others {
		content, err := load(path)
		if err != nil {
			return nil, err
		}
		if !remove && lookUp(content, append(ed.table[:len(ed.table):len(ed.table)], tableEnd(ed)...)) != nil {
			return nil, fmt.Errorf("%s: [%s] is already there and is not ActPlane's; nothing was changed", path, tableHeader(ed.table))
		}
		if remove && lookUp(content, standard) == runtimeName {
			return nil, fmt.Errorf("%s: %q is actplane; change that first", path, strings.Join(standard, "."))
		}
	}
	e, err := planDropIn(dropIn, ed, remove)
	if err != nil {
		return nil, err
	}
	return []*Edit{e}, nil
}

// tableEnd is the key of ours in a table that others have keys in.
func tableEnd(ed *block) []string {
	if _, shared := ed.value[runtimeName]; shared {
		return []string{runtimeName}
	}
	return nil
}

// load reads a TOML file; it is empty where there is none.
func load(path string) (map[string]any, error) {
	e := &Edit{Path: path}
	if err := e.read(); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	content, err := decode(e.Before)
	if err != nil {
		return nil, fmt.Errorf("%s:%w", path, err)
	}
	return content, nil
}

// output runs a program that answers at once. The error is what it complains of, in
// one line.
func output(ctx context.Context, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	var complaint bytes.Buffer
	command := exec.CommandContext(ctx, name, args...)
	command.Stderr = &complaint
	out, err := command.Output()
	if err != nil && complaint.Len() > 0 {
		err = errors.New(oneLine(complaint.String()))
	}
	return string(out), err
}

func oneLine(text string) string {
	return plain.Text(strings.Join(strings.Fields(text), " "))
}
