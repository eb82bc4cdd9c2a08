// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"go.yaml.in/yaml/v3"

	"github.com/actplane/actplane/policy/check"
	"github.com/actplane/actplane/policy/diag"
	"github.com/actplane/actplane/policy/syntax"
)

var (
	protectKeys  = []string{"path", "if"}
	feedbackKeys = []string{"stderr"}
)

// protects reads `protect:`, a list of paths and of paths with conditions.
func (r *reader) protects(n *yaml.Node) []check.Protect {
	if n.Kind != yaml.SequenceNode {
		r.report(diag.WrongType, n, "protect is a list of paths, not %s", kindName(n)).Hint = `write protect: ["CLAUDE.md", ".claude/**"]`
		return nil
	}
	var out []check.Protect
	for _, item := range n.Content {
		item = resolve(item)
		var e check.Protect
		ok := false
		if item.Kind == yaml.MappingNode {
			e, ok = r.protect(item)
		} else {
			e.Pattern, ok = r.path(item)
		}
		if ok {
			out = append(out, e)
		}
	}
	return out
}

func (r *reader) protect(n *yaml.Node) (e check.Protect, ok bool) {
	there, good := false, true
	r.mapping(n, "an entry of protect", "{path: \"FILE\", if: LABEL}", func(key, value *yaml.Node) {
		switch key.Value {
		case "path":
			there = true
			e.Pattern, ok = r.path(value)
		case "if":
			e.If, e.CondText = r.expression(value)
			good = e.If != nil
		default:
			r.unknownKey(key, "protect.", protectKeys)
			good = false
		}
	})
	if !there {
		r.report(diag.WrongType, n, "an entry of protect has no path").Hint = `write {path: "FILE", if: LABEL}`
	}
	return e, ok && good
}

// path takes a scalar as a file pattern.
func (r *reader) path(n *yaml.Node) (syntax.Pattern, bool) {
	s, ok := r.str(n, "a path to protect")
	if !ok || r.embed(n) == nil {
		return syntax.Pattern{}, false
	}
	return syntax.Pattern{Span: r.span(n), Text: s}, true
}

// expression reads a condition over labels.
func (r *reader) expression(n *yaml.Node) (syntax.Expr, *diag.Text) {
	// YAML takes a bare true for a value of its own.
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" && n.Value != "true" || n.Value == "" {
		r.report(diag.WrongType, n, "if is a condition over labels, not %s", kindName(n)).Hint = "write a label, or several with and, or, not"
		return nil, nil
	}
	text := r.embed(n)
	if text == nil {
		return nil, nil
	}
	e, list := syntax.ParseExpr(text)
	r.diags = append(r.diags, list...)
	return e, text
}

// feedback reads `feedback:`.
func (r *reader) feedback(key, n *yaml.Node) *check.Feedback {
	var out *check.Feedback
	r.mapping(n, "feedback", "feedback: {stderr: true}", func(k, value *yaml.Node) {
		switch k.Value {
		case "stderr":
			f := check.Feedback{At: r.span(k)}
			if value.ShortTag() != "!!bool" || value.Decode(&f.Stderr) != nil {
				r.report(diag.WrongType, value, "feedback.stderr is true or false, not %s", kindName(value))
				return
			}
			out = &f
		case "path":
			r.report(diag.NoEffect, k, "feedback.path has no effect: reasons are on the container's feedback socket, not in a file").
				Hint = "remove it; inside, `actplane-guest feedback` shows them"
		default:
			r.unknownKey(k, "feedback.", feedbackKeys)
		}
	})
	return out
}
