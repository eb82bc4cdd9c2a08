// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the output of commands in the documentation anew")

// TestDocumentation does what a reader of a page would do, from its beginning to its
// end, in a folder of its own. What a fence is for is told by the end of the text above
// it: "`NAME`:" is a whole file, "Add to `NAME`:" its continuation after an empty line,
// "Line N of `NAME` becomes:" that line anew, and "`NAME` is now:" what has to be in it.
// Each "$ actplane …" of a fence of the kind console is run, and what it prints on
// either output is what stands below it; "$ echo $?" is the exit status before.
func TestDocumentation(t *testing.T) {
	for _, page := range []struct {
		name  string
		files map[string]string // that are there before
	}{
		{"tutorial.md", nil},
		{"templates.md", map[string]string{"go.mod": "module example.com/x\n", "AGENTS.md": "Never push.\n"}},
	} {
		t.Run(page.name, func(t *testing.T) {
			path, err := filepath.Abs(filepath.Join("../../docs", page.name))
			if err != nil {
				t.Fatal(err)
			}
			text := content(t, path)
			t.Chdir(t.TempDir())
			for name, content := range page.files {
				write(t, name, content)
			}
			r := reader{t: t}
			got := r.read(text)
			if r.commands == 0 {
				t.Error("no command was run")
			}
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if d := cmp.Diff(text, got); d != "" {
				t.Errorf("%s is not what happens (-page +real); go test -run TestDocumentation -update ./cmd/actplane writes it anew:\n%s", page.name, d)
			}
		})
	}
}

// reader goes through a page.
type reader struct {
	t        *testing.T
	commands int
	code     int // of the last command
}

var (
	argument   = regexp.MustCompile(`'[^']*'|[^\s']+`)
	fence      = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")
	fileIs     = regexp.MustCompile("(Add to )?`([\\w./-]+)`( is now)?:\n\n$")
	lineIsAnew = regexp.MustCompile("Line (\\d+) of `([\\w./-]+)` becomes:\n\n$")
)

// read returns the page with what the commands really print.
func (r *reader) read(page string) string {
	var out strings.Builder
	end := 0
	for _, at := range fence.FindAllStringSubmatchIndex(page, -1) {
		before, kind, body := page[end:at[0]], page[at[2]:at[3]], page[at[4]:at[5]]
		out.WriteString(before + "```" + kind + "\n")
		end = at[1]
		if kind == "console" {
			body = r.session(body)
		} else if line := lineIsAnew.FindStringSubmatch(before); line != nil {
			r.replace(line[1], line[2], body)
		} else if file := fileIs.FindStringSubmatch(before); file != nil {
			r.file(file[1] != "", file[3] != "", file[2], body)
		}
		out.WriteString(body + "```")
	}
	return out.String() + page[end:]
}

func (r *reader) session(body string) string {
	var out strings.Builder
	for line := range strings.Lines(body) {
		command, is := strings.CutPrefix(line, "$ ")
		if !is {
			continue // what was printed when the page was written
		}
		out.WriteString(line)
		args := argument.FindAllString(command, -1)
		for i := range args {
			args[i] = strings.Trim(args[i], "'")
		}
		switch {
		case command == "echo $?\n":
			fmt.Fprintln(&out, r.code)
		case args[0] != "actplane" || strings.ContainsAny(command, "\"|&;<>$*`\\"):
			r.t.Errorf("%q needs a shell; a reader of this test has none", command)
		default:
			var printed bytes.Buffer
			if args[1] == "explain" { // of this machine nothing is to be told
				args = slices.Insert(args, 2, "--run-dir", r.t.TempDir())
			}
			r.commands++
			r.code = run(args, strings.NewReader(""), &printed, &printed)
			out.Write(printed.Bytes())
		}
	}
	return out.String()
}

// file is what a fence says of a file.
func (r *reader) file(add, is bool, name, body string) {
	switch {
	case add:
		write(r.t, name, content(r.t, name)+"\n"+body)
	case !is:
		write(r.t, name, body)
	case !strings.Contains(content(r.t, name), body):
		r.t.Errorf("%s has no\n%s\nIt is\n%s", name, body, content(r.t, name))
	}
}

func (r *reader) replace(number, name, body string) {
	lines := strings.SplitAfter(content(r.t, name), "\n")
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > len(lines) {
		r.t.Fatalf("%s has no line %s", name, number)
	}
	lines[n-1] = body
	write(r.t, name, strings.Join(lines, ""))
}

func content(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
