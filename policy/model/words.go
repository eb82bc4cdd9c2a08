// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
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
	step.Verdict = "ok"
	end := len(words)
	for n := end - 1; n >= 2 && n >= end-2; n-- {
		if isVerdict(words[n]) {
			step.Verdict = words[n].text
			if n+1 < end {
				step.Rule = words[n+1].text
			}
			words = words[:n]
			break
		}
	}
	var written []string
	for _, w := range words {
		written, step.Words = append(written, w.written), append(step.Words, w.text)
	}
	step.Text = strings.Join(written, " ")
	if err := checkStep(step.Words); err != nil {
		return step, err
	}
	switch said, needs := len(words) < end, needsVerdict(step.Words); {
	case needs && !said:
		return step, fmt.Errorf("the step %q has no verdict: end it with ok, notify, ask, block or kill", step.Text)
	case step.Verdict == "ok" && step.Rule != "":
		return step, fmt.Errorf("%q: ok names no rule, since none decides", step.Rule)
	case !needs && step.Verdict != "ok":
		return step, fmt.Errorf("%q is no operation that a policy decides: its verdict is ok, or none", step.Text)
	}
	return step, nil
}

func isVerdict(w word) bool {
	return !w.quoted() && slices.Contains([]string{"ok", "notify", "ask", "block", "kill"}, w.text)
}

// needsVerdict tells whether a step is an operation; the others just happen.
func needsVerdict(words []string) bool {
	return words[0] != "human" && words[1] != "exit" && words[1] != "killed"
}

// checkStep finds what is wrong with the words of a step in whatever state.
func checkStep(words []string) error {
	if len(words) < 2 {
		return stepErrorf("a step is SUBJECT OPERATION [OBJECT…] VERDICT [RULE]")
	}
	if words[0] == "human" {
		return checkHuman(words[1:])
	}
	op, args := words[1], words[2:]
	if n := objects(op); n == 0 {
		return stepErrorf("%q is no operation of a trace", op)
	} else if len(args) < n || len(args) > n && !isExec(op) {
		return stepErrorf("%s takes %d after it, and has %d", op, n, len(args))
	}
	for _, object := range args[:paths(op)] {
		if !path.IsAbs(object) || strings.ContainsRune(object, 0) {
			return stepErrorf("%q is no absolute path", object)
		}
	}
	switch op {
	case "exit":
		if _, err := strconv.ParseUint(args[0], 10, 8); err != nil {
			return stepErrorf("%q is no exit status: those are 0 to 255", args[0])
		}
	case "connect", "send", "recv", "bind":
		_, err := parseEndpoint(args[0])
		return err
	}
	return nil
}

func checkHuman(words []string) error {
	if len(words) == 1 && words[0] == "deny" || len(words) == 2 && words[0] == "approve" && (words[1] == "once" || words[1] == "10m") {
		return nil
	}
	return stepErrorf("write `human approve once`, `human approve 10m` or `human deny`")
}

func isExec(op string) bool { return op == "exec" || op == "execfails" }
