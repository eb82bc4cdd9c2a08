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

	"github.com/actplane/actplane/policy/diag"
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
	if !said {
		if err := meantVerdict(words); err != nil {
			return step, err
		}
	}
	if err := checkStep(step.under("/").Words); err != nil { // any workspace would do
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
	step.write(words)
	if under := step.under(workspace); !slices.Equal(under.Words, step.Words) {
		for i := range words {
			if text := under.Words[i]; text != words[i].text {
				words[i] = word{text, writeWord(text, false)}
			}
		}
		step.Words = nil
		step.write(words)
	}
	if len(step.Words) < 2 {
		return step, notEvent(step.Words)
	}
	return step, checkStep(step.Words)
}

// notEvent says what an event is, where words are too few.
func notEvent(words []string) error {
	const form = "an event is [SUBJECT] OPERATION [OBJECT…], such as `read .env` or `exec git push`"
	if len(words) == 1 {
		if near := diag.Suggest(words[0], operationNames()); near != "" && len(near) > 2 {
			return stepErrorf("%s; did you mean %q?", form, near)
		}
	}
	return stepErrorf("%s", form)
}

// under is the step with its paths made absolute, in its words and not in its text: a
// program that is named without a directory stands in /usr/bin, other relative paths
// are below workspace.
func (s Step) under(workspace string) Step {
	if len(s.Words) < 2 || isHuman(s.Words) || isTime(s.Words) || isScope(s.Words) {
		return s
	}
	s.Words = slices.Clone(s.Words)
	for i, kind := range []byte(signature(s.Words[1])) {
		if at := i + 2; kind == 'p' && at < len(s.Words) && !path.IsAbs(s.Words[at]) && s.Words[at] != "" {
			s.Words[at] = absolute(s.Words[1], i, s.Words[at], workspace)
		}
	}
	return s
}

// under is the case with the paths of its steps made absolute.
func (c *Case) under(workspace string) *Case {
	out := *c
	out.Steps = make([]Step, len(c.Steps))
	for i, s := range c.Steps {
		out.Steps[i] = s.under(workspace)
	}
	return &out
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

// meantVerdict finds, where a verdict has to stand and does not, a word that was
// probably meant to be one.
func meantVerdict(words []word) error {
	if len(words) < 3 || !needsVerdict([]string{words[0].text, words[1].text}) {
		return nil
	}
	want := signature(words[1].text)
	complete := len(words) == len(want)+2 && !strings.HasSuffix(want, "*") // all that follows belongs to the operation
	for n := len(words) - 1; n >= max(2, len(words)-2); n-- {
		w := words[n]
		meant := likeVerdict(w.text)
		if meant == "" && !complete && want != "" {
			meant = misspeltVerdict(w.text)
		}
		if !w.quoted() && meant != "" {
			return stepErrorf("%q is no verdict: those are ok, notify, ask, block and kill; did you mean %q?", w.text, meant)
		}
	}
	return nil
}

// misspeltVerdict returns the verdict that a word is a misspelling of, "" for none.
func misspeltVerdict(text string) string {
	meant := diag.Suggest(text, []string{"notify", "block", "kill"})
	if meant == "" || !strings.EqualFold(text[:1], meant[:1]) {
		return ""
	}
	return meant
}

// likeVerdict returns the verdict that people mean by a word, "" for no such word.
func likeVerdict(text string) string {
	switch text = strings.ToLower(text); text {
	case "ok", "notify", "ask", "block", "kill":
		return text
	case "allow", "allows", "allowed", "permit", "permitted", "pass", "passes", "passed", "okay":
		return "ok"
	case "blocked", "blocks", "deny", "denied", "denies", "refuse", "refused", "forbid", "forbidden", "reject", "rejected":
		return "block"
	case "notified", "notifies", "warn":
		return "notify"
	case "asked", "asks":
		return "ask"
	case "killed", "kills":
		return "kill"
	}
	return ""
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
		return noOperation(words)
	} else if len(args) < n || len(args) > n && !strings.HasSuffix(want, "*") {
		return stepErrorf("%s takes %d after it, and has %d", op, n, len(args))
	}
	for _, word := range args { // only an abstract name can have one
		if strings.ContainsRune(word, 0) && !strings.HasPrefix(word, "unix:@") {
			return stepErrorf("%q has a NUL: no path, argument or host has one", word)
		}
	}
	for i := range n {
		if err := checkWord(op, want[i], args[i]); err != nil {
			return err
		}
	}
	return nil
}

// noOperation says what may have been meant by a step whose second word is no
// operation: another one, or one before which the subject is missing, or a program.
func noOperation(words []string) error {
	text := fmt.Sprintf("%q is no operation of a trace", words[1])
	for _, w := range []string{words[1], words[0]} {
		if near := diag.Suggest(w, operationNames()); near != "" && len(near) > 2 {
			return stepErrorf("%s; did you mean %q?", text, near)
		}
	}
	if signature(words[0]) != "" {
		return stepErrorf("%s; a step of a test begins with its subject, such as `a %s`", text, WriteStep(words))
	}
	return stepErrorf("%s; to run the program %s, write `a exec %s`; if %s is the process that runs %s, write `%s exec %s`",
		text, writeWord(words[0], false), WriteStep(words), writeWord(words[0], false), writeWord(words[1], false),
		writeWord(words[0], false), WriteStep(words[1:]))
}

// operationNames are all that have a signature.
func operationNames() []string {
	return []string{"exec", "execfails", "execscript", "open", "read", "write", "append", "unlink", "rmdir", "mkdir", "chmod",
		"chown", "mmapshared", "mapexec", "chdir", "rename", "exchange", "link", "symlink", "truncate", "connect", "send", "recv",
		"bind", "fork", "pipe", "pipewrite", "piperead", "shm", "fdread", "fdwrite", "ptrace", "memread", "memwrite", "killed",
		"setuid", "fdpass", "setenv", "fdopen", "exit", "enter"}
}

func checkWord(op string, kind byte, text string) error {
	switch kind {
	case 'p':
		if !path.IsAbs(text) {
			return stepErrorf("%q is no path", text)
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
