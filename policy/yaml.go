// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/actplane/actplane/policy/diag"
)

// parse returns the document's root node.
func (r *reader) parse(data []byte) (root *yaml.Node, ok bool) {
	data, ok = r.directives(data)
	if !ok {
		return nil, false
	}
	var doc, second yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	err := decode(dec, &doc)
	if errors.Is(err, io.EOF) || err == nil && (len(doc.Content) == 0 || doc.Content[0].ShortTag() == "!!null" && doc.Content[0].Kind == yaml.ScalarNode) {
		r.diags = append(r.diags, r.text.New(diag.WrongType, diag.Span{}, "the file is empty").
			WithHint("a policy file begins with version: 1"))
		return nil, false
	}
	if err != nil {
		r.badYAML(err)
		return nil, false
	}
	switch err := decode(dec, &second); {
	case err == nil:
		r.report(diag.BadYAML, &second, "the file holds more than one YAML document")
		return nil, false
	case !errors.Is(err, io.EOF):
		r.badYAML(err)
		return nil, false
	}
	return resolve(doc.Content[0]), true
}

// yamlVersion is the directive of a version that is known; of both, all that a policy
// needs means the same.
var yamlVersion = regexp.MustCompile(`^%YAML[ \t]+1\.[12]([ \t]+#.*|[ \t]*)$`)

// directives reads the lines that begin with a percent sign before the document. The
// library knows no version but 1.1, which is put in the other's place.
func (r *reader) directives(data []byte) (out []byte, ok bool) {
	seen := false
	for n := 1; n <= r.text.Lines(); n++ {
		line := strings.TrimRight(r.text.Line(n), "\r")
		switch at := r.text.Offset(diag.Pos{Line: n, Col: 1}); {
		case strings.TrimSpace(line) == "" || line[0] == '#':
		case line[0] != '%':
			if seen && !strings.HasPrefix(line, "---") {
				r.diags = append(r.diags, r.text.New(diag.BadYAML, diag.Span{Start: at, End: at + 1}, "a line with --- is missing below the directive").
					WithHint("write --- above this line"))
				return nil, false
			}
			return data, true
		case !yamlVersion.MatchString(line):
			word := strings.Fields(line)[0]
			d := r.text.New(diag.BadYAML, diag.Span{Start: at, End: at + len(line)}, "the YAML directive %s is not supported", word)
			if word == "%YAML" {
				d.Message = "this version of YAML is not supported"
			}
			r.diags = append(r.diags, d.WithHint("leave it out, or write %%YAML 1.2 and below it ---"))
			return nil, false
		default:
			seen = true
			i := bytes.Index(data, []byte(line)) // the text may have lost a byte order mark
			data = slices.Clone(data)
			data[i+bytes.IndexByte(data[i:], '.')+1] = '1'
		}
	}
	return data, true
}

// decode keeps a panic of the YAML library from ending the process: the text
// may come from an image.
func decode(dec *yaml.Decoder, n *yaml.Node) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("yaml: %v", p)
		}
	}()
	return dec.Decode(n)
}

// resolve follows an alias.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

// maxAliased bounds the nodes that all aliases together stand for.
const maxAliased = 10000

// boundedAliases refuses aliases that stand for too much, or for themselves.
func (r *reader) boundedAliases(root *yaml.Node) bool {
	sizes := map[*yaml.Node]int{}
	total := 0
	var size func(n *yaml.Node) int
	size = func(n *yaml.Node) int {
		if known, ok := sizes[n]; ok {
			return known
		}
		sizes[n] = maxAliased + 1 // for an alias inside what it stands for
		sum := 1
		for _, c := range n.Content {
			sum = min(sum+size(c), maxAliased+1)
		}
		if n.Kind == yaml.AliasNode {
			sum = size(n.Alias)
			if total += sum; total > maxAliased {
				if total-sum <= maxAliased {
					r.report(diag.AliasBomb, n, "the aliases up to here stand for more than %d nodes; the limit is %d", maxAliased, maxAliased)
				}
				return maxAliased + 1
			}
		}
		sizes[n] = sum
		return sum
	}
	size(root)
	return total <= maxAliased
}

// span returns where a node stands: its first line.
func (r *reader) span(n *yaml.Node) diag.Span {
	start := r.text.Offset(diag.Pos{Line: n.Line, Col: n.Column})
	length := 1
	if n.Kind == yaml.ScalarNode && n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
		length = max(1, len(n.Value))
		if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 {
			length += 2
		}
	}
	return diag.Span{Start: start, End: min(start+length, len(r.text.Body))}
}

// offsets returns the place in the file of each byte of a scalar's value. In
// all styles the characters that are not blank come in the order in which they
// are written; only blanks are added, joined and dropped.
func (r *reader) offsets(n *yaml.Node) []int {
	raw := r.text.Body
	at := r.content(n)
	value := n.Value
	out := make([]int, 0, len(value)+1)
	for i := 0; i < len(value); {
		c, size := utf8.DecodeRuneInString(value[i:])
		if blank(c) {
			last := at
			if len(out) > 0 {
				last = out[len(out)-1] + 1
			}
			out = append(out, last)
			i++
			continue
		}
		var length int
		at, length = skipBlank(raw, at, n.Style)
		for k := range size {
			out = append(out, min(at+min(k, length-1), len(raw)))
		}
		at = min(at+length, len(raw))
		i += size
	}
	return append(out, at)
}

// content returns where a scalar's text begins, after anchor, tag, quote or
// block indicator.
func (r *reader) content(n *yaml.Node) int {
	raw := r.text.Body
	at := r.text.Offset(diag.Pos{Line: n.Line, Col: n.Column})
	for at < len(raw) && (raw[at] == '&' || raw[at] == '!') {
		for at < len(raw) && !blank(rune(raw[at])) {
			at++
		}
		for at < len(raw) && blank(rune(raw[at])) {
			at++
		}
	}
	switch {
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		for at < len(raw) && raw[at] != '\n' && raw[at] != '\r' {
			at++
		}
	case n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0:
		at++
	}
	return min(at, len(raw))
}

// skipBlank returns where the next character stands that is not blank, and how
// many bytes it takes as written.
func skipBlank(raw []byte, at int, style yaml.Style) (start, length int) {
	for at < len(raw) {
		c, size := utf8.DecodeRune(raw[at:])
		switch {
		case blank(c):
			at += size
		case c == '\\' && style&yaml.DoubleQuotedStyle != 0:
			value, n := escape(raw[at:])
			if !blank(value) {
				return at, n
			}
			at += n
		case c == '\'' && style&yaml.SingleQuotedStyle != 0:
			return at, 2
		default:
			return at, size
		}
	}
	return len(raw), 1
}

// escape returns the character that an escape of a double-quoted scalar stands
// for, and its length.
func escape(raw []byte) (rune, int) {
	if len(raw) < 2 {
		return '\\', 1
	}
	digits := 0
	switch raw[1] {
	case 'n', 't', 'r', ' ', '\t', '\n', '\r':
		return ' ', 2
	case 'x':
		digits = 2
	case 'u':
		digits = 4
	case 'U':
		digits = 8
	}
	if digits == 0 || len(raw) < 2+digits {
		return rune(raw[1]), 2
	}
	v, err := strconv.ParseUint(string(raw[2:2+digits]), 16, 32)
	if err != nil {
		return 'x', 2
	}
	return rune(v), 2 + digits
}

func blank(c rune) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
