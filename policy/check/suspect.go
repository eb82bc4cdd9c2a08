// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/actplane/actplane/policy/diag"
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/syntax"
)

// warnPattern warns of patterns that are valid and hardly what was meant.
func (c *checker) warnPattern(l *layer, p syntax.Pattern, out ir.Pattern, relative bool) {
	if out.Any || c.warnMisleading(l, p.Span, p.Text, patternKind(out.Kind)) ||
		out.Kind != ir.Endpoint && c.warnNoGlob(l, p.Span, p.Text, patternKind(out.Kind)) {
		return
	}
	if out.Kind == ir.ExecProgram && c.warnSpaced(l, p) || out.Kind == ir.File && (c.warnDirectory(l, p, out) || c.warnTopLevel(l, p, relative)) {
		return
	}
	if !relative || out.Kind == ir.Endpoint || strings.HasPrefix(p.Text, ".") {
		return
	}
	first, _, deeper := strings.Cut(p.Text, "/")
	whole := "/" + p.Text
	switch {
	case l.Workspace != "/" && (whole == l.Workspace || strings.HasPrefix(whole, l.Workspace+"/")):
		c.report(l.Text.New(diag.OtherPlace, p.Span, "a pattern without / at its beginning is under the workspace, so this one means %q", l.Workspace+whole).
			WithHint("write %q", whole))
	case deeper && rootDirectory(first):
		c.report(l.Text.New(diag.OtherPlace, p.Span, "a pattern without / at its beginning is under the workspace, so this one means %q", strings.TrimSuffix(l.Workspace, "/")+whole).
			WithHint("write %q, or %q if it is meant so", whole, "./"+p.Text))
	}
}

// warnNoGlob warns of a text that is a glob, but hardly meant as one.
func (c *checker) warnNoGlob(l *layer, at diag.Span, text string, kind patternKind) bool {
	return c.warnBackslash(l, at, text, kind) || c.warnRegex(l, at, text, kind)
}

// warnSpaced warns of a whole command in place of a program's name.
func (c *checker) warnSpaced(l *layer, p syntax.Pattern) bool {
	words := strings.Fields(p.Text)
	if len(words) < 2 {
		return false
	}
	c.report(l.Text.New(diag.SpacedProgram, p.Span, "this is a program whose name has a blank in it; arguments are strings of their own").
		WithHint("write %s", quoted(words)))
	return true
}

// warnFileTarget warns of a target on an exec clause that names files of the workspace
// where the clause names a program: it is about where the program lies, not about
// files that were changed. Folders for programs are meant so, and so is "./…".
func (c *checker) warnFileTarget(l *layer, out *ir.Clause, cond *syntax.Cond, p ir.Pattern) {
	program := out.Pattern.Text
	if out.Pattern.Any || p.Any || strings.Trim(program, "*?") == "" || strings.Contains(program, "/") || !strings.Contains(p.Text, "/") ||
		l.Workspace != "/" && !strings.HasPrefix(p.Text, l.Workspace+"/") || strings.HasPrefix(cond.Pattern.Text, ".") {
		return
	}
	if l.Workspace == "/" && strings.HasPrefix(cond.Pattern.Text, "/") || strings.Contains(p.Text, "bin/") {
		return
	}
	text := "a target of exec is where the program lies: this is about a %s in %s"
	hint := fmt.Sprintf("what has to be newer than a change of files says so: after exec \"program\" since write %q", cond.Pattern.Text)
	for _, u := range out.Unless.Gates {
		if since := c.program.Gates[u].Since; len(since) > 0 {
			hint = fmt.Sprintf("what makes the gate stale is another event of its since: or write %q", cond.Pattern.Text)
		}
	}
	c.report(l.Text.New(diag.Misleading, cond.Span, text, program, p.Text).WithHint("%s", hint))
}

// quoted returns words as strings of the language.
func quoted(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = strconv.Quote(w)
	}
	return strings.Join(out, " ")
}

// warnTopLevel warns of "*.py", which is about the top folder alone.
func (c *checker) warnTopLevel(l *layer, p syntax.Pattern, relative bool) bool {
	if !relative || !strings.HasPrefix(p.Text, "*.") || strings.Contains(p.Text, "/") {
		return false
	}
	c.report(l.Text.New(diag.Misleading, p.Span, "this is about files directly in %s, and none in its folders", l.Workspace).
		WithHint("for those in any folder write %q; where it is meant so, %q", "**/"+p.Text, "./"+p.Text))
	return true
}

// warnDirectory warns of a pattern that is a directory for all we know, and does
// not reach into it. What is written with ./ in it is meant so.
func (c *checker) warnDirectory(l *layer, p syntax.Pattern, out ir.Pattern) bool {
	name := path.Base(out.Text)
	dir := path.Dir(out.Text)
	if strings.Contains(p.Text, "./") || strings.ContainsAny(name, "*?[{") || out.Text == "/" {
		return false
	}
	shown := out.Text
	if strings.HasPrefix(p.Text, "**") {
		shown = p.Text
	}
	d := l.Text.New(diag.DirectoryAlone, p.Span, "this is the directory %s alone, and nothing in it", shown)
	switch {
	case out.Text == l.Workspace || dir == "/" && rootDirectory(name) || hiddenFolder(name) && strings.Contains(p.Text, "/"):
	case hiddenFolder(name), usualFolder(name) && !strings.HasPrefix(p.Text, "**") && strings.HasPrefix(out.Text, strings.TrimSuffix(l.Workspace, "/")+"/"):
		if l.Workspace == "/" && strings.HasPrefix(p.Text, "/") { // who knows
			return false
		}
		d = l.Text.New(diag.DirectoryAlone, p.Span, "this is %s alone, and nothing in it, if it is a folder", out.Text)
	default:
		return false
	}
	c.report(d.WithHint("for it and all that is in it write %q; where it alone is meant, %q", p.Text+"/**", alone(p.Text)))
	return true
}

// alone writes a pattern so that nobody takes it for a folder with what is in it.
func alone(text string) string {
	if i := strings.LastIndexByte(text, '/'); i >= 0 {
		return text[:i] + "/." + text[i:]
	}
	return "./" + text
}

// usualFolder tells whether a name is that of a folder in most repositories.
func usualFolder(name string) bool {
	switch name {
	case "src", "source", "sources", "test", "tests", "spec", "specs", "lib", "libs", "doc", "docs", "app", "apps", "pkg", "packages",
		"cmd", "internal", "include", "dist", "node_modules", "vendor", "examples", "scripts", "public", "assets", "migrations":
		return true
	}
	return false
}

// hiddenFolder tells whether a name is that of a folder, wherever it is.
func hiddenFolder(name string) bool {
	switch name {
	case ".git", ".github", ".gitlab", ".circleci", ".husky", ".claude", ".codex", ".gemini", ".cursor", ".agents", ".actplane", ".vscode", ".idea",
		".devcontainer", ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config", ".cache", ".local", ".venv", ".terraform", ".secrets":
		return true
	}
	return false
}

// rootDirectory tells whether a name is one that root directories have and
// workspaces rarely do.
func rootDirectory(name string) bool {
	switch name {
	case "etc", "usr", "var", "home", "root", "tmp", "proc", "sys", "dev", "run", "opt", "sbin":
		return true
	}
	return false
}
