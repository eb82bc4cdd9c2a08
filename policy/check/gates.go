// SPDX-License-Identifier: Apache-2.0

package check

import (
	"path"
	"strings"

	"github.com/actplane/actplane/policy/diag"
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/pattern"
	"github.com/actplane/actplane/policy/syntax"
)

// warnWritableGate warns of a gate whose program the container can write: what
// has been changed inside opens nothing, so the gate stays shut after an edit.
func (c *checker) warnWritableGate(l *layer, written syntax.Pattern, p ir.Pattern) {
	if p.Any || !strings.Contains(p.Text, "/") {
		return
	}
	for _, dir := range []string{l.Workspace, "/tmp", "/var/tmp", "/dev/shm", "/home", "/root", "/run"} {
		if dir != "/" && strings.HasPrefix(p.Text, dir+"/") {
			c.report(l.Text.New(diag.WritableGate, written.Span, "the container can write in %s, and a program that was written inside opens no gate", dir).
				WithHint("name a program outside of it, such as one of the image's: /usr/bin/…"))
			return
		}
	}
}

// warnScriptGate warns of a gate on the exit status of what is mostly a script that
// goes on as another program: the status is that one's.
func (c *checker) warnScriptGate(l *layer, cond *syntax.Cond, p ir.Pattern) {
	all, err := pattern.Alternatives(p.Text)
	if p.Any || err != nil {
		return
	}
	var names []string // of scripts that become the same program
	var runs, token string
	for _, text := range all {
		name := strings.TrimRight(path.Base(text), "*")
		if becomes, as := interpreter(name); becomes != "" && (runs == "" || runs == becomes) {
			runs, token = becomes, as
			names = append(names, name)
		}
	}
	if runs == "" {
		return
	}
	if token == "" {
		token = "*/" + names[0]
		if len(names) > 1 {
			token = "*/{" + strings.Join(names, ",") + "}"
		}
	}
	words := []string{runs, token}
	for _, a := range cond.After.Args {
		words = append(words, a.Text)
	}
	c.report(l.Text.New(diag.ScriptGate, cond.After.Pattern.Span, "%s is mostly a script that goes on as %s, and exits is about the program that ends", names[0], runs).
		WithHint("write: after exec %s exits %s", quoted(words), cond.Exits.Text))
}

// interpreter names the program that a well-known script becomes, through `#!/usr/bin/env`
// or an exec at its end, with the token that tells it from other scripts: "" for the
// script's own path. runs is "" for what is a program of its own, for all we know.
func interpreter(name string) (runs, token string) {
	switch name {
	case "npm", "npx", "yarn", "yarnpkg", "pnpm", "pnpx", "corepack", "jest", "vitest", "mocha", "ava", "jasmine", "karma", "tsc", "eslint",
		"prettier", "playwright", "cypress", "vite", "webpack", "rollup", "gulp", "grunt", "lerna", "nx", "turbo", "ts-node", "tsx", "c8", "nyc":
		return "node", ""
	case "composer", "phpunit", "pest", "phpstan", "psalm":
		return "php", ""
	case "mvn":
		return "java", "*classworlds*"
	case "gradlew", "gradle":
		return "java", "*gradle*"
	}
	return "", ""
}

// warnFolderGate warns of a gate that the program which opens it makes stale itself,
// since it writes among what the gate is about.
func (c *checker) warnFolderGate(l *layer, after ir.Event, since *syntax.Event, e ir.Event) {
	if e.Op != ir.Write || after.Op != ir.Exec {
		return
	}
	all, err := pattern.Alternatives(e.Pattern.Text)
	if err != nil {
		return
	}
	whole, folder := e.Pattern.Any, ""
	for _, text := range all {
		dir, below := strings.CutSuffix(strings.TrimSuffix(text, "/*"), "/**")
		if text == "**" || below && (dir == "" || dir == "/**" || dir == l.Workspace && dir != "/") {
			whole = true
		} else if below {
			folder = dir
		}
	}
	switch {
	case whole:
		c.report(l.Text.New(diag.FolderGate, since.Pattern.Span, "whatever the program writes there while it runs makes the gate stale at once: caches, reports, what it builds").
			WithHint("name the sources, such as %q", sourcesOf(after.Pattern.Text)))
	case folder != "" && writesCaches(after.Pattern.Text):
		text := strings.TrimSuffix(since.Pattern.Text, "/*") + "/*.py"
		c.report(l.Text.New(diag.FolderGate, since.Pattern.Span, "Python writes __pycache__ below %s while the program runs, which makes the gate stale at once", folder).
			WithHint("name the sources: write %q", text))
	}
}

// sourcesOf guesses of what kind the sources are that a program tests.
func sourcesOf(program string) string {
	switch name := path.Base(program); {
	case writesCaches(program):
		return "**/*.py"
	case name == "go":
		return "**/*.go"
	case name == "cargo":
		return "**/*.rs"
	case name == "node":
		return "src/**/*.{js,ts}"
	}
	return "src/**/*.c"
}

// writesCaches tells whether a pattern names programs of Python's that import what is
// tested, and so write its bytecode beside it.
func writesCaches(text string) bool {
	all, err := pattern.Alternatives(text)
	if err != nil {
		return false
	}
	for _, text := range all {
		switch name := strings.TrimRight(path.Base(text), "0123456789.-*?"); name {
		case "pytest", "py.test", "python", "tox", "nox", "coverage", "nose", "nosetests", "trial", "ward":
			return true
		}
	}
	return false
}
