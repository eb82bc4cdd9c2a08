// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/actplane/actplane/policy/diag"
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/syntax"
)

// Format returns a policy file in its canonical form: its policy texts as
// syntax.Format writes them, as literal blocks that are indented by two; lines that
// end in a line feed and no blanks; no more than one empty line at a time, and none
// at the ends. All else of the file stays as it is written, comments included.
//
// A file with errors has no form, only diagnostics. What Format returns compiles to
// the same program as what it got: where the form would change it, which no known
// file does, the file is returned as it was.
func Format(name string, text []byte) ([]byte, diag.List) {
	before, err := Compile([]Document{{Name: name, Text: text}}, Options{})
	if err != nil {
		return nil, diagnosticsOf(name, text, err)
	}
	out, list := canonical(name, text)
	if list != nil {
		return nil, list
	}
	after, err := Compile([]Document{{Name: name, Text: out}}, Options{})
	if err != nil || !sameProgram(before.Program, after.Program) {
		return slices.Clone(text), nil
	}
	return out, nil
}

// diagnosticsOf returns an error of Compile as diagnostics, which it mostly is.
func diagnosticsOf(name string, text []byte, err error) diag.List {
	if list, ok := err.(diag.List); ok {
		return list
	}
	return diag.List{diag.NewText(name, text).New(diag.OverLimit, diag.Span{}, "%v", err)}
}

// canonical returns the form of a file that compiles.
func canonical(name string, text []byte) ([]byte, diag.List) {
	text = bytes.TrimPrefix(text, []byte("\xEF\xBB\xBF"))
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	text = bytes.ReplaceAll(text, []byte("\r"), []byte("\n"))
	r := &reader{text: diag.NewText(name, text)}
	root, ok := r.parse(text)
	if !ok {
		return nil, r.diags
	}
	f := formatter{reader: r, lines: strings.Split(strings.TrimRight(string(text), " \t\n"), "\n"), kept: map[int]bool{}}
	blocks := f.blocks(root)
	f.keepScalars(root, blocks)
	for _, b := range blocks {
		if list := f.block(b); list != nil {
			return nil, list
		}
	}
	return f.join(), nil
}

// formatter rewrites the lines of a file.
type formatter struct {
	*reader
	lines    []string
	kept     map[int]bool // the lines, counted from 0, that stay as they are
	replaced []replacement
}

// replacement is the text for the lines from first to before end.
type replacement struct {
	first, end int
	text       []string
}

// policyBlock is a policy text that is written as a block.
type policyBlock struct{ key, value *yaml.Node }

// blocks returns the policy texts, in the order of the file.
func (f *formatter) blocks(root *yaml.Node) []policyBlock {
	var out []policyBlock
	pairs(root, func(key, value *yaml.Node) {
		switch key.Value {
		case "policy", "ifc":
			out = append(out, policyBlock{key, value})
		case "rules":
			pairs(value, func(_, rule *yaml.Node) {
				pairs(rule, func(key, value *yaml.Node) {
					if key.Value == "policy" || key.Value == "ifc" {
						out = append(out, policyBlock{key, value})
					}
				})
			})
		}
	})
	return slices.DeleteFunc(out, func(b policyBlock) bool {
		return b.value.Kind != yaml.ScalarNode || b.value.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0
	})
}

// pairs calls f for the pairs of a mapping that stand there, not behind an alias.
func pairs(n *yaml.Node, f func(key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		f(n.Content[i], n.Content[i+1])
	}
}

// block replaces the lines of one policy text.
func (f *formatter) block(b policyBlock) diag.List {
	text := f.embed(b.value)
	if text == nil {
		return f.diags
	}
	printed, list := syntax.Format(text)
	if list.Errors() > 0 {
		return list
	}
	line := f.text.Pos(f.content(b.value)).Line - 1 // of the | or >
	head, number := header(f.lines[line])
	out, end := []string{head}, line+1
	if printed != "" {
		end = f.blockEnd(end, b.key.Column, number)
	}
	for l := range strings.Lines(printed) {
		l = strings.TrimSuffix(l, "\n")
		if l != "" {
			l = strings.Repeat(" ", b.key.Column+1) + l
		}
		out = append(out, l)
	}
	f.outdent(end, b.key.Column)
	f.replaced = append(f.replaced, replacement{line, end, out})
	return nil
}

// header returns the line that begins a block with a | alone for its indicator, and
// the number that the indicator had.
func header(line string) (string, int) {
	m := regexp.MustCompile(`^(.*?[ \t:])?[|>]([-+0-9]*)[ \t]*([ \t]#.*)?$`).FindStringSubmatch(line)
	if m == nil {
		return line, 0
	}
	out := m[1] + "|"
	if comment := strings.TrimSpace(m[3]); comment != "" {
		out += "  " + comment
	}
	number, _ := strconv.Atoi(strings.Trim(m[2], "+-"))
	return out, number
}

// blockEnd returns the line after the last of a block that begins with line first,
// whose key stands in column, and which is indented by number more if that is not 0.
// The empty lines after it are not of it.
func (f *formatter) blockEnd(first, column, number int) int {
	indent := 0
	if number > 0 {
		indent = column - 1 + number
	}
	end := first
	for i := first; i < len(f.lines); i++ {
		l := f.lines[i]
		if strings.TrimSpace(l) == "" {
			continue
		}
		in := indentOf(l)
		if indent == 0 {
			indent = in
		}
		if in < indent || in < column {
			return end
		}
		end = i + 1
	}
	return end
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// outdent moves the comments after a block, whose key stands in column, out of the
// place of its text.
func (f *formatter) outdent(first, column int) {
	for i := first; i < len(f.lines); i++ {
		l := strings.TrimSpace(f.lines[i])
		if l != "" && l[0] != '#' {
			return
		}
		if indentOf(f.lines[i]) >= column {
			f.lines[i] = strings.Repeat(" ", column-1) + l
		}
	}
}

// keepScalars keeps the lines of scalars that go on over their line, where empty
// lines and blanks may mean something.
func (f *formatter) keepScalars(root *yaml.Node, blocks []policyBlock) {
	var all []*yaml.Node
	var walk func(n *yaml.Node)
	walk = func(n *yaml.Node) {
		all = append(all, n)
		for _, c := range n.Content {
			walk(c)
		}
	}
	walk(root)
	for i, n := range all {
		isBlock := slices.ContainsFunc(blocks, func(b policyBlock) bool { return b.value == n })
		if n.Kind != yaml.ScalarNode || isBlock || f.oneLine(n) {
			continue
		}
		end := len(f.lines)
		if i+1 < len(all) {
			end = all[i+1].Line - 1
		}
		for l := n.Line - 1; l < end; l++ {
			f.kept[l] = true
		}
	}
}

// oneLine tells whether a scalar is written on the line where it begins.
func (f *formatter) oneLine(n *yaml.Node) bool {
	if n.Value == "" || n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return n.Value == ""
	}
	offsets := f.offsets(n)
	first := f.text.Offset(diag.Pos{Line: n.Line, Col: n.Column})
	end := min(offsets[len(offsets)-1], len(f.text.Body))
	return bytes.IndexByte(f.text.Body[first:max(first, end)], '\n') < 0
}

// join returns the file with its lines replaced.
func (f *formatter) join() []byte {
	var out []string
	add := func(l string, keep bool) {
		if !keep {
			l = strings.TrimRight(l, " \t")
			if l == "" && (len(out) == 0 || out[len(out)-1] == "") {
				return
			}
		}
		out = append(out, l)
	}
	slices.SortFunc(f.replaced, func(a, b replacement) int { return a.first - b.first })
	for i := 0; i < len(f.lines); i++ {
		if len(f.replaced) > 0 && f.replaced[0].first == i {
			out = append(out, f.replaced[0].text...)
			i = f.replaced[0].end - 1
			f.replaced = f.replaced[1:]
			continue
		}
		add(f.lines[i], f.kept[i])
	}
	return []byte(strings.Join(out, "\n") + "\n")
}

// sameProgram tells whether two programs differ in nothing but where and how they
// are written.
func sameProgram(a, b *ir.Program) bool {
	return reflect.DeepEqual(meaning(a), meaning(b))
}

// meaning returns a program without positions, hashes and texts as written.
func meaning(p *ir.Program) *ir.Program {
	out := *p
	out.Layers, out.Sources = slices.Clone(p.Layers), slices.Clone(p.Sources)
	out.Transforms, out.Defaults = slices.Clone(p.Transforms), slices.Clone(p.Defaults)
	out.Rules, out.Clauses = slices.Clone(p.Rules), slices.Clone(p.Clauses)
	out.Gates, out.Protects = slices.Clone(p.Gates), slices.Clone(p.Protects)
	out.Feedback.Pos = ""
	for i := range out.Layers {
		out.Layers[i].SHA256 = ""
	}
	for i := range out.Sources {
		out.Sources[i].Pos, out.Sources[i].Text = "", ""
	}
	for i := range out.Transforms {
		out.Transforms[i].Pos, out.Transforms[i].Text = "", ""
	}
	for i := range out.Defaults {
		out.Defaults[i].Pos, out.Defaults[i].Text = "", ""
	}
	for i := range out.Rules {
		out.Rules[i].Pos = ""
	}
	for i := range out.Clauses {
		out.Clauses[i].Pos, out.Clauses[i].Text = "", ""
	}
	for i := range out.Gates {
		out.Gates[i].Text = ""
	}
	for i := range out.Protects {
		out.Protects[i].Pos, out.Protects[i].Text = "", ""
	}
	return &out
}
