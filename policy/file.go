// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"io"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/actplane/actplane/policy/diag"
	"github.com/actplane/actplane/policy/ir"
)

// MaxFileSize bounds a policy document, in bytes.
const MaxFileSize = 1 << 20

// maxReports ends the reading of a file that is something else altogether.
const maxReports = 1000

// file is what a policy document holds.
type file struct {
	text      *diag.Text
	policy    *diag.Text // the policy block; empty without one
	workspace string
	limits    ir.Limits
}

// keys of the file, and those that later versions have.
var (
	fileKeys  = []string{"version", "workspace", "policy", "ifc", "limits"}
	laterKeys = []string{"protect", "feedback", "rules", "domains", "default_domain"}
)

// reader collects what is wrong with a document.
type reader struct {
	text  *diag.Text
	diags diag.List
}

// readFile reads a document. The file is nil when there is nothing to go on
// with; otherwise its policy is worth parsing even after errors.
func readFile(name string, data []byte) (*file, diag.List) {
	data = bytes.TrimPrefix(data, []byte("\xEF\xBB\xBF"))
	if len(data) > MaxFileSize {
		t := diag.NewText(name, nil)
		return nil, diag.List{t.New(diag.TooLarge, diag.Span{}, "the file has more than %d bytes", MaxFileSize)}
	}
	r := &reader{text: diag.NewText(name, data)}
	if !r.characters(r.text) {
		return nil, r.diags
	}
	root, ok := r.parse(data)
	if !ok || !r.boundedAliases(root) {
		return nil, r.diags
	}
	f := &file{text: r.text, policy: r.text.Embed(nil, []int{0})}
	r.top(root, f)
	return f, r.diags
}

// characters refuses what is not UTF-8 and characters that show nothing, or
// that editors and YAML take for line ends and others don't.
func (r *reader) characters(t *diag.Text) bool {
	for i := 0; i < len(t.Body); {
		c, n := utf8.DecodeRune(t.Body[i:])
		at := diag.Span{Start: i, End: i + n}
		switch {
		case c == utf8.RuneError && n == 1:
			r.diags = append(r.diags, t.New(diag.NotUTF8, at, "the byte 0x%02x is not UTF-8", t.Body[i]))
			return false
		case c != '\t' && c != '\n' && c != '\r' && (unicode.IsControl(c) || c == '\u2028' || c == '\u2029'),
			unicode.Is(unicode.Bidi_Control, c), c == '\uFEFF':
			r.diags = append(r.diags, t.New(diag.ControlChar, at, "the character %U is not allowed", c))
			return false
		}
		i += n
	}
	return true
}

// top reads the document's mapping.
func (r *reader) top(root *yaml.Node, f *file) {
	var policyKey *yaml.Node
	r.mapping(root, "a policy file", func(key, value *yaml.Node) {
		switch key.Value {
		case "version":
			if value.Kind != yaml.ScalarNode || value.Value != "1" {
				r.report(diag.BadVersion, value, "version %q is not known", value.Value).Hint = "write version: 1"
			}
		case "workspace":
			f.workspace = r.workspace(value)
		case "policy", "ifc":
			if policyKey != nil {
				if policyKey.Value != key.Value {
					r.report(diag.TwoPolicies, key, "%s and %s are the same thing, and both are here", policyKey.Value, key.Value).
						Hint = "keep one"
				}
				return
			}
			policyKey = key
			r.policy(key, value, f)
		case "limits":
			f.limits = r.limits(value)
		default:
			r.unknownKey(key, "", fileKeys, laterKeys)
		}
	})
}

// mapping calls f for each pair of a mapping, aliases resolved, after it has
// reported keys that are there twice.
func (r *reader) mapping(n *yaml.Node, what string, f func(key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		r.report(diag.WrongType, n, "%s is a mapping of keys to values, not %s", what, kindName(n))
		return
	}
	seen := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content) && len(r.diags) < maxReports; i += 2 {
		key, value := n.Content[i], resolve(n.Content[i+1])
		if key.Kind != yaml.ScalarNode {
			r.report(diag.WrongType, key, "a key must be a word")
			continue
		}
		if first, ok := seen[key.Value]; ok {
			r.report(diag.DuplicateKey, key, "key %q is there twice", key.Value).
				Hint = "the first is at " + r.text.Where(r.span(first).Start)
			continue
		}
		seen[key.Value] = key
		f(key, value)
	}
}

func (r *reader) unknownKey(key *yaml.Node, in string, known, later []string) {
	for _, k := range later {
		if k == key.Value {
			r.report(diag.NotSupported, key, "not supported by this version: %s%s", in, k)
			return
		}
	}
	d := r.report(diag.UnknownKey, key, "unknown key %q", in+key.Value)
	if s := diag.Suggest(key.Value, append(append([]string(nil), known...), later...)); s != "" {
		d.Hint = "did you mean \"" + s + "\"?"
	} else {
		d.Hint = "the keys are " + strings.Join(known, ", ")
	}
}

func (r *reader) workspace(n *yaml.Node) string {
	s, ok := r.str(n, "workspace")
	if !ok {
		return ""
	}
	if !path.IsAbs(s) {
		r.report(diag.BadWorkspace, n, "workspace %q is no absolute path", s).Hint = "write the path in the container, such as /workspace"
		return ""
	}
	return path.Clean(s)
}

// policy takes the policy block, with the way back to its place in the file.
func (r *reader) policy(key, value *yaml.Node, f *file) {
	if value.Kind == yaml.ScalarNode && value.ShortTag() == "!!null" {
		r.report(diag.WrongType, key, "%s is empty", key.Value).Hint = "write `" + key.Value + ": |` and indent the text below it"
		return
	}
	if value.Kind != yaml.ScalarNode || value.ShortTag() != "!!str" {
		r.report(diag.WrongType, value, "%s is a text, not %s", key.Value, kindName(value)).
			Hint = "write `" + key.Value + ": |` and indent the text below it"
		return
	}
	body := []byte(value.Value)
	t := r.text.Embed(body, r.offsets(value))
	if r.characters(t) {
		f.policy = t
	}
}

func (r *reader) str(n *yaml.Node, what string) (string, bool) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" || n.Value == "" {
		r.report(diag.WrongType, n, "%s is a text, not %s", what, kindName(n))
		return "", false
	}
	return n.Value, true
}

// report adds a diagnostic about a node and returns it, for its hint.
func (r *reader) report(code diag.Code, n *yaml.Node, format string, args ...any) *diag.Diagnostic {
	r.diags = append(r.diags, r.text.New(code, r.span(n), format, args...))
	return &r.diags[len(r.diags)-1]
}

func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.ShortTag() {
	case "!!null":
		return "empty"
	case "!!bool":
		return "true or false"
	case "!!int", "!!float":
		return "a number"
	}
	if n.Value == "" {
		return "empty"
	}
	return "a text"
}

// ReadDocument reads a document's text, and no more of it than is needed to
// say that it is too large.
func ReadDocument(r io.Reader) ([]byte, error) {
	return io.ReadAll(io.LimitReader(r, MaxFileSize+4))
}
