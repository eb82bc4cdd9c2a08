// SPDX-License-Identifier: Apache-2.0

package frontend

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"

	"github.com/pelletier/go-toml/v2"
)

// What is ours in a TOML file stands between these lines, at the end of the file: the
// tables are named in full there, so that they mean the same wherever they stand.
const (
	blockBegin = "# ---- actplane: from here, written by \"actplane install\" and removed by \"actplane uninstall\"\n"
	blockEnd   = "# ---- actplane: to here\n"
	// folderMade is noted where the file's folder is to go with it.
	folderMade = "# the folder was made for this file\n"
)

// A block is the editor of TOML files: it adds a table.
type block struct {
	table []string       // the keys that lead to it
	body  string         // its text, headers included
	value map[string]any // what the text says of the table, which is checked
	// version is that of the document, told where it says nothing else; 0 for none.
	version int64
	// folderMade is whether the file's folder is made with it.
	folderMade bool
}

func (b *block) add(text []byte) ([]byte, error) {
	rest, err := b.remove(text)
	if err != nil {
		return nil, err
	}
	want, err := decode(rest)
	if err != nil {
		return nil, err
	}
	if lookUp(want, b.table) != nil {
		return nil, fmt.Errorf("[%s] is already there and is not ActPlane's", tableHeader(b.table))
	}
	body := b.body
	if b.version > 0 && len(want) == 0 {
		want["version"] = b.version
		body = fmt.Sprintf("version = %d\n%s", b.version, body)
	}
	if b.folderMade || bytes.Contains(text, []byte(folderMade)) {
		body = folderMade + body
	}
	at := span{len(text), len(text)}
	if found, err := findBlock(text); err != nil {
		return nil, err
	} else if found != nil {
		at = *found
	}
	lead := ""
	if at.from == len(text) && len(text) > 0 {
		lead = "\n" // ends the line before, or is an empty one
	}
	out := splice(text, at, lead+blockBegin+body+blockEnd)
	now, err := decode(out)
	if err != nil {
		return nil, fmt.Errorf("the runtime's table cannot be added at its end (%w): give the tables that are written in braces or by keys with dots headers of their own", err)
	}
	put(want, b.table, b.value)
	if !reflect.DeepEqual(want, now) {
		return nil, errors.New("with the runtime's table it would not say what it says now and that table; does text behind ActPlane's lines belong to a table above them?")
	}
	return out, nil
}

func (b *block) remove(text []byte) ([]byte, error) {
	found, err := findBlock(text)
	if err != nil || found == nil {
		return text, err
	}
	want, err := decode(text)
	if err != nil {
		return nil, err
	}
	ours, err := decode(text[found.from:found.to])
	if err != nil {
		return nil, err
	}
	// The line end that add put before it: it ends no line of others', or nothing follows.
	at, head := *found, text[:found.from]
	if bytes.HasSuffix(head, []byte("\n\n")) || bytes.HasSuffix(head, []byte("\n\r\n")) || len(head) > 0 && at.to == len(text) {
		at.from--
	}
	out := splice(text, at, "")
	now, err := decode(out)
	if err != nil {
		return nil, err
	}
	subtract(want, ours, true)
	subtract(now, ours, false)
	if !reflect.DeepEqual(want, now) {
		return nil, errors.New("without ActPlane's lines it would not say what it says now but the runtime's table: text behind them belongs to it; give that text a header of its own")
	}
	return out, nil
}

// findBlock finds our lines; nil if they are not there.
func findBlock(text []byte) (*span, error) {
	from := bytes.Index(text, []byte(blockBegin))
	to := bytes.Index(text, []byte(blockEnd))
	switch {
	case from < 0 && to < 0:
		return nil, nil
	case from < 0 || to < from || bytes.Count(text, []byte(blockBegin)) > 1 || bytes.Count(text, []byte(blockEnd)) > 1:
		return nil, errors.New("the comments around ActPlane's lines are not whole; take its table and what is left of them out by hand")
	case from > 0 && text[from-1] != '\n':
		return nil, errors.New("the comment before ActPlane's lines does not begin a line")
	}
	return &span{from, to + len(blockEnd)}, nil
}

// decode reads TOML. An error tells line and column.
func decode(text []byte) (map[string]any, error) {
	out := map[string]any{}
	err := toml.Unmarshal(text, &out)
	var wrong *toml.DecodeError
	if errors.As(err, &wrong) {
		line, column := wrong.Position()
		return nil, fmt.Errorf("%d:%d: %w", line, column, err)
	}
	return out, err
}

// lookUp is the value to which keys lead, nil if there is none.
func lookUp(in map[string]any, keys []string) any {
	var value any = in
	for _, key := range keys {
		table, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		if value, ok = table[key]; !ok {
			return nil
		}
	}
	return value
}

// put sets a value, and makes the tables on the way to it.
func put(in map[string]any, keys []string, value any) {
	for _, key := range keys[:len(keys)-1] {
		next, ok := in[key].(map[string]any)
		if !ok {
			next = map[string]any{}
			in[key] = next
		}
		in = next
	}
	in[keys[len(keys)-1]] = value
}

// subtract takes out of a document what another says, if values is set, and the tables
// that the other names and that are empty.
func subtract(from, what map[string]any, values bool) {
	for key, value := range what {
		table, isTable := value.(map[string]any)
		mine, ok := from[key].(map[string]any)
		if isTable && ok {
			subtract(mine, table, values)
		}
		if isTable && ok && len(mine) == 0 || !isTable && values {
			delete(from, key)
		}
	}
}
