// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/model"
)

// allCases reads the cases of all files that the model is tested with.
func allCases(t *testing.T) (out []model.Case) {
	t.Helper()
	for _, file := range []string{"../testdata/conformance/cases.txt", "../testdata/conformance/dialect.txt", "testdata/cases.txt"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		cases, err := model.ParseCases(file, string(text))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, cases...)
	}
	return out
}

// Explanations are of the decisions that are made, and what they say fits these.
func TestExplain(t *testing.T) {
	decided := 0
	for _, c := range allCases(t) {
		traces, err := model.Explain(program(t, &c), c.Steps, 0)
		if err != nil || len(traces) != len(c.Steps) {
			t.Errorf("%s: %d traces of %d steps: %v", c.Name, len(traces), len(c.Steps), err)
			continue
		}
		for i, trace := range traces {
			if got, want := trace.Decision.String(), c.Steps[i].Want(); got != want {
				t.Errorf("%s: %s: got %q, want %q", c.Name, c.Steps[i].Text, got, want)
			}
			if trace.Decided {
				decided++
			}
			checkTrace(t, c.Name+": "+c.Steps[i].Text, &trace)
		}
	}
	if decided < 100 {
		t.Errorf("only %d decisions", decided)
	}
}

func checkTrace(t *testing.T, name string, trace *model.Trace) {
	t.Helper()
	strictest, decides := ir.Allow, 0
	for _, c := range trace.Clauses {
		if all := !slices.ContainsFunc(c.Conditions, func(x model.Condition) bool { return !x.Met }); all != c.Matches {
			t.Errorf("%s: `%s` matches: %v, and its conditions are met: %v", name, c.Clause.Text, c.Matches, all)
		}
		if c.Matches && c.Clause.Effect != ir.Ask { // which can have been granted
			strictest = max(strictest, c.Clause.Effect)
		}
		if c.Decides {
			decides++
			if !c.Matches {
				t.Errorf("%s: `%s` decides and does not match", name, c.Clause.Text)
			}
		}
	}
	if trace.Effect < strictest {
		t.Errorf("%s: it is %s, and a clause with %s matches", name, trace.Effect, strictest)
	}
	if want := len(strings.Fields(trace.Rule)); decides != want {
		t.Errorf("%s: %d clauses decide for rule %q", name, decides, trace.Rule)
	}
	if trace.Decided && trace.Rule == "" && trace.Effect > ir.Allow && len(trace.Refused) == 0 &&
		!slices.ContainsFunc(trace.Defaults, func(d model.DefaultTrace) bool { return d.Lifted == nil }) {
		t.Errorf("%s: nothing tells why it is %s", name, trace.Effect)
	}
}

func TestParseEvent(t *testing.T) {
	for line, want := range map[string]string{
		"a exec /usr/bin/git push":            "a exec /usr/bin/git push",
		"exec git push":                       "process exec /usr/bin/git push",
		"exec tools/run -v":                   "process exec /w/tools/run -v",
		"a execscript x.sh sh -e":             "a execscript /usr/bin/x.sh /usr/bin/sh -e",
		"write src/../x":                      "process write /w/x",
		`read "my file" # why not`:            `process read "/w/my file"`,
		"exec sh -c \"ok\"":                   `process exec /usr/bin/sh -c "ok"`,
		"exec git push block no-push":         "process exec /usr/bin/git push",
		"rename a b":                          "process rename /w/a /w/b",
		"connect 10.0.0.1:80 ok":              "process connect 10.0.0.1:80",
		"symlink ../x y":                      "process symlink ../x /w/y",
		"fork b":                              "process fork b",
		"human approve once":                  "human approve once",
		"scope restart":                       "scope restart",
		"p exit 0":                            "p exit 0",
		`write "\x1b"`:                        `process write "/w/\x1b"`,
		"exec":                                "! exec takes 1 after it, and has 0",
		"":                                    "! an event is [SUBJECT] OPERATION [OBJECT…], such as `read .env` or `exec git push`",
		"bla":                                 "! an event is [SUBJECT] OPERATION [OBJECT…], such as `read .env` or `exec git push`",
		"raed":                                "! an event is [SUBJECT] OPERATION [OBJECT…], such as `read .env` or `exec git push`; did you mean \"read\"?",
		"jump x":                              "! \"x\" is no operation of a trace; to run the program jump, write `a exec jump x`; if jump is the process that runs x, write `jump exec x`",
		"connect example.com":                 `! "example.com" is no endpoint: write ADDRESS:PORT, [ADDRESS]:PORT, NAME:PORT or unix:PATH`,
		`write "a`:                            `! "a: this word in quotes does not end, or has an escape that is none`,
		`read ""`:                             `! "" is no path`,
		"exec git \"block\" no-push ok":       `process exec /usr/bin/git "block" no-push`,
		"read \"/a\\x00b\"":                   `! "/a\x00b" has a NUL: no path, argument or host has one`,
		"send [2606:4700::1111]:443/udp kill": "process send [2606:4700::1111]:443/udp",
	} {
		step, err := model.ParseEvent(line, "/w")
		got := ""
		if err != nil {
			got = "! " + err.Error()
		} else {
			got = model.WriteStep(step.Words)
		}
		if got != want {
			t.Errorf("%q:\n\tgot  %s\n\twant %s", line, got, want)
		}
	}
}

// What is written is read as the same words.
func TestWriteStep(t *testing.T) {
	for _, c := range allCases(t) {
		for _, step := range c.Steps {
			line := model.WriteStep(step.Words)
			again, err := model.ParseEvent(line, "/w")
			if err != nil || !slices.Equal(again.Words, step.Words) {
				t.Errorf("%q is written %q and read %q (%v)", step.Words, line, again.Words, err)
			}
		}
	}
	words := []string{"a", "exec", "/bin/sh", "", "ok", "#", "\"", "a b", "\x1b[1m", "\xff", "block", "x"}
	again, err := model.ParseEvent(model.WriteStep(words), "/w")
	if err != nil || !slices.Equal(again.Words, words) {
		t.Errorf("%q is written %q and read %q (%v)", words, model.WriteStep(words), again.Words, err)
	}
}
