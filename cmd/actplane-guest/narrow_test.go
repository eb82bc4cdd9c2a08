// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/actplane/actplane/feedback"
	"github.com/actplane/actplane/policy"
)

// The rules that have names are rules that can be added.
func TestNarrowRulesHold(t *testing.T) {
	base, err := policy.Compile([]policy.Document{{Name: "base", Text: []byte("version: 1\npolicy: |\n  rule a: block exec \"x\"\n")}}, policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Extend(base.Program, policy.Addition{Name: "added", Text: []byte(readOnly + noNetwork), Confine: true})
	if err != nil || len(p.Warnings) > 0 {
		t.Errorf("%v, %v", err, p.Warnings)
	}
}

func TestNarrow(t *testing.T) {
	s, path := newScope(), socketPath(t)
	start(t, s, path)
	var asked []feedback.NarrowRequest
	refusal := error(nil)
	s.narrow = func(request feedback.NarrowRequest) (feedback.Narrowed, error) {
		asked = append(asked, request)
		return feedback.Narrowed{PolicyLayer: feedback.PolicyLayer{Name: "added-1", SHA256: "00ff"}, Notes: []string{"a\x1b note"}}, refusal
	}
	file := filepath.Join(t.TempDir(), "rules")
	if err := os.WriteFile(file, []byte("rule f: block exec \"f\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	wrong := &feedback.Refusal{Status: http.StatusUnprocessableEntity, Sentence: "not added", Diagnostics: []feedback.Diagnostic{
		{Line: 1, Col: 2, Severity: "error", Code: "P203", Message: "label \x1b is not declared", Hint: "declare it"}}}
	for _, test := range []struct {
		args    []string
		refusal error
		code    int
		started string // the command
		policy  string
		for_    string
		says    string
	}{
		{[]string{"--read-only", "--", "sh", "-c", "x"}, nil, 0, "sh -c x", readOnly, "process", "note: a\\x1b note"},
		{[]string{"--no-network", "rule x: block exec \"y\"", "--", "sh"}, nil, 0, "sh", noNetwork + "rule x: block exec \"y\"\n", "process", ""},
		{[]string{"--policy", file, "--", "sh", "--", "--json"}, nil, 0, "sh -- --json", "rule f: block exec \"f\"\n", "process", ""},
		{[]string{"--policy", "-", "--container"}, nil, 0, "", "rule in: block exec \"i\"", "container", "added-1 is in force"},
		{[]string{"--read-only", "--", "sh"}, wrong, 1, "", readOnly, "process", "1:2: error[P203]: label \\x1b is not declared\n  hint: declare it"},
		{[]string{"--read-only", "--json", "--", "sh"}, wrong, 1, "", readOnly, "process", `"code":"P203"`},
		{[]string{"--read-only", "--", "sh"}, &feedback.Refusal{Status: 403, Sentence: "this host does not let"}, 3, "", readOnly, "process", "this host does not let"},
		{[]string{"--read-only", "--", "sh"}, errors.New("secret"), 3, "", readOnly, "process", "could not do it"},
		{[]string{"--", "sh"}, nil, 2, "", "", "", "name rules"},
		{[]string{"--read-only"}, nil, 2, "", "", "", "name the command"},
		{[]string{"--read-only", "--policy", file, "--", "sh"}, nil, 2, "", "", "", "exclude each other"},
		{[]string{"--policy", "/nonexistent", "--", "sh"}, nil, 2, "", "", "", "no such file"},
		{[]string{"--read-only", "--", "nonexistent-program"}, nil, 127, "", "", "", "not found"},
		{[]string{"--nope"}, nil, 2, "", "", "", "not defined"},
	} {
		asked, refusal = nil, test.refusal
		var out, errOut bytes.Buffer
		started := ""
		g := guest{in: strings.NewReader(`rule in: block exec "i"`), out: &out, err: &errOut, socket: path, proc: t.TempDir(), pid: 1,
			exec: func(path string, argv, _ []string) error {
				started = strings.Join(argv, " ")
				if filepath.Base(path) != argv[0] || len(asked) != 1 {
					t.Errorf("%q: %s before the rules hold", test.args, path)
				}
				return nil
			}}
		code := g.run(append([]string{"narrow"}, test.args...))
		if test.started != "" && code == exitNotExecutable {
			code = 0 // the test's exec comes back
		}
		if code != test.code || started != test.started || !strings.Contains(out.String()+errOut.String(), test.says) {
			t.Errorf("%q: %d, started %q, %s%s", test.args, code, started, out.String(), errOut.String())
		}
		var want []feedback.NarrowRequest
		if test.policy != "" {
			want = []feedback.NarrowRequest{{Policy: test.policy, For: test.for_}}
		}
		if !slices.Equal(asked, want) {
			t.Errorf("%q: asked %+v, want %+v", test.args, asked, want)
		}
		if strings.ContainsRune(out.String()+errOut.String(), 0x1b) {
			t.Errorf("%q: an escape sequence", test.args)
		}
	}
}
