// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// word is one of a line of a trace.
type word struct {
	text    string
	written string // with its quotes
}

func (w word) quoted() bool { return w.text != w.written }

// splitWords cuts a line at blanks. A word in double quotes may have blanks and
// Go's escapes, and is never a verdict; one that begins with # is a comment.
func splitWords(line string) (out []word, err error) {
	for {
		line = strings.TrimLeft(line, " \t")
		if line == "" || line[0] == '#' {
			return out, nil
		}
		end := strings.IndexAny(line, " \t")
		if end < 0 {
			end = len(line)
		}
		w := word{line[:end], line[:end]}
		if line[0] == '"' {
			if w.written, err = strconv.QuotedPrefix(line); err != nil {
				return nil, fmt.Errorf("%s: this word in quotes does not end, or has an escape that is none", line)
			}
			if w.text, err = strconv.Unquote(w.written); err != nil {
				return nil, fmt.Errorf("%s is no word in quotes", w.written)
			}
			if end = len(w.written); end < len(line) && line[end] != ' ' && line[end] != '\t' {
				return nil, fmt.Errorf("a blank is missing after %s", w.written)
			}
		}
		out, line = append(out, w), line[end:]
	}
}

// parseStep reads a line of a trace: the step, its verdict and the rule.
func parseStep(line string) (step Step, err error) {
	words, err := splitWords(line)
	if err != nil || len(words) == 0 {
		return step, err
	}
	said := step.cutVerdict(&words)
	step.write(words)
	if err := checkStep(step.Words); err != nil {
		return step, err
	}
	switch needs := needsVerdict(step.Words); {
	case needs && !said:
		return step, fmt.Errorf("the step %q has no verdict: end it with ok, notify, ask, block or kill", step.Text)
	case step.Verdict == "ok" && step.Rule != "":
		return step, fmt.Errorf("%q: ok names no rule, since none decides", step.Rule)
	case !needs && step.Verdict != "ok":
		return step, fmt.Errorf("%q is no operation that a policy decides: its verdict is ok, or none", step.Text)
	}
	return step, nil
}

// cutVerdict takes the verdict and the rule from the end of a step's words, ok where
// there is none.
func (s *Step) cutVerdict(words *[]word) (said bool) {
	s.Verdict = "ok"
	end := len(*words)
	for n := end - 1; n >= 2 && n >= end-2; n-- {
		if isVerdict((*words)[n]) {
			s.Verdict = (*words)[n].text
			if n+1 < end {
				s.Rule = (*words)[n+1].text
			}
			*words = (*words)[:n]
			return true
		}
	}
	return false
}

func (s *Step) write(words []word) {
	var written []string
	for _, w := range words {
		written, s.Words = append(written, w.written), append(s.Words, w.text)
	}
	s.Text = strings.Join(written, " ")
}

// someone is the subject of an event that names none.
const someone = "process"

// ParseEvent reads one event as people type it: a line of a trace, the verdict and the
// subject of which can be missing, a program that is named without a directory stands
// in /usr/bin, and other relative paths are below workspace, an absolute path. An
// operation where a subject can stand is the operation.
func ParseEvent(line, workspace string) (step Step, err error) {
	words, err := splitWords(line)
	if err != nil {
		return step, err
	}
	if len(words) > 0 && signature(words[0].text) != "" {
		words = slices.Insert(words, 0, word{someone, someone})
	}
	step.cutVerdict(&words)
	if len(words) > 1 {
		for i, kind := range []byte(signature(words[1].text)) {
			if at := i + 2; kind == 'p' && at < len(words) && !path.IsAbs(words[at].text) && words[at].text != "" {
				words[at].text = absolute(words[1].text, i, words[at].text, workspace)
				words[at].written = writeWord(words[at].text, false)
			}
		}
	}
	step.write(words)
	return step, checkStep(step.Words)
}

// absolute makes a path of the one that is the nth object of an operation.
func absolute(op string, n int, name, workspace string) string {
	if strings.HasPrefix(op, "exec") && (n == 0 || op == "execscript") && !strings.Contains(name, "/") {
		return path.Join("/usr/bin", name)
	}
	return path.Join(workspace, name)
}

// WriteStep is the line of a trace that has these words.
func WriteStep(words []string) string {
	written := make([]string, len(words))
	for i, w := range words {
		written[i] = writeWord(w, i >= 2)
	}
	return strings.Join(written, " ")
}

// writeWord puts a word in quotes if it would be read otherwise without them; last,
// where a verdict can stand.
func writeWord(text string, last bool) string {
	plain := text != "" && text[0] != '#' && text[0] != '"' && !(last && isVerdict(word{text, text}))
	for _, r := range text {
		plain = plain && strconv.IsPrint(r) && r != ' ' && r != utf8.RuneError
	}
	if plain {
		return text
	}
	return strconv.Quote(text)
}

func isVerdict(w word) bool {
	return !w.quoted() && slices.Contains([]string{"ok", "notify", "ask", "block", "kill"}, w.text)
}

// needsVerdict tells whether a step has to state one.
func needsVerdict(words []string) bool {
	return !isHuman(words) && !isTime(words) && !isScope(words) && decided(words[1])
}

// hasSubject tells whether a step is of a process that may be there already.
func hasSubject(words []string) bool {
	return !isHuman(words) && !isTime(words) && !isScope(words) && words[1] != "enter"
}

// What is said of more than one process has a word in place of a subject. Processes
// can have the same name, for none of the words that follow is an operation.

func isHuman(words []string) bool { return words[0] == "human" && signature(words[1]) == "" }

func isTime(words []string) bool { return words[0] == "time" && signature(words[1]) == "" }

func isScope(words []string) bool { return words[0] == "scope" && signature(words[1]) == "" }

// signature is what stands behind an operation, "" for none that is known. A letter
// each: path, word, endpoint, other process, number, open mode; * is any further
// words, and - nothing.
func signature(op string) string {
	switch op {
	case "exec", "execfails":
		return "p*"
	case "execscript":
		return "pp*"
	case "open", "read", "write", "append", "unlink", "rmdir", "mkdir", "chmod", "chown", "mmapshared", "mapexec", "chdir":
		return "p"
	case "rename", "exchange", "link":
		return "pp"
	case "symlink":
		return "wp"
	case "truncate":
		return "pn"
	case "connect", "send", "recv", "bind":
		return "e"
	case "fork", "pipe", "pipewrite", "piperead", "shm", "fdread", "fdwrite", "ptrace", "memread", "memwrite", "killed", "setuid":
		return "w"
	case "fdpass", "setenv":
		return "ww"
	case "fdopen":
		return "wmp"
	case "exit":
		return "n"
	case "enter":
		return "-"
	}
	return ""
}

// decided tells whether a policy decides an operation; the others just happen.
func decided(op string) bool {
	switch op {
	case "fork", "exit", "killed", "pipe", "pipewrite", "piperead", "shm", "fdpass", "enter", "chdir", "setuid", "setenv":
		return false
	}
	return true
}

// checkStep finds what is wrong with the words of a step in whatever state.
func checkStep(words []string) error {
	if len(words) < 2 {
		return stepErrorf("a step is SUBJECT OPERATION [OBJECT…] VERDICT [RULE]")
	}
	switch {
	case isHuman(words):
		return checkHuman(words[1:])
	case isTime(words):
		if d, err := time.ParseDuration(words[1]); err != nil || d <= 0 || len(words) > 2 {
			return stepErrorf("write `time 10m` for ten minutes that go by")
		}
		return nil
	case isScope(words):
		if len(words) > 2 || words[1] != "restart" && words[1] != "lost" {
			return stepErrorf("write `scope restart`, or `scope lost` for a restart after which nothing is known")
		}
		return nil
	}
	op, args := words[1], words[2:]
	want := signature(op)
	n := len(strings.TrimRight(want, "*-"))
	if want == "" {
		return stepErrorf("%q is no operation of a trace", op)
	} else if len(args) < n || len(args) > n && !strings.HasSuffix(want, "*") {
		return stepErrorf("%s takes %d after it, and has %d", op, n, len(args))
	}
	for i := range n {
		if err := checkWord(op, want[i], args[i]); err != nil {
			return err
		}
	}
	return nil
}

func checkWord(op string, kind byte, text string) error {
	switch kind {
	case 'p':
		if !path.IsAbs(text) || strings.ContainsRune(text, 0) {
			return stepErrorf("%q is no absolute path", text)
		}
	case 'e':
		_, err := parseEndpoint(text)
		return err
	case 'm':
		if !slices.Contains([]string{"r", "w", "a", "rw"}, text) {
			return stepErrorf("%q is no way to open a file: r, w, a or rw", text)
		}
	case 'n':
		bits := 63
		if op == "exit" {
			bits = 8
		}
		if _, err := strconv.ParseUint(text, 10, bits); err != nil && op == "exit" {
			return stepErrorf("%q is no exit status: those are 0 to 255", text)
		} else if err != nil {
			return stepErrorf("%q is no number", text)
		}
	}
	return nil
}

// checkHuman: approve [once|DURATION|scope], deny [DURATION|scope] [because REASON].
func checkHuman(words []string) error {
	word, rest := words[0], words[1:]
	if word == "deny" && len(rest) >= 2 && rest[len(rest)-2] == "because" {
		rest = rest[:len(rest)-2]
	}
	ok := (word == "approve" || word == "deny") && len(rest) <= 1
	if ok && len(rest) == 1 {
		d, err := time.ParseDuration(rest[0])
		ok = rest[0] == "scope" || word == "approve" && rest[0] == "once" || err == nil && d > 0
	}
	if !ok {
		return stepErrorf("write `human approve`, with once, a duration such as 10m, or scope; or `human deny`, with a duration or scope, and because \"REASON\"")
	}
	return nil
}
