// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"slices"
	"strings"

	"github.com/actplane/actplane/policy/diag"
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/pattern"
	"github.com/actplane/actplane/policy/syntax"
)

// pattern validates a pattern and gives it its canonical text.
func (c *checker) pattern(l *layer, kind ir.Kind, p syntax.Pattern) (ir.Pattern, bool) {
	out := ir.Pattern{Kind: kind, Any: p.Any}
	if p.Any {
		return out, true
	}
	size := pattern.Expanded(p.Text)
	if !c.room(l, p.Span, "patterns", &c.patternText, size, ir.MaxPatternBytes) {
		return out, false
	}
	if channel := strings.TrimPrefix(p.Text, "stdio:"); kind == ir.File && channel != p.Text && slices.Contains([]string{"stdin", "stdout", "stderr"}, channel) {
		d := l.Text.New(diag.NotSupported, p.Span, "not supported by this version: rules about a process's %s", channel)
		c.report(d.WithHint("a file of this name is written \"./%s\"", p.Text))
		return out, false
	}
	var relative bool
	var err error
	switch kind {
	case ir.File:
		out.Text, relative, err = pattern.File(p.Text, l.Workspace)
	case ir.ExecProgram:
		out.Text, relative, err = pattern.Exec(p.Text, l.Workspace)
	case ir.Endpoint:
		var e pattern.Endpoint
		e, err = pattern.ParseEndpoint(p.Text, l.Workspace)
		out.Text, out.Host, relative = e.Text, e.Host, e.Relative
		if out.Text == "*" {
			out.Any, out.Text = true, ""
		}
	}
	if err != nil {
		var bad *pattern.Error
		if words := strings.Fields(p.Text); kind == ir.ExecProgram && len(words) > 1 && errors.As(err, &bad) && bad.Kind == pattern.NeverMatches {
			bad.Hint = "arguments are strings of their own: " + quoted(words)
		}
		c.badPattern(l, p.Span, err)
		return out, false
	}
	if !c.room(l, p.Span, "patterns", &c.patternText, max(0, pattern.Expanded(out.Text)-size), ir.MaxPatternBytes) {
		return out, false // with the workspace before each alternative
	}
	if relative && l.Assumed && !l.assumed {
		l.assumed = true
		c.report(l.Text.New(diag.AssumedWorkspace, p.Span, "no workspace is given, so relative patterns are taken from /").
			WithHint("add `workspace: DIR` to the file, or give one to the command"))
	}
	c.warnPattern(l, p, out, relative)
	return out, true
}

// warnTokens warns of argv tokens that leave out what they were meant for: words in
// one string, and a last one that wants any argument at all.
func (c *checker) warnTokens(l *layer, args []syntax.Name) {
	for i, a := range args {
		words := strings.Fields(a.Text)
		text := i > 0 && strings.HasPrefix(args[i-1].Text, "-") // -c "…", -m "…"
		switch {
		case a.Text == strings.Repeat("*", len(a.Text)) && i == len(args)-1 && a.Text != "":
			c.report(l.Text.New(diag.Misleading, a.Span, "this wants one more argument: without one the tokens don't match").
				WithHint("leave it out: other arguments may follow in any case"))
		case len(words) < 2 || strings.HasPrefix(a.Text, "*") || strings.Join(words, " ") != a.Text:
		case !text:
			c.report(l.Text.New(diag.SpacedProgram, a.Span, "this is one argument with a blank in it; arguments are strings of their own").
				WithHint("write %s", quoted(words)))
		case args[i-1].Text == "-c" && !strings.ContainsAny(a.Text, "*?;()[]{}="):
			c.report(l.Text.New(diag.SpacedProgram, a.Span, "this matches a command of exactly this text; what a shell runs is an exec of its own").
				WithHint("name the program: exec %s", quoted(words)))
		}
	}
}

func (c *checker) argument(l *layer, a syntax.Name) bool {
	if c.tokens[a.Text] { // it is one that is fine
		c.warnToken(l, a)
		return true
	}
	if !c.room(l, a.Span, "tokens", &c.tokenText, pattern.Expanded(a.Text), ir.MaxTokenBytes) {
		return false
	}
	if err := pattern.Arg(a.Text); err != nil {
		c.badPattern(l, a.Span, err)
		return false
	}
	c.tokens[a.Text] = true
	c.warnToken(l, a)
	return true
}

func (c *checker) warnToken(l *layer, a syntax.Name) {
	if !c.warnMisleading(l, a.Span, a.Text, token) {
		c.warnNoGlob(l, a.Span, a.Text, token)
	}
}

func (c *checker) badPattern(l *layer, at diag.Span, err error) {
	var p *pattern.Error
	if !errors.As(err, &p) {
		c.report(l.Text.New(diag.BadGlob, at, "%v", err))
		return
	}
	d := l.Text.New(codeOf(p.Kind), at, "%s", p.Msg)
	d.Hint = p.Hint
	c.report(d)
}

func codeOf(k pattern.ErrorKind) diag.Code {
	switch k {
	case pattern.NeverMatches:
		return diag.NeverMatches
	case pattern.NotExpanded:
		return diag.NotExpanded
	case pattern.BadAddress:
		return diag.BadAddress
	case pattern.BadPort:
		return diag.BadPort
	case pattern.UnknownSet:
		return diag.UnknownSet
	case pattern.TooLong:
		return diag.OverLimit
	}
	return diag.BadGlob
}

// opOf returns the operation of a word of the grammar.
func opOf(word string) ir.Op {
	switch word {
	case "open":
		return ir.Open
	case "read":
		return ir.Read
	case "write":
		return ir.Write
	case "append":
		return ir.Append
	case "unlink":
		return ir.Unlink
	case "connect":
		return ir.Connect
	case "bind":
		return ir.Bind
	case "send":
		return ir.Send
	case "recv":
		return ir.Recv
	}
	return ir.Exec
}

// kindOf returns the kind of the objects of an operation.
func kindOf(op ir.Op) ir.Kind {
	switch op {
	case ir.Exec:
		return ir.ExecProgram
	case ir.Connect, ir.Bind, ir.Send, ir.Recv:
		return ir.Endpoint
	}
	return ir.File
}

func kindOfWord(word string) ir.Kind {
	switch word {
	case "exec":
		return ir.ExecProgram
	case "endpoint":
		return ir.Endpoint
	}
	return ir.File
}

func wordOfKind(k ir.Kind) string {
	switch k {
	case ir.ExecProgram:
		return "exec"
	case ir.Endpoint:
		return "endpoint"
	}
	return "file"
}
