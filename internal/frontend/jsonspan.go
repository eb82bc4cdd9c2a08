// SPDX-License-Identifier: Apache-2.0

package frontend

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// parseConfig finds the members of a JSON document that must be an object.
func parseConfig(text []byte) (*object, error) {
	start := firstByte(text)
	if err := json.Unmarshal(text[start:], new(json.RawMessage)); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			line, column := position(text, start+int(syntax.Offset))
			return nil, fmt.Errorf("%d:%d: %w", line, column, err)
		}
		return nil, err
	}
	o, err := parseObject(text, span{start, len(text)})
	if err != nil {
		return nil, fmt.Errorf("the document %w", err)
	}
	return o, nil
}

// firstByte is where the document begins: Docker, too, skips a byte order mark.
func firstByte(text []byte) int {
	start := 0
	if bytes.HasPrefix(text, []byte("\xef\xbb\xbf")) {
		start = 3
	}
	return start + spaces(text[start:])
}

// position counts from 1, columns in characters; offset is behind the culprit.
func position(text []byte, offset int) (line, column int) {
	before := text[:max(0, min(offset-1, len(text)))]
	line = bytes.Count(before, []byte("\n")) + 1
	return line, utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
}

// parseObject finds the members of the value that begins at at.from. The text is
// known to be valid JSON.
func parseObject(text []byte, at span) (*object, error) {
	if at.from >= len(text) || text[at.from] != '{' {
		return nil, errors.New("is not a JSON object")
	}
	o := &object{}
	i := at.from + 1
	o.from, o.lead = at.from, string(text[i:i+spaces(text[i:])])
	for {
		i += spaces(text[i:])
		switch text[i] {
		case '}':
			o.to = i + 1
			return o, nil
		case ',':
			i++
			continue
		}
		var m member
		m.key = span{i, valueEnd(text, i)}
		if err := json.Unmarshal(text[m.key.from:m.key.to], &m.name); err != nil {
			return nil, fmt.Errorf("has a key that cannot be read: %w", err)
		}
		if _, twice := o.member(m.name); twice {
			line, column := position(text, i+1)
			return nil, fmt.Errorf("has the key %q twice, the second at %d:%d", m.name, line, column)
		}
		i = m.key.to + spaces(text[m.key.to:]) + 1 // the colon
		i += spaces(text[i:])
		m.value = span{i, valueEnd(text, i)}
		o.members = append(o.members, m)
		i = m.value.to
	}
}

func spaces(text []byte) int {
	return len(text) - len(bytes.TrimLeft(text, " \t\r\n"))
}

// valueEnd is where the value that begins at i ends.
func valueEnd(text []byte, i int) int {
	depth := 0
	for ; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			for i++; text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case c == '{' || c == '[':
			depth++
			continue
		case c == '}' || c == ']':
			depth--
		case strings.IndexByte(" \t\r\n,:", c) >= 0:
			continue
		default:
			for i+1 < len(text) && strings.IndexByte(" \t\r\n,:}]", text[i+1]) < 0 {
				i++
			}
		}
		if depth == 0 {
			return i + 1
		}
	}
	return i
}
