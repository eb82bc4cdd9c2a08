// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/actplane/actplane/policy/model"
)

// TestOutside: what a trace finds, whatever it does to names.
func TestOutside(t *testing.T) {
	for name, test := range map[string]struct{ trace, want string }{
		"used":              {"a read /w/x ok|a exec /bin/sh ok|a rmdir /d ok", "/ dir, /bin dir, /bin/sh program, /d dir, /w dir, /w/x file"},
		"both":              {"a write /etc block r|a read /etc/y ok|a exec /y ok|a write /y ok", "/ dir, /etc dir, /etc/y file, /y program"},
		"made":              {"a mkdir /w/d ok|a symlink x /w/l ok|a write /w/d/x ok|a bind unix:/w/s ok|a connect unix:/w/s ok", "/w dir"},
		"socket":            {"a connect unix:/w/s ok|a connect unix:@x ok", "/w dir, /w/s socket"},
		"made before found": {"a link /etc/x /w/x block r|a write /w/x ok", "/etc dir, /etc/x file, /w dir"},
		"removed":           {"a unlink /w/x ok|a write /w/x ok|a exec /w/x ok", "/w dir, /w/x file"},
		"moved":             {"a rename /opt/a /opt/b ok|a exec /opt/b/run ok", "/opt dir, /opt/a dir, /opt/a/run program"},
		"moved file":        {"a rename /bin/x /w/d/y ok|a exec /w/d/y ok", "/bin dir, /bin/x program, /w/d dir"},
		"linked":            {"a link /bin/x /w/y ok|a exec /w/y ok|a exec /bin/x ok", "/bin dir, /bin/x program, /w dir"},
		"exchanged":         {"a exchange /a /b ok|a exec /a/x ok|a read /b/y ok", "/ dir, /a dir, /a/y file, /b dir, /b/x program"},
		"a symbolic link":   {"a symlink ../etc /w/e ok|a read /w/e/passwd ok|a symlink /w/l /w/l ok|a read /w/l ok", "/etc dir, /etc/passwd file, /w dir"},
		"a script":          {"a execscript /w/s /bin/sh ok|a chdir /x ok", "/ dir, /bin dir, /bin/sh program, /w dir, /w/s script of /bin/sh, /x dir"},
		"no file":           {"a fork b|a pipe p|a exit 0", ""},
	} {
		text := "== x\npolicy:\n  rule r:\n    block write \"/etc/**\"\n    block send \"192.0.2.1\"\ntrace:\n  " + strings.ReplaceAll(test.trace, "|", "\n  ") + "\n"
		cases, err := model.ParseCases(name, text)
		if err != nil {
			t.Fatal(err)
		}
		found, err := model.Outside(program(t, &cases[0]), &cases[0])
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		uses := map[model.Use]string{model.Directory: "dir", model.Regular: "file", model.Socket: "socket", model.Program: "program", model.Script: "script of "}
		var got []string
		for _, f := range found {
			got = append(got, fmt.Sprintf("%s %s%s", f.Path, uses[f.Use], f.Interpreter))
		}
		if strings.Join(got, ", ") != test.want {
			t.Errorf("%s: got %s\n\twant %s", name, strings.Join(got, ", "), test.want)
		}
	}
}
