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

	"github.com/actplane/actplane/policy/check"
	"github.com/actplane/actplane/policy/diag"
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/syntax"
)

// MaxFileSize bounds a policy document, in bytes.
const MaxFileSize = 1 << 20

// maxReports ends the reading of a file that is something else altogether.
const maxReports = 1000

// file is what a policy document holds.
type file struct {
	text *diag.Text
	// policies are the texts that hold: the policy block, or those of the rules of
	// the domain that holds. unbound are those of the other rules.
	policies, unbound []*diag.Text
	domain            string
	workspace         string
	protects          []check.Protect
	feedback          *check.Feedback
	limits            ir.Limits
	broken            bool // it has errors outside of the policy texts
}

// fileKeys are the keys of the file.
var fileKeys = []string{"version", "workspace", "policy", "ifc", "rules", "domains", "default_domain", "protect", "feedback", "limits"}

// reader collects what is wrong with a document.
type reader struct {
	text  *diag.Text
	diags diag.List
}

// readFile reads a document. The file is nil when there is nothing to go on
// with; otherwise its policy is worth parsing even after errors. So many lines of a larger
// file stand above it.
func readFile(name string, data []byte, above int) (*file, diag.List) {
	data = bytes.TrimPrefix(data, []byte("\xEF\xBB\xBF"))
	if len(data) > MaxFileSize {
		t := diag.NewText(name, nil).Below(above)
		return nil, diag.List{t.New(diag.TooLarge, diag.Span{}, "the file has more than %d bytes", MaxFileSize)}
	}
	r := &reader{text: diag.NewText(name, data).Below(above)}
	if !r.characters(r.text) {
		return nil, r.diags
	}
	root, ok := r.parse(data)
	if !ok || !r.boundedAliases(root) {
		return nil, r.diags
	}
	f := &file{text: r.text}
	r.top(root, f)
	f.broken = r.diags.Errors() > 0
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
	t := topReader{reader: r, file: f}
	r.mapping(root, "a policy file", "version: 1, and the text below `policy: |`", t.key)
	r.policies(&t)
}

// topReader keeps what only makes sense when the whole mapping has been read.
type topReader struct {
	*reader
	file *file
	// The keys that were there, and their values.
	policyKey, policyValue    *yaml.Node
	rulesKey, rules           *yaml.Node
	domainsKey, domains       *yaml.Node
	defaultKey, defaultDomain *yaml.Node
}

func (t *topReader) key(key, value *yaml.Node) {
	r, f := t.reader, t.file
	switch key.Value {
	case "version":
		if n, ok := number(value); value.Value != "1" && (!ok || n != 1) || value.Kind != yaml.ScalarNode {
			r.report(diag.BadVersion, value, "version %q is not known", value.Value).Hint = "write version: 1"
		}
	case "workspace":
		f.workspace = r.workspace(value)
	case "policy", "ifc":
		if t.policyKey != nil {
			if t.policyKey.Value != key.Value {
				r.report(diag.TwoPolicies, key, "%s and %s are the same thing, and both are here", t.policyKey.Value, key.Value).
					Hint = "keep one"
			}
			return
		}
		t.policyKey, t.policyValue = key, value
	case "rules":
		t.rulesKey, t.rules = key, value
	case "domains":
		t.domainsKey, t.domains = key, value
	case "default_domain":
		t.defaultKey, t.defaultDomain = key, value
	case "protect":
		f.protects = r.protects(value)
	case "feedback":
		f.feedback = r.feedback(key, value)
	case "limits":
		f.limits = r.limits(value)
	default:
		if word, _, more := strings.Cut(key.Value, " "); more && syntax.Begins(word) {
			d := r.report(diag.UnknownKey, key, "unknown key %q", key.Value)
			if d.Hint = "this looks like policy text: indent it below `policy: |`"; r.textIndent(r.textAbove(key.Line)) > 0 {
				d.Hint = "this looks like policy text: indent it like the text above it, which ends before it"
			}
			return
		}
		r.unknownKey(key, "", fileKeys)
	}
}

// policies reads the policy text, or the rules and domains.
func (r *reader) policies(t *topReader) {
	other := t.rulesKey
	if other == nil {
		other = t.domainsKey
	}
	switch {
	case t.policyKey != nil && other != nil:
		r.report(diag.MixedDomains, other, "the file has %s, and %s as well", t.policyKey.Value, other.Value).
			Hint = "put the text below a rule of `rules:`, or leave rules and domains out"
		fallthrough
	case t.policyKey != nil:
		if text := r.policy(t.policyKey, t.policyValue); text != nil {
			t.file.policies = append(t.file.policies, text)
		}
	case other != nil:
		r.domains(t)
		return
	}
	if t.defaultKey != nil && other == nil {
		r.report(diag.NoEffect, t.defaultKey, "default_domain has no effect without domains")
	}
}

// mapping calls f for each pair of a mapping, aliases resolved, after it has
// reported keys that are there twice. The example says how one is written.
func (r *reader) mapping(n *yaml.Node, what, example string, f func(key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		r.report(diag.WrongType, n, "%s is a mapping of keys to values, not %s", what, kindName(n)).Hint = "write " + example
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

func (r *reader) unknownKey(key *yaml.Node, in string, known []string) {
	d := r.report(diag.UnknownKey, key, "unknown key %q", in+key.Value)
	s := diag.Suggest(key.Value, known)
	if key.Value == "policies" && in == "" {
		s = "policy"
	}
	if s != "" {
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
	if i := strings.IndexFunc(s, unicode.IsControl); i >= 0 { // by an escape of YAML
		c, _ := utf8.DecodeRuneInString(s[i:])
		r.report(diag.ControlChar, n, "the character %U is not allowed", c)
		return "/"
	}
	if !path.IsAbs(s) {
		d := r.report(diag.BadWorkspace, n, "workspace \"%s\" is no absolute path", s)
		if d.Hint = "write the path in the container, such as /workspace"; strings.HasPrefix(s, "~") || strings.Contains(s, "$") {
			d.Hint += "; ~ and variables are not expanded"
		}
		return "/" // so that patterns are not reported as well
	}
	return path.Clean(s)
}

// policy takes a policy text, with the way back to its place in the file; nil
// when it is none.
func (r *reader) policy(key, value *yaml.Node) *diag.Text {
	if value.Kind == yaml.ScalarNode && value.ShortTag() == "!!null" {
		r.report(diag.WrongType, key, "%s is empty", key.Value).Hint = "write `" + key.Value + ": |` and indent the text below it"
		return nil
	}
	if value.Kind != yaml.ScalarNode || value.ShortTag() != "!!str" {
		r.report(diag.WrongType, value, "%s is a text, not %s", key.Value, kindName(value)).
			Hint = "write `" + key.Value + ": |` and indent the text below it"
		return nil
	}
	return r.embed(value)
}

// embed returns the text of a scalar, nil when it has characters that it cannot.
func (r *reader) embed(value *yaml.Node) *diag.Text {
	t := r.text.Embed([]byte(value.Value), r.offsets(value))
	if !r.characters(t) {
		return nil
	}
	return t
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
