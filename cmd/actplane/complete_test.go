// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/actplane/actplane/internal/frontend"
	"github.com/actplane/actplane/internal/testenv"
)

func TestComplete(t *testing.T) {
	app := newApp()
	app.Setup()
	c := completer{app: app, scopes: func() []candidate {
		return []candidate{{"web", "1"}, {"a b", ""}, {"$(x)", ""}, {":files", "hostile"}, {"", ""}, {"agent", "two\nlines\x1b"}}
	}, requests: func() []candidate { return []candidate{{"k3m9p", "write \"/x\\x1b\""}} },
		grants: func() []candidate { return []candidate{{"zzzzz", "exec /usr/bin/git"}} }}
	for given, want := range map[string]string{
		"e|":                         "explain events",
		"nothing|":                   "",
		"nothing|x|":                 "",
		"-|":                         "--help --version",
		"ps||":                       "",
		"deny||":                     "k3m9p",
		"revoke||":                   "zzzzz",
		"ps|x|":                      "",
		"ps|-|":                      "--wide --all --json --help", // what is hidden stays so
		"ps|--w|":                    "--wide",
		"check||":                    ":files",
		"check|a.yaml||":             ":files",
		"check|--format||":           "text json",
		"check|--format|j|":          "json",
		"check|-format||":            "text json",
		"check|--format=|":           "--format=text --format=json",
		"check|--format=j|":          "--format=json",
		"check|--strict||":           ":files",
		"check|--workspace||":        ":directories",
		"check|--nonsense||":         ":files",
		"check|--nonsense=|":         "",
		"check|--|--f|":              ":files",
		"compile|a.yaml||":           "",
		"init||":                     ":directories",
		"init|-t|tests-g|":           "tests-go",
		"init|--template=tests-g|":   "--template=tests-go",
		"verify|-I||":                "",
		"sign|--key=x|":              ":files",
		"run|-p||":                   ":files",
		"run||":                      ":commands",
		"run|--||":                   ":commands",
		"run|ls||":                   ":files",
		"run|ls|--p|":                ":files",
		"run|--p|":                   "--policy",
		"events||":                   "web agent",
		"events|a|":                  "agent",
		"events|web||":               "",
		"state||":                    "ls reset",
		"state|r|":                   "reset",
		"state|reset||":              "web agent",
		"state|reset|web||":          "",
		"state|ls|-|":                "--wide --json --help",
		"help|un|":                   "unlock uninstall",
		"completion||":               "bash zsh fish",
		"completion|zsh||":           "",
		strings.Repeat("x|", 10_000): "",
	} {
		words := strings.Split(strings.TrimSuffix(given, "|"), "|")
		if strings.HasSuffix(given, "||") {
			words = append(strings.Split(strings.TrimSuffix(given, "||"), "|"), "")
		}
		var got []string
		for _, found := range c.complete(words) {
			got = append(got, found.word)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%.60q: %q, want %q", given, got, want)
		}
	}
	if found := c.complete([]string{"events", "agent"}); len(found) != 1 || found[0].line() != "agent\ttwo" {
		t.Errorf("a line is %q", found)
	}
}

// Each command's arguments are of a kind that can be completed, or there are none.
func TestArgumentsAreKnown(t *testing.T) {
	app := newApp()
	app.Setup()
	some := func() []candidate { return []candidate{{"x", ""}} }
	c := completer{app: app, scopes: some, requests: some, grants: some}
	for _, command := range app.Commands {
		if known := len(c.argument(command, 0)) > 0; known != (command.ArgsUsage != "") {
			t.Errorf("%s: %q is of no known kind", command.Name, command.ArgsUsage)
		}
	}
}

// completing is a folder in which a shell is to complete, with this program in PATH.
func completing(t *testing.T, shell string) (path, dir string, env []string) {
	t.Helper()
	path = testenv.RequireProgram(t, shell, shell)
	dir = t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, "bin", "actplane")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"my policy.yaml", "other.yaml", "folder/inner.yaml"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	env = []string{"PATH=" + filepath.Join(dir, "bin") + ":/usr/bin:/bin", "HOME=" + dir, "TERM=dumb", "LC_ALL=C.UTF-8", "INPUTRC=/dev/null"}
	return path, dir, env
}

// A line that is typed, with a tab at its end, and what becomes of it.
var typed = []struct{ line, becomes string }{
	{"actplane unin", "actplane uninstall "},
	{"actplane check --str", "actplane check --strict "},
	{"actplane check --format j", "actplane check --format json "},
	{"actplane check --format=j", "actplane check --format=json "},
	{"actplane init --template=no-pus", "actplane init --template=no-push "},
	{"actplane check oth", "actplane check other.yaml "},
	{"actplane check my", `actplane check my\ policy.yaml `},
	{"actplane check fol", "actplane check folder/"},
	{"actplane check --strict folder/", "actplane check --strict folder/inner.yaml "},
	{"actplane sign --key=oth", "actplane sign --key=other.yaml "},
	{"actplane run --policy oth", "actplane run --policy other.yaml "},
	{"actplane run actpl", "actplane run actplane "},
	{"actplane help schem", "actplane help schema "},
	{"actplane completion z", "actplane completion zsh "},
	// Nothing, and above all no file.
	{"actplane ps oth", "actplane ps oth"},
	{"actplane completion oth", "actplane completion oth"},
}

// typeInto types the lines into an interactive shell, which echoes what they become.
func typeInto(t *testing.T, shell *exec.Cmd, setup string) {
	t.Helper()
	term := newTerminal(t)
	term.start(shell)
	wait := func(what string) {
		t.Helper()
		if !frontend.Poll(t.Context(), 30*time.Second, func() bool { return strings.Contains(term.text(), what) }) {
			t.Fatalf("no %q in %q", what, term.text())
		}
	}
	term.write(setup + "; echo rea''dy\n")
	wait("ready\r\n")
	for i, test := range typed {
		before := len(term.text())
		term.write(test.line + "\t")
		ok := frontend.Poll(t.Context(), 20*time.Second, func() bool {
			return strings.Contains(screen(term.text()[before:]), test.becomes)
		})
		term.write(fmt.Sprintf("\x15echo do''ne%d.\n", i)) // ^U clears the line
		wait(fmt.Sprintf("done%d.", i))
		got := term.text()[before:]
		if !ok || test.line == test.becomes && strings.Contains(got, "other") {
			t.Errorf("%q: %q, want %q", test.line, got, test.becomes)
		}
	}
}

// screen is what a terminal shows of a text: shells go back and forth in it.
func screen(text string) string {
	var line []rune
	at := 0
	for _, r := range text {
		switch {
		case r == '\b':
			at = max(0, at-1)
		case r == '\r':
			at = 0
		case r < ' ' || r == 0x7f:
		default:
			line = append(line[:min(at, len(line))], append([]rune{r}, line[min(at+1, len(line)):]...)...)
			at++
		}
	}
	return string(line)
}

func TestBashCompletion(t *testing.T) {
	t.Parallel()
	path, dir, env := completing(t, "bash")
	shell := exec.Command(path, "--norc", "--noprofile", "-i")
	shell.Dir, shell.Env = dir, env
	typeInto(t, shell, `PS1='> '; bind 'set bell-style none'; source <(actplane completion bash)`)
}

func TestZshCompletion(t *testing.T) {
	t.Parallel()
	path, dir, env := completing(t, "zsh")
	shell := exec.Command(path, "-f", "-i")
	shell.Dir, shell.Env = dir, env
	typeInto(t, shell, `PS1='> '; unsetopt beep prompt_sp; autoload -Uz compinit; compinit -u; source <(actplane completion zsh)`)
}

// Fish tells what it would offer.
func TestFishCompletion(t *testing.T) {
	t.Parallel()
	path, dir, env := completing(t, "fish")
	for _, test := range typed {
		script := "actplane completion fish | source; complete -C " + `"` + test.line + `"`
		shell := exec.Command(path, "--no-config", "-c", script)
		shell.Dir, shell.Env = dir, env
		out, err := shell.Output()
		if err != nil {
			t.Fatalf("%s: %v", test.line, err)
		}
		var offered []string
		for line := range strings.Lines(string(out)) {
			word, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			offered = append(offered, word)
		}
		want := strings.Fields(strings.ReplaceAll(test.becomes, `\ `, "\x00"))
		last := strings.ReplaceAll(want[len(want)-1], "\x00", " ")
		if test.line == test.becomes {
			if len(offered) != 0 {
				t.Errorf("%q: offered are %q", test.line, offered)
			}
		} else if !slices.Contains(offered, last) || len(offered) > 2 {
			t.Errorf("%q: offered are %q, want %q", test.line, offered, last)
		}
	}
}
